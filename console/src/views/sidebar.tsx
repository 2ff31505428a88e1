// The list of sessions: who needs the reader first.

import { useState } from "preact/hooks";
import { keepTheme, theme } from "../kept";
import type { Summary } from "../protocol";
import { hrefOf, route } from "../route";
import { askToNotify, asks, asksOf, hasList, isUnread, link, mayNotify, now, ordered } from "../store";
import { ago, lineOf, money, toneOf } from "../words";
import { Icon } from "./parts";

export function Sidebar() {
  const [query, setQuery] = useState("");
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = ordered.value.filter((each) => {
    const searched = `${each.title} ${each.agent} ${each.state} ${each.line} ${each.id} ${each.by}`.toLowerCase();
    return words.every((word) => searched.includes(word));
  });
  return (
    <nav class="sidebar" aria-label="Sessions">
      <header>
        <a class="mark" href="#/list">
          steersman
        </a>
        <Notify />
        <Theme />
      </header>
      <div class="ways">
        <a class="way" href={hrefOf({ view: "asks" })} aria-current={route.value.view === "asks" ? "page" : undefined}>
          <Icon name="inbox" /> Inbox
          {asks.value.size > 0 && <span class="number">{asks.value.size}</span>}
        </a>
        <a class="way" href="#/new" aria-current={route.value.view === "new" ? "page" : undefined}>
          <Icon name="plus" /> New session
        </a>
      </div>
      <input
        type="search"
        class="search"
        placeholder="Search sessions"
        aria-label="Search sessions"
        value={query}
        onInput={(event) => setQuery(event.currentTarget.value)}
      />
      <ul class="sessions">
        {found.map((each) => (
          <Row key={each.id} summary={each} />
        ))}
      </ul>
      {hasList.value && found.length === 0 && (
        <p class="empty">{query ? "No session fits." : "No session yet."}</p>
      )}
      {!hasList.value && <p class="empty">{link.value === "online" ? "" : "Connecting…"}</p>}
    </nav>
  );
}

function Row({ summary }: { summary: Summary }) {
  const current = route.value;
  const isCurrent = current.view === "session" && current.id === summary.id;
  const waiting = Math.max(summary.asks, asksOf(summary.id).length);
  const isNew = !isCurrent && isUnread(summary);
  const tone = waiting ? "needs" : toneOf(summary.state);
  return (
    <li>
      <a
        class={`row ${tone}${isNew ? " unread" : ""}`}
        href={hrefOf({ view: "session", id: summary.id, tab: "conversation" })}
        aria-current={isCurrent ? "page" : undefined}
      >
        <span class="title">
          {isNew && <span class="aside">unread: </span>}
          {summary.title || "Untitled"}
        </span>
        <span class="state">
          <span class="dot" />
          {lineOf(summary, waiting, now.value)}
        </span>
        <span class="facts">
          {summary.cost > 0 && <span>{money(summary.cost)}</span>}
          <span>{ago(summary.lastActivity, now.value)}</span>
        </span>
      </a>
    </li>
  );
}

function Theme() {
  const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;
  const [chosen, choose] = useState(theme() || (isDark() ? "dark" : "light"));
  const other = chosen === "dark" ? "light" : "dark";
  return (
    <button
      type="button"
      class="icon-button"
      aria-label={`Use the ${other} theme`}
      onClick={() => {
        document.documentElement.dataset["theme"] = other;
        keepTheme(other);
        choose(other);
      }}
    >
      <Icon name={chosen === "dark" ? "sun" : "moon"} />
    </button>
  );
}

function Notify() {
  if (mayNotify.value !== "default") return null;
  return (
    <button
      type="button"
      class="icon-button"
      aria-label="Notify me when an agent needs me"
      title="Notify me when an agent needs me"
      onClick={() => void askToNotify()}
    >
      <Icon name="bell" />
    </button>
  );
}
