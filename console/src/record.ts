// The record of a journal entry, as the bridge sends it.

import { isObject, number, object, parseObject, text, texts, type JsonObject } from "./json";

export interface Rec {
  readonly seq: number;
  /** Seconds since the epoch. */
  readonly at: number;
  readonly kind: string;
  /** The uuids of the prompts that the entry belongs to. */
  readonly turns: readonly string[];
  readonly details: JsonObject;
  /** The line of the conversation; empty if the entry has none, or if it is not JSON. */
  readonly frame: JsonObject;
  /** The line as text, if it is not JSON. */
  readonly noise: string;
  /** Whether long values are left out; `/entries/{seq}` has them. */
  readonly isCut: boolean;
}

/** Reads one record; null if `found` is none. */
export function readRecord(found: unknown): Rec | null {
  if (!isObject(found) || typeof found["kind"] !== "string") return null;
  const written = typeof found["base64"] === "string" ? decoded(found["base64"]) : text(found["text"]);
  const frame = isObject(found["frame"]) ? found["frame"] : written ? parseObject(written) : object(null);
  return {
    seq: number(found["seq"]),
    at: number(found["at"]),
    kind: found["kind"],
    turns: texts(found["turns"]),
    details: object(found["details"]),
    frame,
    noise: "type" in frame ? "" : written,
    isCut: Array.isArray(found["cut"]) && found["cut"].length > 0,
  };
}

function decoded(base64: string): string {
  try {
    const bytes = Uint8Array.from(atob(base64), (each) => each.charCodeAt(0));
    return new TextDecoder().decode(bytes);
  } catch {
    return "";
  }
}
