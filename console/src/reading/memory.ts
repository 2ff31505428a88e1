// What the reducer remembers between two records, beside what is drawn.

import type { JsonObject } from "../json";
import { newProse, type Prose } from "./prose";

/** A content block that is being streamed. */
export interface Growing {
  kind: string;
  toolUseId: string;
  /** Where its item is in the list of its agent. */
  at: number;
  isSettled: boolean;
}

/** The message that an agent is writing. */
export interface Stream {
  messageId: string;
  blocks: Map<number, Growing>;
}

export interface OpenTurn {
  prose: Prose;
  /** The text of its complete messages, by message id. */
  said: Map<string, string>;
  isBroken: boolean;
}

export interface Memory {
  prose: Prose;
  open: Map<string, OpenTurn>;
  streams: Map<string, Stream>;
  /** The prompts that the last result ends. */
  endedBy: readonly string[];
  result: JsonObject | null;
  /** What the last result has added to the cost, until it is charged to a turn. */
  uncharged: number;
  /** The CLI's own total in the last result. */
  total: number;
  /** Whether a CLI has begun that has not used the model yet. */
  hasBegun: boolean;
  /** Request ids of running MCP calls, by server and number. */
  numbers: Map<string, string>;
  /** The subjects of `TaskCreate` calls without a result. */
  created: Map<string, string>;
}

export function newMemory(): Memory {
  return {
    prose: newProse(),
    open: new Map(),
    streams: new Map(),
    endedBy: [],
    result: null,
    uncharged: 0,
    total: 0,
    hasBegun: false,
    numbers: new Map(),
    created: new Map(),
  };
}

/** Returns a copy that may be changed; what is copied is small. */
export function copyOf(memory: Memory): Memory {
  return {
    ...memory,
    prose: { ...memory.prose },
    open: copied(memory.open, (turn) => ({
      ...turn,
      prose: { ...turn.prose },
      said: new Map(turn.said),
    })),
    streams: copied(memory.streams, (stream) => ({
      ...stream,
      blocks: copied(stream.blocks, (block) => ({ ...block })),
    })),
    numbers: new Map(memory.numbers),
    created: new Map(memory.created),
  };
}

function copied<K, V>(map: ReadonlyMap<K, V>, copy: (value: V) => V): Map<K, V> {
  return new Map([...map].map(([key, value]) => [key, copy(value)]));
}
