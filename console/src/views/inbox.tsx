// The inbox: the open asks of all sessions, with keys.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { askKey } from "../protocol";
import { isAnsweredHere, openAsks, tell } from "../store";
import { plural } from "../words";
import { AskCard } from "./asks";

export function Inbox() {
  const open = openAsks.value;
  const [selected, select] = useState("");
  const keys = open.map(askKey);
  const at = keys.indexOf(selected);
  const place = useRef(0);
  if (at >= 0) place.current = at;
  // The selection moves by itself at the beginning, and on from an ask that was answered here. What goes
  // for another reason leaves none selected: a key at that moment is meant for what has gone.
  const moves = at < 0 && (selected === "" || isAnsweredHere(selected));
  const current = moves ? (keys[Math.min(place.current, keys.length - 1)] ?? "") : selected;

  useLayoutEffect(() => {
    if (moves && current) select(current);
  }, [current]);

  // With the drawing and not after it: a key that comes between would be read with the asks of before.
  useLayoutEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const step = event.key === "j" ? 1 : event.key === "k" ? -1 : 0;
      const from = at < 0 && step > 0 ? place.current - 1 : place.current;
      if (step) select(keys[Math.min(keys.length - 1, Math.max(0, from + step))] ?? selected);
      // A key that is held down is one answer.
      else if (!event.repeat) press(event.key);
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
