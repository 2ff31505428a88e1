// What this browser keeps over a reload: what was typed, what was sent and not yet seen, what was read.

import { isObject, number, object, parseObject, text } from "./json";

const PREFIX = "steersman.";

function read(name: string): string {
  try {
    return localStorage.getItem(PREFIX + name) ?? "";
  } catch {
    // Storage may be switched off; then nothing is kept.
    return "";
  }
}

function write(name: string, value: string): void {
  try {
    if (value) localStorage.setItem(PREFIX + name, value);
    else localStorage.removeItem(PREFIX + name);
  } catch {
    // As above, or full.
  }
}

export const draftOf = (session: string): string => read(`draft.${session}`);
export const keepDraft = (session: string, draft: string): void => write(`draft.${session}`, draft);

// Of this page alone: other pages of the same origin may be bridges too.
const LOGIN = `login.${location.pathname}`;

/** The token of this browser. Only pages of this origin can read it; a cookie would go to every port of the host. */
export const login = (): string => read(LOGIN);
export const keepLogin = (token: string): void => write(LOGIN, token);

export const theme = (): string => read("theme");
export const keepTheme = (name: string): void => write("theme", name);

/** The last entry of each session that was shown here. */
export function readMarks(): Map<string, number> {
  const marks = Object.entries(parseObject(read("seen")));
  return new Map(marks.map(([id, seq]) => [id, number(seq)]));
}

export function keepMarks(marks: ReadonlyMap<string, number>): void {
  write("seen", JSON.stringify(Object.fromEntries([...marks].slice(-500))));
}

/** A prompt that was sent, until the journal or the queue has it. */
export interface Pending {
  readonly key: string;
  /** Empty if the session is begun with it. */
  readonly session: string;
  readonly agent: string;
  readonly text: string;
  readonly when: string;
  readonly at: number;
  /** The uuid of its turn, once the server has answered. */
  readonly turn: string;
  readonly failure: string;
  /** How many files are attached. */
  readonly files: number;
}

export function readPending(): Pending[] {
  try {
    const found: unknown = JSON.parse(read("pending") || "[]");
    return Array.isArray(found) ? found.filter(isObject).map(object).map(pendingOf) : [];
  } catch {
    return [];
  }
}

function pendingOf(found: Record<string, unknown>): Pending {
  return {
    key: text(found["key"]),
    session: text(found["session"]),
    agent: text(found["agent"]),
    text: text(found["text"]),
    when: text(found["when"], "later"),
    at: number(found["at"]),
    turn: text(found["turn"]),
    failure: text(found["failure"]),
    files: number(found["files"]),
  };
}

export function keepPending(pending: readonly Pending[]): void {
  write("pending", pending.length ? JSON.stringify(pending) : "");
}
