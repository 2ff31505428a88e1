// Control requests that wait for a person, and decisions about tool calls.

import { isObject, object, text, type JsonObject } from "../json";
import type { Rec } from "../record";
import type { Draft } from "./draft";

/** Reads a control line of the CLI. */
export function readControl(draft: Draft, record: Rec): void {
  const { frame } = record;
  const id = text(frame["request_id"]);
  if (frame["type"] === "control_cancel_request") close(draft, id);
  else if (frame["type"] === "control_request" && id && isObject(frame["request"])) {
    open(draft, id, frame["request"], record.at);
  }
}

/** Reads a line that was sent to the CLI: a response closes its request. */
export function readResponse(draft: Draft, frame: JsonObject): void {
  if (frame["type"] === "control_response") {
    close(draft, text(object(frame["response"])["request_id"]));
  }
}

/** Reads an `asked` entry: the request waits for a person. */
export function readAsked(draft: Draft, record: Rec): void {
  const { details } = record;
  const id = text(details["id"]);
  const known = draft.now.asks.get(id);
  const payload = object(details["payload"]);
  const request = known?.request ?? payload;
  draft.map("asks").set(id, {
    id,
    subtype: text(request["subtype"], "can_use_tool"),
    request,
    since: known?.since ?? record.at,
    isAsked: true,
  });
}

/** Reads a `decided` entry. */
export function readDecided(draft: Draft, details: JsonObject): void {
  const id = text(details["tool_use_id"]);
  if (id) {
    draft.change(id, {
      decision: {
        verdict: text(details["verdict"]),
        source: text(details["source"]),
        by: text(details["by"]),
        reason: text(details["reason"]),
      },
    });
  }
}

export function closeAll(draft: Draft): void {
  if (draft.now.asks.size) draft.map("asks").clear();
  draft.memory.numbers.clear();
}

function open(draft: Draft, id: string, request: JsonObject, since: number): void {
  const subtype = text(request["subtype"]);
  const isAsk =
    subtype === "elicitation" ||
    subtype === "request_user_dialog" ||
    // A session refuses a request that it cannot read, so that one is not open.
    (subtype === "can_use_tool" && text(request["tool_name"]) !== "");
  if (isAsk && !draft.now.asks.has(id)) {
    draft.map("asks").set(id, { id, subtype, request, since, isAsked: false });
  }
}

function close(draft: Draft, id: string): void {
  if (draft.now.asks.has(id)) draft.map("asks").delete(id);
}
