// Records of a journal in, the picture of the session out. Pure: no clock, no network, no page.
// A record that cannot be read becomes a note; it never stops the ones after it.

import { list, number, object, text, type JsonObject } from "./json";
import type { Picture, State } from "./picture";
import { closeAll, readAsked, readControl, readDecided, readResponse } from "./reading/asks";
import { drop, parentOf, readAssistant, readEvent } from "./reading/blocks";
import { Draft } from "./reading/draft";
import { newMemory } from "./reading/memory";
import { loseTasks, readTask, readTodos } from "./reading/tasks";
import {
  breakTurns,
  feedTurns,
  imagesIn,
  keepSaid,
  promptText,
  readPrompt,
  readResult,
  readSettled,
  readTotals,
  readUsage,
} from "./reading/turns";
import type { Rec } from "./record";

const STATES: ReadonlySet<string> = new Set<State>([
  "idle",
  "starting",
  "running",
  "waiting_tool_call",
  "waiting_permission",
  "paused",
  "completed",
  "failed",
  "cancelled",
]);
const OVER: ReadonlySet<string> = new Set<State>(["completed", "failed", "cancelled"]);

/** The picture of a session of which nothing is known. */
export function newPicture(): Picture {
  return {
    firstSeq: 0,
    lastSeq: 0,
    sessionId: "",
    title: "",
    model: "",
    mode: "",
    cwd: "",
    version: "",
    state: "idle",
    since: 0,
    history: [],
    lists: new Map(),
    calls: new Map(),
    turns: new Map(),
    asks: new Map(),
    tasks: new Map(),
    todos: [],
    cost: 0,
    context: 0,
    window: 0,
    retry: null,
    status: "",
    sent: 0,
    memory: newMemory(),
  };
}

/** Returns the picture after `records`. A record that is in the picture already changes nothing. */
export function reduce(picture: Picture, records: readonly Rec[]): Picture {
  const draft = new Draft(picture);
  for (const record of records) {
    if (record.seq && record.seq <= draft.now.lastSeq) continue;
    try {
      read(draft, record);
    } catch (error) {
      draft.note(record.seq, record.at, "error", `Entry ${record.seq} cannot be shown.`, String(error));
    }
    draft.now.firstSeq ||= record.seq;
    draft.now.lastSeq = Math.max(draft.now.lastSeq, record.seq);
  }
  return draft.now;
}

function read(draft: Draft, record: Rec): void {
  const { details, frame, at, seq } = record;
  switch (record.kind) {
    case "message":
      readMessage(draft, record);
      break;
    case "partial":
      if ("abandoned_blocks" in frame) breakTurns(draft, record.turns);
      readEvent(draft, record);
      break;
    case "control":
      readControl(draft, record);
      readTotals(draft, frame);
      break;
    case "sent":
      readResponse(draft, frame);
      if (object(frame["request"])["subtype"] === "initialize") draft.memory.hasBegun = true;
      readPrompt(draft, record);
      break;
    case "phase":
      readPhase(draft, record);
      break;
    case "settled":
      feedTurns(draft, record);
      readSettled(draft, record);
      return;
    case "asked":
      readAsked(draft, record);
      break;
    case "decided":
      readDecided(draft, details);
      break;
    case "restarted":
      breakTurns(draft, draft.memory.open.keys());
      loseCli(draft, at);
      closeAll(draft);
      draft.note(seq, at, "warning", `The CLI was lost (${text(details["cause"], "unknown cause")}) and started again.`);
      break;
    default:
      readOther(draft, record);
  }
  feedTurns(draft, record);
}

function readPhase(draft: Draft, record: Rec): void {
  const after = text(record.details["after"]);
  if (!STATES.has(after)) return;
  const change = { at: record.at, before: draft.now.state, after: after as State };
  draft.now.history = [...draft.now.history, change];
  draft.now.state = change.after;
  draft.now.since = record.at;
  if (OVER.has(after)) {
    closeAll(draft);
    loseCli(draft, record.at);
  }
}

/** Ends what ran in a CLI that is gone: nothing in the picture stays at work for ever. */
function loseCli(draft: Draft, at: number): void {
  draft.now.retry = null;
  draft.now.status = "";
  for (const parent of draft.memory.streams.keys()) drop(draft, parent);
  for (const call of draft.now.calls.values()) {
    if (call.state === "running" || call.state === "writing") {
      draft.change(call.id, { state: "lost", ended: at });
    }
  }
  loseTasks(draft, at);
}

// Messages of the CLI

function readMessage(draft: Draft, record: Rec): void {
  const { frame } = record;
  draft.now.sessionId = text(frame["session_id"]) || draft.now.sessionId;
  if (frame["subtype"] !== "api_retry") draft.now.retry = null;
  if (frame["type"] === "assistant" || frame["type"] === "result") draft.memory.hasBegun = false;
  switch (frame["type"]) {
    case "assistant":
      keepSaid(draft, record);
      readUsage(draft, frame);
      readAssistant(draft, record);
      readBegunCalls(draft, frame);
      break;
    case "user":
      readUser(draft, record);
      break;
    case "result":
      readResult(draft, record);
      break;
    case "system":
      readSystem(draft, record);
      break;
    case "conversation_reset":
      draft.note(record.seq, record.at, "notice", "The conversation was cleared.");
      break;
  }
}

function readBegunCalls(draft: Draft, frame: JsonObject): void {
  for (const block of list(object(frame["message"])["content"]).map(object)) {
    const call = draft.now.calls.get(text(block["id"]));
    if (call?.name === "TodoWrite") readTodos(draft, call);
  }
}

function readUser(draft: Draft, record: Rec): void {
  const { frame, at, seq } = record;
  const content = object(frame["message"])["content"];
  const results = list(content).map(object).filter((block) => block["type"] === "tool_result");
  for (const block of results) endCall(draft, record, block);
  if (results.length) return;
  const parent = parentOf(frame);
  const words = promptText(content);
  if (parent) {
    const images = imagesIn(content);
    draft.push(parent, { kind: "prompt", key: `u${seq}`, at, uuid: "", text: words, images });
  } else if (words) {
    draft.note(seq, at, "quiet", firstLine(words), words);
  }
}

function endCall(draft: Draft, record: Rec, block: JsonObject): void {
  const id = text(block["tool_use_id"]);
  const call = draft.now.calls.get(id);
  if (!call || call.ended !== null) return;
  draft.change(id, {
    state: block["is_error"] === true ? "failed" : "done",
    ended: record.at,
    partial: "",
    content: block["content"] ?? null,
    output: record.frame["tool_use_result"] ?? null,
    agent: call.agent || text(record.frame["agent_id"]),
    cut: record.isCut ? [...call.cut, record.seq] : call.cut,
  });
  const ended = draft.now.calls.get(id);
  if (ended) readTodos(draft, ended);
}

function readSystem(draft: Draft, record: Rec): void {
  const { frame, at, seq } = record;
  if (readTask(draft, frame, at)) return;
  switch (frame["subtype"]) {
    case "init":
      draft.now.model = text(frame["model"], draft.now.model);
      draft.now.mode = text(frame["permissionMode"], draft.now.mode);
      draft.now.cwd = text(frame["cwd"], draft.now.cwd);
      draft.now.version = text(frame["claude_code_version"], draft.now.version);
      break;
    case "status":
      draft.now.mode = text(frame["permissionMode"], draft.now.mode);
      draft.now.status = text(frame["status"]);
      break;
    case "api_retry":
      draft.now.retry = {
        attempt: number(frame["attempt"]),
        most: number(frame["max_retries"]),
        until: at + number(frame["retry_delay_ms"]) / 1000,
        error: text(frame["error"]),
      };
      break;
    case "session_title_changed":
      draft.now.title = text(frame["title"]);
      break;
    case "compact_boundary": {
      const after = number(object(frame["compact_metadata"])["post_tokens"]);
      if (after) draft.now.context = after;
      draft.note(seq, at, "notice", "The conversation was compacted.");
      break;
    }
    case "informational":
    case "model_fallback":
      draft.note(seq, at, "notice", text(frame["content"]));
      break;
    case "notification":
      draft.note(seq, at, "notice", text(frame["text"]));
      break;
  }
}

// Entries that are not lines of the conversation

function readOther(draft: Draft, record: Rec): void {
  const { details, at, seq } = record;
  const facts = () => JSON.stringify(details, null, 2);
  switch (record.kind) {
    case "fault":
      draft.note(seq, at, "error", `A callback failed: ${text(details["where"])}: ${text(details["error"])}`);
      break;
    case "tool_failed":
      draft.note(seq, at, "warning", "A tool of the host program raised an error.", facts());
      break;
    case "stalled":
      draft.note(seq, at, "warning", "The CLI has been silent.", facts());
      break;
    case "limit":
      draft.note(seq, at, "warning", `Limit: ${text(details["name"], "a limit")} is near or reached.`, facts());
      break;
    case "server": {
      const error = text(details["error"]);
      if (error) draft.note(seq, at, "warning", `MCP server ${text(details["name"])}: ${error}`);
      break;
    }
    case "noise":
    case "oversize":
    case "torn":
      draft.note(seq, at, "quiet", "A line that cannot be read.", record.noise || facts());
      break;
  }
}

function firstLine(words: string): string {
  const line = words.trimStart().split("\n", 1)[0] ?? "";
  return line.length > 120 ? `${line.slice(0, 120)}…` : line;
}
