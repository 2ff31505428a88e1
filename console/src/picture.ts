// The picture of a session: what the views draw. Values only; `reduce.ts` makes them.

import type { Json, JsonObject } from "./json";
import type { Memory } from "./reading/memory";

export type State =
  | "idle"
  | "starting"
  | "running"
  | "waiting_tool_call"
  | "waiting_permission"
  | "paused"
  | "completed"
  | "failed"
  | "cancelled";

export type Outcome = "completed" | "failed" | "interrupted" | "cancelled";

export interface Image {
  readonly mediaType: string;
  /** Base64. */
  readonly data: string;
}

interface Base {
  /** Unique in its list, and the same while the item grows. */
  readonly key: string;
  readonly at: number;
  /** The number of the entry of which a part is left out; absent if it is whole. */
  readonly cut?: number;
}

export interface PromptItem extends Base {
  readonly kind: "prompt";
  readonly uuid: string;
  readonly text: string;
  readonly images: readonly Image[];
}

export interface TextItem extends Base {
  readonly kind: "text" | "thinking";
  readonly text: string;
  readonly isGrowing: boolean;
}

export interface CallItem extends Base {
  readonly kind: "call";
  readonly id: string;
}

export interface NoteItem extends Base {
  readonly kind: "note";
  readonly tone: "quiet" | "notice" | "warning" | "error";
  readonly text: string;
  /** More of it, shown on demand. */
  readonly more: string;
}

export interface EndItem extends Base {
  readonly kind: "end";
  readonly uuid: string;
}

/** A block that the model began and dropped: nothing is drawn for it. */
export interface GoneItem extends Base {
  readonly kind: "gone";
}

export type Item = PromptItem | TextItem | CallItem | NoteItem | EndItem | GoneItem;

export interface Decision {
  readonly verdict: string;
  readonly source: string;
  readonly by: string;
  readonly reason: string;
}

export interface Call {
  readonly id: string;
  readonly name: string;
  readonly input: JsonObject;
  /** The JSON of the input as far as it was streamed; empty once `input` is whole. */
  readonly partial: string;
  readonly parent: string;
  readonly agent: string;
  readonly turns: readonly string[];
  readonly started: number;
  readonly ended: number | null;
  /** `writing` while its input is streamed; `lost` if its CLI has exited. */
  readonly state: "writing" | "running" | "done" | "failed" | "lost";
  /** The content of the tool result: a text, or blocks. */
  readonly content: Json;
  /** The output of the tool as the CLI has it; null if it gave none. */
  readonly output: Json;
  readonly decision: Decision | null;
  /** The numbers of the entries of which a part is left out: the call's, or the result's. */
  readonly cut: readonly number[];
}

export interface Turn {
  readonly uuid: string;
  readonly prompt: string;
  /** What the main agent said, once the turn has settled. */
  readonly text: string;
  readonly sent: number;
  readonly settled: number | null;
  readonly outcome: Outcome | null;
  readonly reason: string;
  readonly cost: number;
  readonly context: number;
}

export interface Change {
  readonly at: number;
  readonly before: State;
  readonly after: State;
}

export interface OpenAsk {
  readonly id: string;
  readonly subtype: string;
  readonly request: JsonObject;
  readonly since: number;
  /** Whether it waits for a person, and not for the host program. */
  readonly isAsked: boolean;
}

export interface Todo {
  readonly id: string;
  readonly text: string;
  readonly status: string;
}

export interface Task {
  readonly id: string;
  readonly toolUseId: string;
  readonly type: string;
  readonly agentType: string;
  readonly description: string;
  readonly state: string;
  readonly started: number;
  readonly ended: number | null;
  readonly isBackground: boolean;
  readonly doing: string;
  readonly summary: string;
  readonly tokens: number;
  readonly toolUses: number;
}

export interface Retry {
  readonly attempt: number;
  readonly most: number;
  readonly until: number;
  readonly error: string;
}

export interface Picture {
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly sessionId: string;
  readonly title: string;
  readonly model: string;
  readonly mode: string;
  readonly cwd: string;
  readonly version: string;
  readonly state: State;
  readonly since: number;
  readonly history: readonly Change[];
  /** The items of the main agent under the empty text, those of subagents under their call. */
  readonly lists: ReadonlyMap<string, readonly Item[]>;
  /** Tool calls by `tool_use_id`. */
  readonly calls: ReadonlyMap<string, Call>;
  readonly turns: ReadonlyMap<string, Turn>;
  readonly asks: ReadonlyMap<string, OpenAsk>;
  readonly tasks: ReadonlyMap<string, Task>;
  readonly todos: readonly Todo[];
  readonly cost: number;
  /** Tokens in the context of the last request; 0 if unknown. */
  readonly context: number;
  /** How many fit; 0 if unknown. */
  readonly window: number;
  readonly retry: Retry | null;
  /** What the CLI says that it does, such as `compacting`. */
  readonly status: string;
  /** How many prompts were sent. */
  readonly sent: number;
  readonly memory: Memory;
}
