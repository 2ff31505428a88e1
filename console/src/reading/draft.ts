// A picture that is being changed. What a batch of records does not touch stays the same object.

import type { Call, Item, NoteItem, Picture } from "../picture";
import { copyOf, type Memory } from "./memory";

type Maps = "lists" | "calls" | "turns" | "asks" | "tasks";
type ValueOf<M> = M extends ReadonlyMap<string, infer V> ? V : never;
type Writable<T> = { -readonly [K in keyof T]: T[K] };

export class Draft {
  readonly now: Writable<Picture>;
  readonly memory: Memory;
  private readonly maps = new Set<Maps>();
  private readonly owned = new Set<string>();

  constructor(before: Picture) {
    this.memory = copyOf(before.memory);
    this.now = { ...before, memory: this.memory };
  }

  /** The map `name`, to be changed. */
  map<K extends Maps>(name: K): Map<string, ValueOf<Picture[K]>> {
    if (!this.maps.has(name)) {
      this.maps.add(name);
      Object.assign(this.now, { [name]: new Map<string, unknown>(this.now[name]) });
    }
    return this.now[name] as unknown as Map<string, ValueOf<Picture[K]>>;
  }

  /** The items of the agent that `parent` started, to be changed. */
  items(parent: string): Item[] {
    const lists = this.map("lists");
    if (!this.owned.has(parent)) {
      this.owned.add(parent);
      lists.set(parent, [...(lists.get(parent) ?? [])]);
    }
    return lists.get(parent) as Item[];
  }

  push(parent: string, item: Item): number {
    return this.items(parent).push(item) - 1;
  }

  note(seq: number, at: number, tone: NoteItem["tone"], text: string, more = ""): void {
    this.push("", { kind: "note", key: `n${seq}`, at, tone, text, more });
  }

  change(id: string, facts: Partial<Call>): void {
    const call = this.now.calls.get(id);
    if (call) this.map("calls").set(id, { ...call, ...facts });
  }
}
