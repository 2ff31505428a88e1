// One session in this tab: its records, and the picture made from them.

import { batch, signal } from "@preact/signals";
import { list, number } from "./json";
import { request, Refused, sessionPath } from "./http";
import type { Picture } from "./picture";
import { readRecord, type Rec } from "./record";
import { newPicture, reduce } from "./reduce";

const FIRST = 400;
const OLDER = 500;

export class SessionView {
  readonly picture = signal<Picture>(newPicture());
  /** Whether the newest entries are there. */
  readonly isLoaded = signal(false);
  readonly isLoading = signal(false);
  /** Whether there are older entries than those of the picture. */
  readonly hasOlder = signal(false);
  readonly failure = signal("");
  /** How many entries cannot be read any more, such as those that could not be stored. */
  readonly lost = signal(0);
  /** All records of the picture, oldest first; without partial ones of complete messages. */
  records: Rec[] = [];
  private arrived: Rec[] = [];
  private frame = 0;

  constructor(readonly id: string) {}

  /** The last record that arrived. */
  private get newest(): Rec | undefined {
    return this.arrived.at(-1) ?? this.records.at(-1);
  }

  /** The cursor: number and time of the last record that arrived. */
  get cursor(): { after: number; at?: number } {
    const newest = this.newest;
    return newest ? { after: newest.seq, at: newest.at } : { after: 0 };
  }

  /** Reads the newest entries; records that are followed come after them. */
  async load(): Promise<void> {
    if (this.isLoading.value) return;
    this.isLoading.value = true;
    this.failure.value = "";
    try {
      const found = await this.page(`limit=${FIRST}`);
      this.reset();
      batch(() => {
        this.records = found.records;
        this.hasOlder.value = found.more;
        this.picture.value = reduce(newPicture(), found.records);
        this.isLoaded.value = true;
      });
    } catch (error) {
      this.failure.value = error instanceof Refused ? error.message : String(error);
    } finally {
      this.isLoading.value = false;
    }
  }

  /** Reads older entries. The picture is made anew, because it is made from the oldest on. */
  async loadOlder(): Promise<void> {
    const first = this.records[0];
    if (!first || !this.hasOlder.value || this.isLoading.value) return;
    this.isLoading.value = true;
    try {
      const found = await this.page(`limit=${OLDER}&before=${first.seq}`);
      this.flush();
      batch(() => {
        this.records = [...found.records, ...this.records];
        this.hasOlder.value = found.more;
        this.picture.value = reduce(newPicture(), this.records);
      });
    } catch (error) {
      this.failure.value = error instanceof Refused ? error.message : String(error);
    } finally {
      this.isLoading.value = false;
    }
  }

  /** Reads an entry of which a part was left out, and makes the picture with all of it. */
  async loadWhole(seq: number): Promise<void> {
    try {
      const found = readRecord(await request("GET", sessionPath(this.id, `/entries/${seq}`)));
      if (!found) return;
      this.flush();
      this.records = this.records.map((each) => (each.seq === seq ? found : each));
      this.picture.value = reduce(newPicture(), this.records);
    } catch (error) {
      this.failure.value = error instanceof Refused ? error.message : String(error);
    }
  }

  /** Takes a record that arrived; many of them are drawn at once. */
  receive(record: Rec): void {
    if (record.seq <= (this.newest?.seq ?? 0)) return;
    this.arrived.push(record);
    if (this.frame) return;
    const draw = () => this.flush();
    // A hidden page has no frames, and its title must still count.
    this.frame = document.hidden ? window.setTimeout(draw, 50) : requestAnimationFrame(draw);
  }

  /** Forgets everything: the server has another journal. */
  reset(): void {
    this.arrived = [];
    this.records = [];
    this.isLoaded.value = false;
    this.lost.value = 0;
    this.picture.value = newPicture();
  }

  private flush(): void {
    this.frame = 0;
    if (!this.arrived.length) return;
    const records = this.arrived;
    this.arrived = [];
    this.records = [...withoutOldPartials(this.records, records), ...records];
    this.picture.value = reduce(this.picture.value, records);
  }

  private async page(query: string): Promise<{ records: Rec[]; more: boolean; last: number }> {
    const found = await request("GET", sessionPath(this.id, `/entries?${query}`));
    const records = list(found["entries"])
      .map(readRecord)
      .filter((each): each is Rec => each !== null);
    return { records, more: found["more"] === true, last: number(found["last"]) };
  }
}

/** Once a message is complete, the partial ones before it say nothing more. */
function withoutOldPartials(known: Rec[], arrived: readonly Rec[]): Rec[] {
  const isComplete = arrived.some((each) => each.kind === "message" && each.frame["type"] === "assistant");
  return isComplete ? known.filter((each) => each.kind !== "partial") : known;
}
