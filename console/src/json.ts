// Readers of JSON that somebody else wrote: each gives a value of its type, whatever it is given.

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [name: string]: Json | undefined;
}

const NOTHING: JsonObject = Object.freeze({});

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function object(value: unknown): JsonObject {
  return isObject(value) ? value : NOTHING;
}

export function list(value: unknown): readonly Json[] {
  return Array.isArray(value) ? (value as Json[]) : [];
}

export function text(value: unknown, otherwise = ""): string {
  return typeof value === "string" ? value : otherwise;
}

export function number(value: unknown, otherwise = 0): number {
  return typeof value === "number" && Number.isFinite(value) ? value : otherwise;
}

export function texts(value: unknown): string[] {
  return list(value).filter((each): each is string => typeof each === "string");
}

/** The JSON object in `source`; an empty one if there is none. */
export function parseObject(source: string): JsonObject {
  try {
    return object(JSON.parse(source));
  } catch {
    return NOTHING;
  }
}
