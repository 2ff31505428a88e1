// Where the reader is: what stands after `#`.

import { signal } from "@preact/signals";

export type Tab = "conversation" | "overview" | "journal";

export type Route =
  | { readonly view: "new" }
  /** On a phone the list; beside it, on wide pages, what `new` shows. */
  | { readonly view: "list" }
  | { readonly view: "asks" }
  | { readonly view: "session"; readonly id: string; readonly tab: Tab };

export const route = signal<Route>(parse(location.hash));

addEventListener("hashchange", () => {
  route.value = parse(location.hash);
});

function parse(hash: string): Route {
  const [view, id, tab] = hash.replace(/^#\/?/, "").split("/");
  if (view === "session" && id) {
    return { view, id: decoded(id), tab: tab === "overview" || tab === "journal" ? tab : "conversation" };
  }
  if (view === "asks" || view === "new") return { view };
  return { view: "list" };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function hrefOf(target: Route): string {
  if (target.view === "session") {
    const tab = target.tab === "conversation" ? "" : `/${target.tab}`;
    return `#/session/${encodeURIComponent(target.id)}${tab}`;
  }
  return `#/${target.view}`;
}

export function go(target: Route): void {
  location.hash = hrefOf(target);
}
