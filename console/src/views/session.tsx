// One session: its head, its tabs, its open asks, and where to write.

import { useEffect } from "preact/hooks";
import { askKey } from "../protocol";
import { hrefOf, type Tab } from "../route";
import { asksOf, control, interrupt, link, markRead, now, sessions, viewOf } from "../store";
import { count, duration, isAtWork, lineOf, money, stateWords, toneOf } from "../words";
import { AskCard } from "./asks";
import { Composer, PendingPrompts } from "./composer";
import { Conversation } from "./conversation";
import { JournalView } from "./journal";
import { Overview, Rail } from "./overview";
import { Icon } from "./parts";

const TABS: readonly { readonly tab: Tab; readonly words: string }[] = [
  { tab: "conversation", words: "Conversation" },
  { tab: "overview", words: "Overview" },
  { tab: "journal", words: "Journal" },
];

export function SessionPage({ id, tab }: { id: string; tab: Tab }) {
  const view = viewOf(id);
  const picture = view.picture.value;
  const summary = sessions.value.get(id);
  const open = asksOf(id);

  useEffect(() => {
    if (!document.hidden) markRead(id, Math.max(picture.lastSeq, summary?.last ?? 0));
  }, [id, picture.lastSeq, summary?.last]);

  return (
    <main class="session" aria-label="Session">
      <Head id={id} tab={tab} />
      {summary?.isStored === false && (
        <p class="note error banner" role="alert">
          What happens now cannot be stored, and is gone when the server ends: see its log.
        </p>
      )}
      {view.lost.value > 0 && (
        <p class="note banner">{view.lost.value} journal entries cannot be read any more.</p>
      )}
      {view.failure.value && (
        <p class="note error banner" role="alert">
          {view.failure.value}{" "}
          <button type="button" class="plain" onClick={() => void view.load()}>
            Try again
          </button>
        </p>
      )}
      <div class="panes">
        {tab === "conversation" && (
          <div class="talk">
            <Conversation key={id} view={view}>
              <PendingPrompts session={id} />
              <Activity id={id} />
            </Conversation>
            {open.length > 0 && (
              <section class="dock" aria-label="Open asks">
                {open.map((ask) => (
                  <AskCard key={askKey(ask)} ask={ask} />
                ))}
              </section>
            )}
            <Composer key={id} session={id} summary={summary} />
          </div>
        )}
        {tab === "conversation" && <Rail picture={picture} />}
        {tab === "overview" && <Overview id={id} picture={picture} />}
        {tab === "journal" && <JournalView key={id} view={view} />}
      </div>
    </main>
  );
}

function Head({ id, tab }: { id: string; tab: Tab }) {
  const picture = viewOf(id).picture.value;
  const summary = sessions.value.get(id);
  const waiting = asksOf(id).length;
  const state = summary?.state ?? picture.state;
  const title = picture.title || summary?.title || "Session";
  const isPaused = state === "paused";
  return (
    <header class="head">
      <a class="back" href="#/list" aria-label="Back to the list">
        <Icon name="back" />
      </a>
      <div class="name">
        <h1 title={title}>{title}</h1>
        <p class="line">
          <span class={`chip ${waiting ? "needs" : toneOf(state)}`}>
            {summary ? lineOf(summary, waiting, now.value) : stateWords(state)}
          </span>
          <span class="quiet fact">{money(summary?.cost ?? picture.cost)}</span>
          {picture.context > 0 && <span class="quiet fact">{count(picture.context)} tokens</span>}
          <span class="quiet fact model">{picture.model || summary?.model}</span>
        </p>
      </div>
      <div class="tabs" role="navigation" aria-label="Views of the session">
        {TABS.map((each) => (
          <a
            key={each.tab}
            href={hrefOf({ view: "session", id, tab: each.tab })}
            aria-current={tab === each.tab ? "page" : undefined}
          >
            {each.words}
          </a>
        ))}
      </div>
      {tab !== "conversation" && (
        <button type="button" class="stop" onClick={() => void interrupt(id)} title="Stop the running turn">
          <Icon name="stop" /> Stop
        </button>
      )}
      <button
        type="button"
        class="icon-button"
        aria-label={isPaused ? "Resume the session" : "Pause the session"}
        title={isPaused ? "Resume" : "Pause"}
        onClick={() => void control(isPaused ? "resume" : "pause", id)}
      >
        <Icon name={isPaused ? "play" : "pause"} />
      </button>
      <Mode id={id} mode={summary?.mode || picture.mode} />
    </header>
  );
}

const MODES = ["default", "acceptEdits", "plan", "bypassPermissions", "dontAsk"];

function Mode({ id, mode }: { id: string; mode: string }) {
  const modes = MODES.includes(mode) || !mode ? MODES : [...MODES, mode];
  return (
    <select
      class="mode"
      aria-label="Permission mode"
      value={mode || "default"}
      onChange={(event) => void control("set_permission_mode", id, { mode: event.currentTarget.value })}
    >
      {modes.map((each) => (
        <option key={each} value={each}>{each}</option>
      ))}
    </select>
  );
}

/** What happens now, under the last item: never "working" when nothing works. */
function Activity({ id }: { id: string }) {
  const picture = viewOf(id).picture.value;
  const summary = sessions.value.get(id);
  const state = summary?.state ?? picture.state;
  if (picture.retry) {
    const left = picture.retry.until - now.value;
    return (
      <p class="activity warning">
        The API failed ({picture.retry.error}). Attempt {picture.retry.attempt} of {picture.retry.most}
        {left > 0 ? ` in ${duration(left)}` : " now"}.
      </p>
    );
  }
  if (link.value !== "online") return <p class="activity warning">Not connected: what happens now is not shown.</p>;
  if (!isAtWork(state) || asksOf(id).length) return null;
  return (
    <p class="activity">
      <span class="pulse" aria-hidden="true" />
      {summary ? lineOf(summary, 0, now.value) : stateWords(state)}
    </p>
  );
}
