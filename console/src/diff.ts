// Differences of two texts, line by line.

import { list, number, object, text, type Json } from "./json";

export interface Line {
  readonly sign: "+" | "-" | " " | "@";
  readonly text: string;
  /** The number in the new file, or in the old one if it was removed; 0 if unknown. */
  readonly number: number;
}

const MOST = 1200;

/** The lines of a `structuredPatch`, as the CLI gives it; null if it has none. */
export function patchLines(output: Json): Line[] | null {
  const hunks = list(object(output)["structuredPatch"]).map(object);
  if (!hunks.length) return null;
  return hunks.flatMap((hunk, at) => {
    let before = number(hunk["oldStart"], 1);
    let after = number(hunk["newStart"], 1);
    const lines: Line[] = at ? [{ sign: "@", text: "…", number: 0 }] : [];
    for (const each of list(hunk["lines"])) {
      const line = text(each);
      const sign = line[0] === "+" || line[0] === "-" ? line[0] : " ";
      lines.push({ sign, text: line.slice(1), number: sign === "-" ? before : after });
      if (sign !== "+") before += 1;
      if (sign !== "-") after += 1;
    }
    return lines;
  });
}

/** All lines of a new file. */
export function addedLines(content: string): Line[] {
  return split(content).map((line, at) => ({ sign: "+", text: line, number: at + 1 }));
}

/** The lines that differ between two texts, with what is equal between them. */
export function diffLines(before: string, after: string): Line[] {
  const [old, fresh] = [split(before), split(after)];
  let head = 0;
  while (head < old.length && head < fresh.length && old[head] === fresh[head]) head += 1;
  let tail = 0;
  while (
    tail < old.length - head &&
    tail < fresh.length - head &&
    old[old.length - 1 - tail] === fresh[fresh.length - 1 - tail]
  ) {
    tail += 1;
  }
  const kept = (lines: readonly string[]) => lines.map((line): Line => ({ sign: " ", text: line, number: 0 }));
  return [
    ...kept(old.slice(0, head)),
    ...changed(old.slice(head, old.length - tail), fresh.slice(head, fresh.length - tail)),
    ...kept(old.slice(old.length - tail)),
    ...atEnd(before, after),
  ];
}

/** Says that the last newline comes or goes: no line shows it. */
function atEnd(before: string, after: string): Line[] {
  const has = after.endsWith("\n");
  if (!before || !after || before.endsWith("\n") === has) return [];
  return [{ sign: "@", text: has ? "… and a newline at the end" : "… without the newline at the end", number: 0 }];
}

function split(content: string): string[] {
  if (!content) return [];
  return (content.endsWith("\n") ? content.slice(0, -1) : content).split("\n");
}

/** The longest common subsequence; without it if there is too much to compare. */
function changed(old: readonly string[], fresh: readonly string[]): Line[] {
  const removed = old.map((line): Line => ({ sign: "-", text: line, number: 0 }));
  const added = fresh.map((line): Line => ({ sign: "+", text: line, number: 0 }));
  if (!old.length || !fresh.length || old.length * fresh.length > MOST * MOST) return [...removed, ...added];
  const width = fresh.length + 1;
  const lengths = new Uint16Array((old.length + 1) * width);
  const length = (i: number, j: number) => lengths[i * width + j] ?? 0;
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = fresh.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] =
        old[i] === fresh[j] ? length(i + 1, j + 1) + 1 : Math.max(length(i + 1, j), length(i, j + 1));
    }
  }
  const lines: Line[] = [];
  let [i, j] = [0, 0];
  while (i < old.length && j < fresh.length) {
    if (old[i] === fresh[j]) {
      lines.push({ sign: " ", text: old[i] ?? "", number: 0 });
      i += 1;
      j += 1;
    } else if (length(i + 1, j) >= length(i, j + 1)) lines.push(removed[i++] as Line);
    else lines.push(added[j++] as Line);
  }
  return [...lines, ...removed.slice(i), ...added.slice(j)];
}
