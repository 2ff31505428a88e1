// The text of the main agent, as `turn.text()` yields it: streamed, complete, and not twice.
// A port of `steersman.journal.text`; both must tell the same.

import { list, object, text, type JsonObject } from "../json";
import type { Rec } from "../record";

const PARAGRAPH = "\n\n";

export interface Prose {
  /** What was given out of the current message. */
  given: string;
  /** What was streamed of the current message; less than `given` while a retry repeats it. */
  streamed: string;
  /** The text of the complete messages that have the current message's id. */
  complete: string;
  messageId: string;
  isAbandoned: boolean;
  /** Whether a tool of the current message has run. */
  isAnswered: boolean;
  /** Whether all of the stream was given out, so that the next delta is the next chunk. */
  isInStep: boolean;
  hasGiven: boolean;
  /** Everything that was given out. */
  whole: string;
}

export function newProse(): Prose {
  return {
    given: "",
    streamed: "",
    complete: "",
    messageId: "",
    isAbandoned: false,
    isAnswered: false,
    isInStep: true,
    hasGiven: false,
    whole: "",
  };
}

/** Adds the text of the next record to `prose`. */
export function feedProse(prose: Prose, record: Rec): void {
  if (record.kind === "settled") {
    // A lost CLI wrote this answer, and it was found in the transcript.
    prose.whole += text(record.details["text"]);
  } else if (record.kind === "restarted") {
    prose.isAbandoned = !prose.isAnswered;
  } else if (record.kind === "partial" || record.kind === "message") {
    feedLine(prose, record.frame);
  }
}

function feedLine(prose: Prose, frame: JsonObject): void {
  if (typeof frame["parent_tool_use_id"] === "string") return;
  if (frame["type"] === "stream_event") feedEvent(prose, frame);
  else if (frame["type"] === "assistant") feedMessage(prose, frame);
  else if (frame["type"] === "user") prose.isAnswered = true;
}

function feedEvent(prose: Prose, frame: JsonObject): void {
  const event = object(frame["event"]);
  if (event["type"] === "message_start") {
    const id = object(event["message"])["id"];
    if (typeof id === "string") begin(prose, id);
  } else if (event["type"] === "content_block_delta") {
    const delta = object(event["delta"]);
    if (delta["type"] === "text_delta" && typeof delta["text"] === "string") {
      feedDelta(prose, delta["text"]);
    }
  } else if (event["type"] === "message_stop") {
    prose.isAbandoned = "abandoned_blocks" in frame;
  }
}

function feedDelta(prose: Prose, delta: string): void {
  prose.streamed += delta;
  if (!prose.isInStep) {
    give(prose, prose.streamed);
  } else if (delta) {
    add(prose, delta, !prose.given && prose.hasGiven);
    prose.given = prose.streamed;
  }
}

function feedMessage(prose: Prose, frame: JsonObject): void {
  if (frame["is_api_error_message"] === true) return;
  const body = object(frame["message"]);
  const id = text(body["id"]);
  if (id !== prose.messageId) begin(prose, id);
  prose.complete += proseOf(body);
  give(prose, prose.complete);
}

function begin(prose: Prose, messageId: string): void {
  prose.streamed = prose.complete = "";
  prose.messageId = messageId;
  if (!prose.isAbandoned) prose.given = "";
  prose.isInStep = !prose.given;
  prose.isAbandoned = prose.isAnswered = false;
}

/** Gives out what of `written`, the current message so far, was not given out yet. */
function give(prose: Prose, written: string): void {
  if (prose.given.startsWith(written)) {
    prose.isInStep = prose.streamed === prose.given;
    return;
  }
  // A retry may write another text, and what was given out cannot be withdrawn.
  const goesOn = written.startsWith(prose.given);
  const chunk = goesOn ? written.slice(prose.given.length) : written;
  add(prose, chunk, goesOn ? !prose.given && prose.hasGiven : true);
  prose.given = written;
  prose.isInStep = prose.streamed === written;
}

function add(prose: Prose, chunk: string, isNewMessage: boolean): void {
  prose.whole += isNewMessage ? PARAGRAPH + chunk : chunk;
  prose.hasGiven = true;
}

/** The text in the body of an assistant message. */
export function proseOf(body: JsonObject): string {
  return list(body["content"])
    .map(object)
    .filter((block) => block["type"] === "text")
    .map((block) => text(block["text"]))
    .join("");
}

/** The complete messages of a turn, joined: blocks of one message, then an empty line. */
export function joined(said: ReadonlyMap<string, string>): string {
  return [...said.values()].filter(Boolean).join(PARAGRAPH);
}
