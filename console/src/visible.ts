// Characters of others that a reader cannot see, as escapes that a reader can see. The ranges and the form of
// the escapes are those of `steersman._terminal`; a test compares both, character by character.

import { options, type VNode } from "preact";

const CONTROLS = "\\0-\\x08\\x0b-\\x1f\\x7f-\\x9f\\ud800-\\udfff";
/** What orders text anew, what has no width, and what is drawn as nothing. */
const MARKS =
  "\\xad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u2800\\u3164" +
  "\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}";
/** What looks like a space, and separates no words of a command. */
const SPACES = "\\xa0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000";
/** What emoji are made of; between these, a joiner and a selector are seen by what they change. */
const PICTURES = "\\xa9\\xae\\u203c\\u2049\\u2122\\u2139\\u2190-\\u2bff\\u3030\\u303d\\u3297\\u3299\\u{1f000}-\\u{1faff}";
const IN_EMOJI = `(?<=[${PICTURES}])\\ufe0f|\\ufe0f(?=\\u20e3)|(?<=[${PICTURES}\\ufe0f])\\u200d(?=[${PICTURES}])`;

const UNSEEN = new RegExp(`(${IN_EMOJI})|[${CONTROLS}${MARKS}]`, "gu");
const UNSEEN_OR_SPACE = new RegExp(`[${CONTROLS}${MARKS}${SPACES}]`, "gu");
const UNSEEN_IN_LINE = new RegExp(`[\\t\\n${CONTROLS}${MARKS}${SPACES}]`, "gu");

const SHORT: Readonly<Record<string, string>> = { "\t": "\\t", "\n": "\\n", "\r": "\\r" };

function escape(found: string): string {
  const code = found.codePointAt(0) ?? 0;
  const [sign, digits] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
  return SHORT[found] ?? `\\${sign}${code.toString(16).padStart(digits, "0")}`;
}

/** Text for a reader: controls, marks of direction and what has no width are escapes. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (found, emoji?: string) => emoji ?? escape(found));
}

/** Text that will be run or written: also spaces that are none, and the parts of emoji. */
export function exact(text: string): string {
  return text.replace(UNSEEN_OR_SPACE, escape);
}

/** A name or a path: on one line. */
export function exactLine(text: string): string {
  return text.replace(UNSEEN_IN_LINE, escape);
}

const SHOWN = ["title", "aria-label", "alt", "placeholder"];

/** Lets the page draw no text in which something cannot be seen: every text passes here. */
export function drawVisibly(): void {
  const before = options.vnode;
  options.vnode = (node: VNode) => {
    const props = node.props as Record<string, unknown>;
    if (props["children"] !== undefined) props["children"] = shown(props["children"]);
    if (typeof node.type === "string") {
      for (const name of SHOWN) {
        if (typeof props[name] === "string") props[name] = visible(props[name]);
      }
    }
    before?.(node);
  };
}

function shown(children: unknown): unknown {
  if (typeof children === "string") return visible(children);
  return Array.isArray(children) ? children.map(shown) : children;
}
