// Content blocks while they are streamed, and the complete messages that replace them.

import { isObject, list, object, text, type JsonObject } from "../json";
import type { Item } from "../picture";
import type { Rec } from "../record";
import type { Draft } from "./draft";
import type { Growing, Stream } from "./memory";

const DELTAS: Readonly<Record<string, string>> = {
  text_delta: "text",
  thinking_delta: "thinking",
  input_json_delta: "partial_json",
};

export function parentOf(frame: JsonObject): string {
  return text(frame["parent_tool_use_id"]);
}

/** Reads a `stream_event`. */
export function readEvent(draft: Draft, record: Rec): void {
  const parent = parentOf(record.frame);
  const event = object(record.frame["event"]);
  const index = event["index"];
  switch (event["type"]) {
    case "message_start":
      begin(draft, parent, text(object(event["message"])["id"]));
      break;
    case "content_block_start":
      if (typeof index === "number") start(draft, record, parent, index, object(event["content_block"]));
      break;
    case "content_block_delta":
      if (typeof index === "number") grow(draft, parent, index, object(event["delta"]));
      break;
    case "message_stop":
      if ("abandoned_blocks" in record.frame) {
        const from = object(record.frame["abandoned_blocks"])["from_block_index"];
        drop(draft, parent, typeof from === "number" ? from : 0);
      }
      break;
  }
}

/** Reads a complete assistant message. */
export function readAssistant(draft: Draft, record: Rec): void {
  const frame = record.frame;
  const parent = parentOf(frame);
  const body = object(frame["message"]);
  const id = text(body["id"]);
  if (streamOf(draft, parent).messageId !== id) begin(draft, parent, id);
  list(body["content"]).forEach((block, at) => {
    complete(draft, record, parent, object(block), at);
  });
}

/** Drops what an agent has begun and not completed. */
export function drop(draft: Draft, parent: string, from = 0): void {
  const stream = draft.memory.streams.get(parent);
  if (!stream) return;
  for (const [index, block] of stream.blocks) {
    if (index < from || block.isSettled) continue;
    block.isSettled = true;
    const items = draft.items(parent);
    const known = items[block.at];
    if (known) items[block.at] = { kind: "gone", key: known.key, at: known.at };
    if (block.toolUseId) draft.map("calls").delete(block.toolUseId);
  }
}

function streamOf(draft: Draft, parent: string): Stream {
  let stream = draft.memory.streams.get(parent);
  if (!stream) {
    stream = { messageId: "", blocks: new Map() };
    draft.memory.streams.set(parent, stream);
  }
  return stream;
}

function begin(draft: Draft, parent: string, messageId: string): void {
  drop(draft, parent);
  draft.memory.streams.set(parent, { messageId, blocks: new Map() });
}

function start(draft: Draft, record: Rec, parent: string, index: number, block: JsonObject): void {
  const kind = text(block["type"]);
  const key = `b${record.seq}`;
  const toolUseId = kind === "tool_use" ? text(block["id"]) : "";
  if (toolUseId && draft.now.calls.has(toolUseId)) return;
  let item: Item = { kind: "gone", key, at: record.at };
  if (kind === "text" || kind === "thinking") {
    item = { kind, key, at: record.at, text: "", isGrowing: true };
  } else if (toolUseId) {
    item = { kind: "call", key, at: record.at, id: toolUseId };
    addCall(draft, record, parent, block, "writing");
  }
  const at = draft.push(parent, item);
  streamOf(draft, parent).blocks.set(index, { kind, toolUseId, at, isSettled: false });
}

function grow(draft: Draft, parent: string, index: number, delta: JsonObject): void {
  const block = draft.memory.streams.get(parent)?.blocks.get(index);
  const added = text(delta[DELTAS[text(delta["type"])] ?? ""]);
  if (!block || block.isSettled || !added) return;
  const known = draft.items(parent)[block.at];
  if (known?.kind === "text" || known?.kind === "thinking") {
    draft.items(parent)[block.at] = { ...known, text: known.text + added };
  } else if (known?.kind === "call") {
    const call = draft.now.calls.get(known.id);
    if (call) draft.change(known.id, { partial: call.partial + added });
  }
}

function complete(draft: Draft, record: Rec, parent: string, block: JsonObject, at: number): void {
  const growing = growingFor(streamOf(draft, parent), block);
  if (growing) growing.isSettled = true;
  const key = `m${record.seq}.${at}`;
  const found = completeItem(draft, record, parent, block, key);
  if (!found) return;
  const item = record.isCut ? { ...found, cut: record.seq } : found;
  const items = draft.items(parent);
  const known = growing ? items[growing.at] : undefined;
  if (growing && known) items[growing.at] = { ...item, key: known.key, at: known.at };
  else items.push(item);
}

function growingFor(stream: Stream, block: JsonObject): Growing | undefined {
  const kind = text(block["type"]);
  return [...stream.blocks.values()].find(
    (each) =>
      !each.isSettled && each.kind === kind && (kind !== "tool_use" || each.toolUseId === block["id"]),
  );
}

function completeItem(
  draft: Draft,
  record: Rec,
  parent: string,
  block: JsonObject,
  key: string,
): Item | null {
  const { at } = record;
  const isError = record.frame["is_api_error_message"] === true;
  switch (block["type"]) {
    case "text":
      if (isError) return { kind: "note", key, at, tone: "error", text: text(block["text"]), more: "" };
      return { kind: "text", key, at, text: text(block["text"]), isGrowing: false };
    case "thinking":
      return { kind: "thinking", key, at, text: text(block["thinking"]), isGrowing: false };
    case "tool_use": {
      const id = text(block["id"]);
      const known = draft.now.calls.get(id);
      if (isError || (known && known.state !== "writing")) return null;
      addCall(draft, record, parent, block, "running");
      return { kind: "call", key, at, id };
    }
    default: {
      const more = JSON.stringify(block, null, 2);
      return { kind: "note", key, at, tone: "quiet", text: text(block["type"], "block"), more };
    }
  }
}

function addCall(
  draft: Draft,
  record: Rec,
  parent: string,
  block: JsonObject,
  state: "writing" | "running",
): void {
  const id = text(block["id"]);
  draft.map("calls").set(id, {
    id,
    name: text(block["name"], "tool"),
    input: isObject(block["input"]) ? block["input"] : {},
    partial: "",
    parent,
    agent: text(record.frame["agent_id"]),
    turns: record.turns,
    started: record.at,
    ended: null,
    state,
    content: null,
    output: null,
    decision: draft.now.calls.get(id)?.decision ?? null,
    cut: record.isCut ? [record.seq] : [],
  });
}
