// The conversation: prompts, texts, thinking, tool calls, and what happened between them.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { text } from "../json";
import type { Call, Item, NoteItem, Picture, PromptItem, TextItem, Turn } from "../picture";
import { partialObject } from "../partial";
import { promptText } from "../reading/turns";
import type { SessionView } from "../session";
import { clock, count, duration, gist, moment, money, plural, toolName, within } from "../words";
import { Guarded, Icon, Markdown, PromptText, pure } from "./parts";
import { Images, Terminal, ToolInput, ToolOutput } from "./tools";

const PAGE = 120;
const NEAR = 120;

/** The items of the main agent; older ones when the reader scrolls up. */
export function Conversation({ view, children }: { view: SessionView; children: preact.ComponentChildren }) {
  const picture = view.picture.value;
  const items = picture.lists.get("") ?? [];
  const [shown, setShown] = useState(PAGE);
  const place = useRef<HTMLDivElement>(null);
  const top = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const [isAway, setAway] = useState(false);
  const height = useRef(0);

  const older = () => {
    height.current = place.current?.scrollHeight ?? 0;
    if (shown < items.length) setShown(shown + PAGE);
    else void view.loadOlder().then(() => setShown((before) => before + PAGE));
  };
  const canGrow = shown < items.length || view.hasOlder.value;

  useEffect(() => {
    const sentinel = top.current;
    if (!sentinel || !canGrow) return undefined;
    const watcher = new IntersectionObserver(
      (seen) => {
        if (seen.some((each) => each.isIntersecting) && !view.isLoading.value) older();
      },
      { root: place.current, rootMargin: "400px 0px 0px 0px" },
    );
    watcher.observe(sentinel);
    return () => watcher.disconnect();
  }, [canGrow, shown, items.length]);

  // Stays at the end while the reader is there, and where the reader is when older items come.
  useLayoutEffect(() => {
    const box = place.current;
    if (!box) return;
    if (height.current && box.scrollHeight > height.current) {
      if (!isAtEnd.current) box.scrollTop += box.scrollHeight - height.current;
      height.current = 0;
    }
    if (isAtEnd.current) box.scrollTop = box.scrollHeight;
  });

  // Boxes change their height without being drawn again: images, folded parts, an ask below.
  useEffect(() => {
    const box = place.current;
    const inner = box?.firstElementChild;
    if (!box || !inner) return undefined;
    const watcher = new ResizeObserver(() => {
      if (isAtEnd.current) box.scrollTop = box.scrollHeight;
    });
    watcher.observe(box);
    watcher.observe(inner);
    return () => watcher.disconnect();
  }, []);

  const onScroll = () => {
    const box = place.current;
    if (!box) return;
    isAtEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
    if (isAway === isAtEnd.current) setAway(!isAtEnd.current);
  };

  const toEnd = () => {
    isAtEnd.current = true;
    place.current?.scrollTo({ top: place.current.scrollHeight });
    setAway(false);
  };

  return (
    <div class="scroller">
      <div class="conversation" ref={place} onScroll={onScroll} tabIndex={0} role="log" aria-label="Conversation">
        <div class="column">
          <div ref={top} class="sentinel">
            {canGrow && (
              <button type="button" class="plain" onClick={older}>
                {view.isLoading.value ? "Loading older entries…" : "Older entries"}
              </button>
            )}
          </div>
          <Items items={items.slice(-shown)} picture={picture} view={view} />
          {children}
        </div>
      </div>
      {isAway && (
        <button type="button" class="to-end" onClick={toEnd}>
          To the newest
        </button>
      )}
    </div>
  );
}

function Items({ items, picture, view }: { items: readonly Item[]; picture: Picture; view: SessionView }) {
  return (
    <>
      {items.map((item) => (
        <Guarded key={item.key}>
          {drawn(item, picture, view)}
          <Cut seqs={cutsOf(item, picture)} view={view} />
        </Guarded>
      ))}
    </>
  );
}

function cutsOf(item: Item, picture: Picture): readonly number[] {
  if (item.kind === "call") return picture.calls.get(item.id)?.cut ?? NONE;
  return item.cut === undefined ? NONE : [item.cut];
}

const NONE: readonly number[] = [];

/** Says that a part is left out, and loads it on demand. */
function Cut({ seqs, view }: { seqs: readonly number[]; view: SessionView }) {
  if (!seqs.length) return null;
  return (
    <p class="note quiet">
      Only the beginning is shown.{" "}
      <button type="button" class="plain" onClick={() => seqs.forEach((seq) => void view.loadWhole(seq))}>
        Show all
      </button>
    </p>
  );
}

function drawn(item: Item, picture: Picture, view: SessionView) {
  switch (item.kind) {
    case "prompt":
      return <PromptEntry item={item} />;
    case "text":
      return <TextEntry item={item} />;
    case "thinking":
      return <Thinking item={item} />;
    case "note":
      return <Note item={item} />;
    case "call": {
      const call = picture.calls.get(item.id);
      if (!call) return null;
      const nested = picture.lists.get(item.id);
      // A call with a subagent is drawn again whenever the picture changes; the others are not.
      return <CallEntry call={call} nested={nested} picture={nested ? picture : null} view={view} cwd={picture.cwd} isAsked={isAsked(picture, item.id)} />;
    }
    case "end": {
      const turn = picture.turns.get(item.uuid);
      return turn ? <End turn={turn} /> : null;
    }
    case "gone":
      return null;
  }
}

function isAsked(picture: Picture, id: string): boolean {
  for (const ask of picture.asks.values()) {
    if (ask.isAsked && ask.request["tool_use_id"] === id) return true;
  }
  return false;
}

const PromptEntry = pure<{ item: PromptItem }>(({ item }) => (
  <article class="prompt" aria-label="Prompt">
    <PromptText text={item.text} />
    <Images images={item.images} />
  </article>
));

const TextEntry = pure<{ item: TextItem }>(({ item }) => (
  <article class="text">
    <Markdown text={item.text} isGrowing={item.isGrowing} />
  </article>
));

const Thinking = pure<{ item: TextItem }>(({ item }) => (
  <details class="thinking">
    <summary>{item.isGrowing ? "Thinking…" : "Thinking"}</summary>
    {item.text ? <Markdown text={item.text} /> : <p class="quiet">The model does not show it.</p>}
  </details>
));

const Note = pure<{ item: NoteItem }>(({ item }) =>
  item.more && item.more !== item.text ? (
    <details class={`note ${item.tone}`}>
      <summary>{item.text}</summary>
      <pre tabIndex={0}>{item.more}</pre>
    </details>
  ) : (
    <p class={`note ${item.tone}`}>{item.text}</p>
  ),
);

const End = pure<{ turn: Turn }>(({ turn }) => {
  const facts = [
    turn.settled === null ? "" : duration(turn.settled - turn.sent),
    turn.cost ? money(turn.cost) : "",
  ].filter(Boolean);
  const isDone = turn.outcome === "completed";
  return (
    <footer class={isDone ? "end" : "end bad"}>
      <span>{isDone ? "done" : turn.outcome}</span>
      {turn.reason && <span>{turn.reason}</span>}
      {facts.map((each) => (
        <span key={each}>{each}</span>
      ))}
      {turn.settled !== null && <time dateTime={moment(turn.settled)}>{clock(turn.settled)}</time>}
    </footer>
  );
});

interface CallProps {
  readonly call: Call;
  readonly nested: readonly Item[] | undefined;
  readonly picture: Picture | null;
  readonly view: SessionView;
  readonly cwd: string;
  readonly isAsked: boolean;
}

/** Tools whose work is worth seeing without a click. */
const OPEN = new Set(["Bash", "Edit", "Write", "Agent", "Task", "ExitPlanMode", "TodoWrite"]);

const CallEntry = pure<CallProps>(({ call, nested, picture, view, cwd, isAsked }) => {
  const input = call.partial && call.state === "writing" ? partialObject(call.partial) : call.input;
  const words = within(gist(call.name, input), cwd);
  // What is asked is shown whole with the ask.
  const isOpen = !isAsked && (OPEN.has(call.name) || call.state === "failed");
  return (
    <details class={`call ${call.state}${isAsked ? " asked" : ""}`} open={isOpen}>
      <summary>
        <span class="tool">{toolName(call.name)}</span>
        <span class="gist">{words}</span>
        <span class="status">{statusOf(call, isAsked)}</span>
      </summary>
      <div class="body">
        {call.name === "Bash" ? (
          <Terminal command={text(input["command"])} output={outputOf(call)} />
        ) : (
          !nested?.some((each) => each.kind === "prompt") && (
            <ToolInput name={call.name} input={input} output={call.output} />
          )
        )}
        {nested && picture && <Subagent call={call} nested={nested} picture={picture} view={view} />}
        {call.name !== "Bash" && call.ended !== null && !hasSpoken(nested) && (
          <ToolOutput
            name={call.name}
            content={call.content}
            output={call.output}
            isError={call.state === "failed"}
          />
        )}
        <DecisionLine call={call} />
      </div>
    </details>
  );
});

/** Whether a subagent has said what the call gives back. */
function hasSpoken(nested: readonly Item[] | undefined): boolean {
  return nested?.some((each) => each.kind === "text" && each.text !== "") ?? false;
}

function outputOf(call: Call): string | undefined {
  if (call.ended === null) return undefined;
  const output = call.output;
  if (typeof output === "object" && output !== null && "stdout" in output) {
    const parts = [output["stdout"], output["stderr"]].filter((each) => typeof each === "string" && each);
    if (parts.length || call.state !== "failed") return parts.join("\n");
  }
  return promptText(call.content);
}

interface SubagentProps {
  readonly call: Call;
  readonly nested: readonly Item[];
  readonly picture: Picture;
  readonly view: SessionView;
}

function Subagent({ call, nested, picture, view }: SubagentProps) {
  const task = [...picture.tasks.values()].find((each) => each.toolUseId === call.id);
  const facts = task
    ? [task.agentType || "subagent", task.ended === null ? task.doing || "at work" : task.state, task.tokens ? `${count(task.tokens)} tokens` : "", task.toolUses ? plural(task.toolUses, "tool call") : ""]
    : [];
  return (
    <section class="subagent" aria-label="Subagent">
      {task && <p class="quiet">{facts.filter(Boolean).join(" · ")}</p>}
      <Items items={nested} picture={picture} view={view} />
    </section>
  );
}

function statusOf(call: Call, isAsked: boolean): string {
  if (isAsked) return "waits for an answer";
  if (call.decision?.verdict === "deny") return "denied";
  switch (call.state) {
    case "writing":
      return "writing…";
    case "running":
      return "running…";
    case "failed":
      return "failed";
    case "lost":
      return "lost";
    default: {
      const seconds = (call.ended ?? call.started) - call.started;
      return seconds >= 1 ? duration(seconds) : "";
    }
  }
}

function DecisionLine({ call }: { call: Call }) {
  const decision = call.decision;
  if (!decision || (decision.source !== "person" && decision.verdict !== "deny")) return null;
  const who = decision.by ? ` by ${decision.by}` : decision.source ? ` by ${decision.source}` : "";
  return (
    <p class={`decision ${decision.verdict}`}>
      <Icon name={decision.verdict === "deny" ? "close" : "check"} />
      {decision.verdict === "deny" ? "Denied" : "Allowed"}
      {who}
      {decision.reason ? `: ${decision.reason}` : ""}
    </p>
  );
}
