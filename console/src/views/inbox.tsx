// The inbox: the open asks of all sessions, with keys.

import { useEffect, useState } from "preact/hooks";
import { askKey } from "../protocol";
import { openAsks, tell } from "../store";
import { plural } from "../words";
import { AskCard } from "./asks";

export function Inbox() {
  const open = openAsks.value;
  const [selected, select] = useState("");
  const keys = open.map(askKey);
  const at = Math.max(0, keys.indexOf(selected));
  const current = keys[at] ?? "";

  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const step = event.key === "j" ? 1 : event.key === "k" ? -1 : 0;
      if (step) select(keys[Math.min(keys.length - 1, Math.max(0, at + step))] ?? "");
      else press(event.key);
      if (step || event.key in BUTTONS) event.preventDefault();
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, [keys.join(" "), at]);

  return (
    <main class="page inbox" aria-label="Inbox">
      <header>
        <a class="back" href="#/list" aria-label="Back to the list">
          ←
        </a>
        <h1>Inbox</h1>
        <p class="quiet">{open.length ? plural(open.length, "open ask") : ""}</p>
      </header>
      <div class="column">
        {open.length === 0 ? (
          <p class="empty">Nothing waits for you.</p>
        ) : (
          open.map((ask) => (
            <AskCard
              key={askKey(ask)}
              ask={ask}
              withSession
              isSelected={askKey(ask) === current}
              onSelect={() => select(askKey(ask))}
            />
          ))
        )}
        {open.length > 0 && (
          <p class="keys quiet">
            <kbd>j</kbd> <kbd>k</kbd> next, previous · <kbd>a</kbd> allow · <kbd>d</kbd> deny · <kbd>e</kbd> edit ·{" "}
            <kbd>o</kbd> show what is hidden
          </p>
        )}
      </div>
    </main>
  );
}

const BUTTONS: Readonly<Record<string, string>> = {
  a: ".allow",
  d: ".deny",
  e: ".edit",
  o: ".open-hidden",
};

/** Presses the button of the selected card; an ask without that button ignores the key. */
function press(key: string): void {
  const button = BUTTONS[key];
  const found = button ? document.querySelector<HTMLButtonElement>(`.ask.selected ${button}`) : null;
  if (found?.disabled) tell("A part of it is hidden: o shows all.");
  else if (found) found.click();
  else if (key === "e") document.querySelector<HTMLElement>(".ask.selected input")?.focus();
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]");
}
