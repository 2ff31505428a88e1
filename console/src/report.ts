// What a journal contains, in the form that tests compare with `steersman.journal.replaying.replay`.

import type { Json } from "./json";
import { readRecord, type Rec } from "./record";
import { newPicture, reduce } from "./reduce";

export { exact, visible } from "./visible";
export { newPicture, readRecord, reduce };

/** Reads a journal, `batch` records at a time, and reports text, tools, states and outcomes. */
export function report(lines: readonly unknown[], batch = lines.length): Json {
  const records = lines.map(readRecord).filter((each): each is Rec => each !== null);
  let picture = newPicture();
  for (let at = 0; at < records.length; at += Math.max(1, batch)) {
    picture = reduce(picture, records.slice(at, at + Math.max(1, batch)));
  }
  const calls = [...picture.calls.values()].filter((call) => call.state !== "writing");
  return {
    text: picture.memory.prose.whole,
    session: picture.sessionId,
    cost: picture.cost,
    history: ["idle", ...picture.history.map((change) => change.after)],
    asks: [...picture.asks.keys()],
    tasks: [...picture.tasks.values()].filter((task) => task.ended === null).map((task) => task.id),
    turns: [...picture.turns.values()]
      .filter((turn) => turn.outcome !== null)
      .map((turn) => ({
        uuid: turn.uuid,
        outcome: turn.outcome,
        text: turn.text,
        cost: turn.cost,
      })),
    calls: calls.map((call) => ({
      id: call.id,
      name: call.name,
      input: call.input,
      parent: call.parent,
      failed: call.state === "failed" ? true : call.state === "done" ? false : null,
    })),
    shown: [...picture.lists.values()]
      .flat()
      .filter((item) => item.kind === "note" && item.text.endsWith("cannot be shown."))
      .map((item) => item.key),
  };
}
