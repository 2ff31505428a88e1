// Prompts, results and what each turn cost.

import { list, number, object, text, texts, type JsonObject } from "../json";
import type { Image, Outcome, Turn } from "../picture";
import type { Rec } from "../record";
import { drop } from "./blocks";
import type { Draft } from "./draft";
import { feedProse, joined, newProse, proseOf } from "./prose";

const SINCE = "model_usage_since_last_result";

/** Reads a line that was sent with a prompt. */
export function readPrompt(draft: Draft, record: Rec): void {
  for (const uuid of record.turns) {
    if (draft.memory.open.has(uuid)) continue;
    const content = object(record.frame["message"])["content"];
    const prompt = promptText(content);
    draft.memory.open.set(uuid, { prose: newProse(), said: new Map(), isBroken: false });
    draft.now.sent += 1;
    draft.map("turns").set(uuid, newTurn(uuid, prompt, record.at));
    draft.push("", {
      kind: "prompt",
      key: `p${record.seq}`,
      at: record.at,
      uuid,
      text: prompt,
      images: imagesIn(content),
      ...(record.isCut ? { cut: record.seq } : {}),
    });
  }
}

/** Feeds the record to the text of its turns; to be called after the record was read. */
export function feedTurns(draft: Draft, record: Rec): void {
  feedProse(draft.memory.prose, record);
  for (const uuid of record.turns) {
    const turn = draft.memory.open.get(uuid);
    if (turn) feedProse(turn.prose, record);
  }
}

/** Keeps the complete message for the text of its turns. */
export function keepSaid(draft: Draft, record: Rec): void {
  const { frame } = record;
  if (text(frame["parent_tool_use_id"]) || frame["is_api_error_message"] === true) return;
  const body = object(frame["message"]);
  const id = text(body["id"]);
  for (const uuid of record.turns) {
    const said = draft.memory.open.get(uuid)?.said;
    said?.set(id, (said.get(id) ?? "") + proseOf(body));
  }
}

/** Marks the turns whose stream broke off: their text is what was given out. */
export function breakTurns(draft: Draft, uuids: Iterable<string>): void {
  for (const uuid of uuids) {
    const turn = draft.memory.open.get(uuid);
    if (turn) turn.isBroken = true;
  }
}

/** Reads a `result`. */
export function readResult(draft: Draft, record: Rec): void {
  const { frame } = record;
  const { memory } = draft;
  const named = texts(frame["user_message_uuids"]);
  const one = text(frame["user_message_uuid"]);
  memory.endedBy = named.length ? named : one ? [one] : record.turns;
  memory.result = frame;
  const total = number(frame["total_cost_usd"]);
  memory.uncharged = addedBy(frame, total, memory.total);
  memory.total = total;
  draft.now.cost += memory.uncharged;
  for (const usage of Object.values(object(frame["modelUsage"]))) {
    const window = number(object(usage)["contextWindow"]);
    if (window) draft.now.window = window;
  }
}

/** Reads a control line: a CLI that resumes a conversation is asked for its totals before it uses the model. */
export function readTotals(draft: Draft, frame: JsonObject): void {
  const { memory } = draft;
  if (!memory.hasBegun || frame["type"] !== "control_response") return;
  const total = object(object(object(frame["response"])["response"])["session"])["total_cost_usd"];
  if (typeof total === "number") {
    memory.total = total;
    memory.hasBegun = false;
  }
}

function addedBy(frame: JsonObject, total: number, before: number): number {
  if (SINCE in frame) {
    const models = Object.values(object(frame[SINCE]));
    return models.reduce((sum: number, each) => sum + number(object(each)["costUSD"]), 0);
  }
  // A smaller total means that the CLI has reset it, as `/clear` does.
  return total < before ? total : total - before;
}

/** Reads a `settled` entry. */
export function readSettled(draft: Draft, record: Rec): void {
  drop(draft, "");
  const found = text(record.details["text"]);
  if (found) {
    draft.push("", { kind: "text", key: `t${record.seq}`, at: record.at, text: found, isGrowing: false });
  }
  for (const uuid of record.turns) settle(draft, record, uuid);
}

function settle(draft: Draft, record: Rec, uuid: string): void {
  const { details } = record;
  const { memory } = draft;
  const given = details["has_result"];
  const hasResult = typeof given === "boolean" ? given : memory.endedBy.includes(uuid);
  const open = memory.open.get(uuid);
  memory.open.delete(uuid);
  const isWhole = hasResult && !open?.isBroken;
  const known = draft.now.turns.get(uuid);
  let cost = 0;
  if (hasResult && memory.result) {
    cost = memory.uncharged;
    memory.uncharged = 0;
  }
  draft.map("turns").set(uuid, {
    ...(known ?? newTurn(uuid, "", record.at)),
    text: !open ? "" : isWhole ? joined(open.said) : open.prose.whole,
    settled: record.at,
    outcome: text(details["outcome"], "completed") as Outcome,
    reason: text(details["reason"]) || text(details["cause"]),
    cost,
    context: draft.now.context,
  });
  if (known) draft.push("", { kind: "end", key: `e${record.seq}`, at: record.at, uuid });
}

/** Counts the tokens in the context of the main agent. */
export function readUsage(draft: Draft, frame: JsonObject): void {
  if (text(frame["parent_tool_use_id"])) return;
  const usage = object(object(frame["message"])["usage"]);
  const used =
    number(usage["input_tokens"]) +
    number(usage["cache_read_input_tokens"]) +
    number(usage["cache_creation_input_tokens"]) +
    number(usage["output_tokens"]);
  if (used) draft.now.context = used;
}

function newTurn(uuid: string, prompt: string, sent: number): Turn {
  return {
    uuid,
    prompt,
    text: "",
    sent,
    settled: null,
    outcome: null,
    reason: "",
    cost: 0,
    context: 0,
  };
}

/** The text of a prompt: a text, or the texts among its blocks. */
export function promptText(content: unknown): string {
  if (typeof content === "string") return content;
  return list(content)
    .map(object)
    .map((block) => text(block["text"]) || (block["type"] === "document" ? `[${text(block["title"], "document")}]` : ""))
    .filter(Boolean)
    .join("\n\n");
}

/** The images in a content that are in the line itself; others are never loaded. */
export function imagesIn(content: unknown): Image[] {
  return list(content)
    .map(object)
    .filter((block) => block["type"] === "image")
    .map((block) => object(block["source"]))
    .filter((source) => source["type"] === "base64")
    .map((source) => ({ mediaType: text(source["media_type"]), data: text(source["data"]) }));
}
