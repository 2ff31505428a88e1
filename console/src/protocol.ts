// What the bridge sends beside records: docs/web-protocol.md.

import { isObject, list, number, object, text, type JsonObject } from "./json";

export interface Queued {
  readonly turn: string;
  readonly text: string;
  readonly when: string;
  readonly by: string;
  /** Whether an earlier turn waits for an answer, and this prompt behind it. */
  readonly isBehindAsk: boolean;
}

export interface Summary {
  readonly id: string;
  readonly agent: string;
  readonly title: string;
  readonly by: string;
  readonly state: string;
  readonly line: string;
  readonly since: number;
  readonly isOpen: boolean;
  readonly asks: number;
  readonly cost: number;
  readonly turns: number;
  readonly last: number;
  /** Whether the newest entries are in the journal's file; not while its disk is full. */
  readonly isStored: boolean;
  readonly lastActivity: number;
  readonly model: string;
  readonly mode: string;
  readonly queued: readonly Queued[];
}

export interface Earlier {
  readonly how: string;
  readonly by: string;
  readonly at: number;
}

export interface Ask {
  readonly id: string;
  readonly session: string;
  readonly kind: string;
  readonly created: number;
  readonly expires: number | null;
  readonly assignee: string;
  /** What was answered to the same call before its host was lost. */
  readonly earlier: Earlier | null;
  readonly payload: JsonObject;
  readonly digest: string;
}

export interface Failure {
  readonly code: string;
  readonly message: string;
  readonly by: string;
}

export function readSummary(found: unknown): Summary | null {
  if (!isObject(found) || !text(found["id"])) return null;
  return {
    id: text(found["id"]),
    agent: text(found["agent"]),
    title: text(found["title"]),
    by: text(found["by"]),
    state: text(found["state"], "closed"),
    line: text(found["line"]),
    since: number(found["since"], number(found["last_activity"])),
    isOpen: found["is_open"] === true,
    asks: number(found["asks"]),
    cost: number(found["cost_usd"]),
    turns: number(found["turns"]),
    last: number(found["last"]),
    isStored: found["is_stored"] !== false,
    lastActivity: number(found["last_activity"]),
    model: text(found["model"]),
    mode: text(found["permission_mode"]),
    queued: list(found["queued"]).map(object).map(readQueued),
  };
}

function readQueued(found: JsonObject): Queued {
  return {
    turn: text(found["turn"]),
    text: text(found["text"]),
    when: text(found["when"], "later"),
    by: text(found["by"]),
    isBehindAsk: text(found["state"]) === "behind_ask",
  };
}

function readEarlier(found: JsonObject): Earlier | null {
  const by = text(found["by"]);
  if (!by) return null;
  const behavior = text(object(found["answer"])["behavior"]);
  const how = behavior === "allow" ? "Allowed" : behavior === "deny" ? "Denied" : "Answered";
  return { how, by, at: number(found["at"]) };
}

export function readAsk(found: unknown): Ask | null {
  if (!isObject(found) || !text(found["id"])) return null;
  return {
    id: text(found["id"]),
    session: text(found["session"]),
    kind: text(found["kind"], "permission"),
    created: number(found["created"]),
    expires: typeof found["expires"] === "number" ? found["expires"] : null,
    assignee: text(found["assignee"]),
    earlier: readEarlier(object(found["earlier"])),
    payload: object(found["payload"]),
    digest: text(found["digest"]),
  };
}

export function readFailure(found: unknown, otherwise = "The server gave no reason."): Failure {
  const error = object(object(found)["error"]);
  return {
    code: text(error["code"], "unknown"),
    message: text(error["message"], otherwise),
    by: text(error["by"]),
  };
}

/** The name under which an ask is kept: two sessions may have one of the same id. */
export function askKey(ask: { session: string; id: string }): string {
  return `${ask.session} ${ask.id}`;
}
