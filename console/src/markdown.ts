// Markdown that a model wrote, which is hostile, as nodes of the page.
// HTML in it is shown as text; links lead to http(s) only; no image is loaded.

import DOMPurify from "dompurify";
import { Marked, type Tokens } from "marked";
import { visible } from "./visible";

const escapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

const escaped = (text: string): string => text.replace(/[&<>"']/g, (each) => escapes[each] ?? "");

/** The address if it is one of the web; empty otherwise. */
export function webAddress(address: string): string {
  try {
    const url = new URL(address);
    return url.protocol === "https:" || url.protocol === "http:" ? url.href : "";
  } catch {
    return "";
  }
}

const marked = new Marked({
  gfm: true,
  async: false,
  renderer: {
    html: ({ text }: Tokens.HTML | Tokens.Tag) => escaped(text),
    link({ href, tokens }: Tokens.Link) {
      const words = this.parser.parseInline(tokens);
      const address = webAddress(href);
      return address ? `<a href="${escaped(address)}">${words}</a>` : words;
    },
    image({ href, text }: Tokens.Image) {
      const address = webAddress(href);
      const words = `[image: ${escaped(text || href)}]`;
      return address ? `<a href="${escaped(address)}">${words}</a>` : words;
    },
    checkbox: ({ checked }: Tokens.Checkbox) => (checked ? "☑ " : "☐ "),
  },
});

const ALLOWED = {
  ALLOWED_TAGS: [
    ...["p", "br", "hr", "em", "strong", "del", "code", "pre", "blockquote", "a", "ul", "ol", "li"],
    ...["h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"],
  ],
  ALLOWED_ATTR: ["href", "start", "align", "class"],
  ALLOWED_URI_REGEXP: /^https?:/i,
  ALLOW_DATA_ATTR: false,
};

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  const allowed = /^language-[\w+#.-]+$/;
  if (node.hasAttribute("class") && !allowed.test(node.className)) node.removeAttribute("class");
  if (node.tagName === "A") {
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noopener noreferrer nofollow");
  }
  // These scroll, so keys must reach them.
  if (node.tagName === "PRE" || node.tagName === "TABLE") node.setAttribute("tabindex", "0");
});

/** The blocks of a text, each as its source: while a text grows, only its last block changes. */
export function blocksOf(text: string): string[] {
  try {
    return marked.lexer(text).map((token) => token.raw);
  } catch {
    return [text];
  }
}

/** How many blocks at the end may still change when the text grows: a list takes in what follows. */
const OPEN_BLOCKS = 4;

/** The blocks of a text that has grown; `before` are those of its beginning. */
export function moreBlocks(before: readonly string[], text: string): string[] {
  const kept = before.slice(0, -OPEN_BLOCKS);
  const length = kept.reduce((sum, block) => sum + block.length, 0);
  return [...kept, ...blocksOf(text.slice(length))];
}

/** One block as nodes. */
export function nodesOf(source: string): DocumentFragment {
  try {
    const html = marked.parse(source) as string;
    return seen(DOMPurify.sanitize(html, { ...ALLOWED, RETURN_DOM_FRAGMENT: true }));
  } catch {
    const fragment = document.createDocumentFragment();
    fragment.append(visible(source));
    return fragment;
  }
}

/** The nodes with visible texts; references such as `&#x202e;` are characters by now. */
function seen(fragment: DocumentFragment): DocumentFragment {
  const texts = document.createTreeWalker(fragment, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const { data } = texts.currentNode as Text;
    const drawn = visible(data);
    if (drawn !== data) (texts.currentNode as Text).data = drawn;
  }
  return fragment;
}
