// Small parts that several views use.

import { Component, type ComponentChildren, type FunctionComponent } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { blocksOf, moreBlocks, nodesOf } from "../markdown";
import { visible } from "../visible";

/** A component that is drawn again only if one of its properties is another value. */
export function pure<P extends object>(draw: (props: P) => ComponentChildren): FunctionComponent<P> {
  class Pure extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      const [before, after] = [this.props as Record<string, unknown>, next as Record<string, unknown>];
      return Object.keys(after).some((name) => before[name] !== after[name]);
    }
    render(props: P): ComponentChildren {
      return draw(props);
    }
  }
  return Pure as unknown as FunctionComponent<P>;
}

/** Keeps a fault in one item from taking the page with it. */
export class Guarded extends Component<{ children: ComponentChildren }, { failure: string }> {
  override state = { failure: "" };

  override componentDidCatch(error: unknown): void {
    this.setState({ failure: String(error) });
  }

  render(): ComponentChildren {
    if (this.state.failure) return <p class="note error">This cannot be shown. {this.state.failure}</p>;
    return this.props.children;
  }
}

const Block = pure<{ source: string }>(({ source }) => <BlockNodes source={source} />);

function BlockNodes({ source }: { source: string }) {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    place.current?.replaceChildren(nodesOf(source));
  }, [source]);
  return <div ref={place} class="block" />;
}

interface Read {
  readonly text: string;
  readonly isGrowing: boolean;
  readonly blocks: readonly string[];
}

/** Characters that are not worth being read as Markdown: it would take seconds. */
const TOO_LONG = 400_000;

/** Markdown, block by block: while a text grows, only its last block is made anew. */
export function Markdown({ text: given, isGrowing = false }: { text: string; isGrowing?: boolean }) {
  const known = useRef<Read>({ text: "", isGrowing: false, blocks: [] });
  // What marked would change is changed before, so that the blocks are as long as their source.
  const text = given.includes("\r") ? visible(given.replace(/\r\n/g, "\n")) : given;
  if (text.length > TOO_LONG) {
    return (
      <pre class="value" tabIndex={0}>
        <Folded text={text} most={20_000} />
      </pre>
    );
  }
  const before = known.current;
  if (before.text !== text || before.isGrowing !== isGrowing) {
    // Once it is complete it is read as a whole, in case the parts were read otherwise.
    const goesOn = isGrowing && before.text !== "" && text.startsWith(before.text);
    const blocks = goesOn ? moreBlocks(before.blocks, text) : blocksOf(text);
    known.current = { text, isGrowing, blocks };
  }
  return (
    <div class={isGrowing ? "markdown growing" : "markdown"}>
      {known.current.blocks.map((source, at) => (
        <Block key={at} source={source} />
      ))}
    </div>
  );
}

const ICONS: Readonly<Record<string, string>> = {
  back: "M15 5l-7 7 7 7",
  plus: "M12 5v14M5 12h14",
  send: "M5 12h14M13 6l6 6-6 6",
  stop: "M7 7h10v10H7z",
  close: "M6 6l12 12M18 6L6 18",
  pause: "M9 6v12M15 6v12",
  play: "M8 5l11 7-11 7z",
  inbox: "M4 13l3-8h10l3 8v6H4zM4 13h5l1 2h4l1-2h5",
  sun: "M12 8a4 4 0 100 8 4 4 0 000-8zM12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M19 5l-2 2M7 17l-2 2",
  moon: "M20 14.5A8 8 0 119.5 4a6.5 6.5 0 0010.5 10.5z",
  bell: "M6 16V11a6 6 0 1112 0v5l2 2H4zM10 20h4",
  clip: "M8 12l6-6a3 3 0 114 4l-8 8a5 5 0 11-7-7l7-7",
  help: "M9 9a3 3 0 115 2c-1 1-2 1.5-2 3M12 18v.5",
  check: "M5 12.5l4.5 4.5L19 7",
};

export function Icon({ name }: { name: string }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={ICONS[name] ?? ""} />
    </svg>
  );
}

/** Text that may be long: its beginning, and the rest on demand. */
export function Folded({ text, most = 4000 }: { text: string; most?: number }) {
  if (text.length <= most) return <>{text}</>;
  return (
    <>
      {text.slice(0, most)}
      <details class="rest">
        <summary>{(text.length - most).toLocaleString()} more characters</summary>
        {text.slice(most)}
      </details>
    </>
  );
}

/** A prompt as it was typed. It wraps and folds: a prompt that scrolls cannot be read with keys alone. */
export function PromptText({ text, most = 2000 }: { text: string; most?: number }) {
  return (
    <div class="words">
      <Folded text={text} most={most} />
    </div>
  );
}
