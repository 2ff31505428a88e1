// Values as words: times, money, states.

import { object, text, type JsonObject } from "./json";
import type { Summary } from "./protocol";

export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 120) return `${whole} s`;
  if (whole < 7200) return `${Math.floor(whole / 60)} min`;
  if (whole < 172_800) return `${Math.floor(whole / 3600)} h`;
  return `${Math.floor(whole / 86_400)} days`;
}

export function ago(at: number, now: number): string {
  return now - at < 5 ? "just now" : `${duration(now - at)} ago`;
}

const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});

export function clock(at: number): string {
  return CLOCK.format(new Date(at * 1000));
}

export function moment(at: number): string {
  return new Date(at * 1000).toISOString();
}

export function money(dollars: number): string {
  if (!dollars) return "$0";
  return dollars < 0.01 ? `$${dollars.toFixed(4)}` : `$${dollars.toFixed(2)}`;
}

export function count(tokens: number): string {
  if (tokens < 1000) return String(Math.round(tokens));
  if (tokens < 10_000) return `${(tokens / 1000).toFixed(1)}k`;
  return tokens < 1_000_000 ? `${Math.round(tokens / 1000)}k` : `${(tokens / 1_000_000).toFixed(1)}M`;
}

export function plural(many: number, noun: string): string {
  return many === 1 ? `1 ${noun}` : `${many} ${noun}s`;
}

const STATES: Readonly<Record<string, string>> = {
  idle: "ready",
  starting: "starting",
  running: "working",
  waiting_tool_call: "running a tool",
  waiting_permission: "needs you",
  paused: "paused",
  completed: "ended",
  failed: "failed",
  cancelled: "cancelled",
  closed: "closed",
  broken_off: "broken off",
};

export function stateWords(state: string): string {
  return STATES[state] ?? state;
}

/** The class of a state, for its colour. */
export function toneOf(state: string): string {
  if (state === "waiting_permission") return "needs";
  if (state === "failed" || state === "broken_off") return "bad";
  if (state === "running" || state === "waiting_tool_call" || state === "starting") return "busy";
  return state === "paused" ? "paused" : "calm";
}

const AT_WORK = new Set(["running", "waiting_tool_call", "starting", "waiting_permission"]);

export function isAtWork(state: string): boolean {
  return AT_WORK.has(state);
}

/** What a session does, with the time that it has done so until `now`. */
export function lineOf(summary: Summary, asks: number, now: number): string {
  if (asks) return `needs you${asks > 1 ? ` (${asks} asks)` : ""} · ${duration(now - summary.since)}`;
  if (!isAtWork(summary.state)) return stateWords(summary.state);
  // The server's words, with a time that does not stand still.
  const words = summary.line.replace(/ \d+ (s|min|h)$/, "");
  return `${words || stateWords(summary.state)} · ${duration(now - summary.since)}`;
}

/** One line about a tool call: what a reader wants to know of its input. */
export function gist(name: string, input: JsonObject): string {
  const named = ["command", "file_path", "notebook_path", "pattern", "query", "url", "description", "subject", "skill", "prompt", "path"];
  for (const field of named) {
    const value = text(input[field]);
    if (value) return value.includes("\n") ? `${value.split("\n", 1)[0]} …` : value;
  }
  if (name === "AskUserQuestion") {
    const first = Array.isArray(input["questions"]) ? object(input["questions"][0]) : {};
    return text(object(first)["question"]);
  }
  const keys = Object.keys(input);
  return keys.length ? keys.map((key) => `${key}: ${short(input[key])}`).join(", ") : "";
}

/** A path without the folder of the session before it. */
export function within(path: string, folder: string): string {
  return folder && path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path;
}

function short(value: unknown): string {
  const shown = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return shown.length > 40 ? `${shown.slice(0, 40)}…` : shown;
}

/** The name of a tool for readers: `mcp__files__read` is `files: read`. */
export function toolName(name: string): string {
  const found = /^mcp__(.+?)__(.+)$/s.exec(name);
  return found ? `${found[1]}: ${found[2]}` : name;
}
