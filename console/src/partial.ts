// JSON that is still being written, as far as it has come.

import { object, type JsonObject } from "./json";

/** The object in the beginning of a JSON text: open strings, lists and objects are closed. */
export function partialObject(source: string): JsonObject {
  const whole = parsed(source);
  if (whole) return whole;
  const { closing, inString, safe } = scan(source);
  const endings = inString ? [`${unescaped(source)}"${closing}`, safe] : [`${source}${closing}`, safe];
  for (const each of endings) {
    const found = parsed(each);
    if (found) return found;
  }
  return {};
}

function parsed(source: string): JsonObject | null {
  try {
    return object(JSON.parse(source));
  } catch {
    return null;
  }
}

/** Without an escape that is cut off at the end. */
function unescaped(source: string): string {
  return source.replace(/\\(u[0-9a-fA-F]{0,3})?$/, "");
}

interface Scan {
  /** What closes the open lists and objects. */
  closing: string;
  inString: boolean;
  /** The text up to the last complete value, closed. */
  safe: string;
}

function scan(source: string): Scan {
  const open: string[] = [];
  let inString = false;
  let safeEnd = 0;
  let safeOpen = "";
  const closed = () => [...open].reverse().join("");
  for (let at = 0; at < source.length; at += 1) {
    const char = source[at];
    if (inString) {
      if (char === "\\") at += 1;
      else if (char === '"') inString = false;
      continue;
    }
    if (char === '"') inString = true;
    else if (char === "{") open.push("}");
    else if (char === "[") open.push("]");
    else if (char === "}" || char === "]") open.pop();
    if (char === "{" || char === "[") [safeEnd, safeOpen] = [at + 1, closed()];
    else if (char === "," || char === "}" || char === "]") {
      [safeEnd, safeOpen] = [char === "," ? at : at + 1, closed()];
    }
  }
  return { closing: closed(), inString, safe: source.slice(0, safeEnd) + safeOpen };
}
