// Asks: what an agent wants to do, and the answers to it. One card for every place that shows one.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { list, object, text, type Json, type JsonObject } from "../json";
import { webAddress } from "../markdown";
import type { Ask } from "../protocol";
import { hrefOf } from "../route";
import { answer, folderOf, now, sessions } from "../store";
import { exact, exactLine } from "../visible";
import { ago, duration, gist, plural, toolName, within } from "../words";
import { ElicitationForm, QuestionForm } from "./forms";
import { Icon } from "./parts";
import { WholeInput } from "./tools";

export interface AskProps {
  readonly ask: Ask;
  /** Whether to say which session it is of. */
  readonly withSession?: boolean;
  readonly isSelected?: boolean;
  readonly onSelect?: () => void;
}

type Mode = "" | "edit" | "deny";

export function AskCard({ ask, withSession = false, isSelected = false, onSelect }: AskProps) {
  const [mode, setMode] = useState<Mode>("");
  const [isSending, setSending] = useState(false);
  const [isSeen, setSeen] = useState(false);
  const card = useRef<HTMLElement>(null);
  const name = text(ask.payload["tool_name"]);
  const input = object(ask.payload["input"]);
  const title = titleOf(ask, name);

  const give = async (given: JsonObject) => {
    setSending(true);
    await answer(ask, given);
    setSending(false);
  };

  useEffect(() => {
    if (isSelected) card.current?.scrollIntoView({ block: "nearest" });
  }, [isSelected]);

  return (
    <article
      ref={card}
      class={isSelected ? "ask selected" : "ask"}
      aria-label={title}
      data-ask={ask.id}
      onFocusIn={onSelect}
      onClick={onSelect}
    >
      <header>
        <h3>{title}</h3>
        <p class="quiet">
          {withSession && (
            <>
              <a href={hrefOf({ view: "session", id: ask.session, tab: "conversation" })}>
                {sessions.value.get(ask.session)?.title || "Session"}
              </a>
              {" · "}
            </>
          )}
          {ago(ask.created, now.value)}
          {ask.expires !== null && ` · expires in ${duration(ask.expires - now.value)}`}
          {ask.assignee && ` · for ${ask.assignee}`}
        </p>
        {ask.earlier && (
          <p class="quiet">
            {ask.earlier.how} before by {ask.earlier.by}, {ago(ask.earlier.at, now.value)}; whether it ran then is not
            known.
          </p>
        )}
      </header>
      {ask.kind === "permission" && (
        <>
          {mode === "edit" ? (
            <InputEditor input={input} isSending={isSending} give={give} cancel={() => setMode("")} />
          ) : (
            <Whole onSeen={setSeen}>
              <ReasonLine ask={ask} />
              <WholeInput name={name} input={input} />
            </Whole>
          )}
          {mode === "deny" && <DenyForm isSending={isSending} give={give} cancel={() => setMode("")} />}
          {mode === "" && (
            <Buttons ask={ask} isSending={isSending} isSeen={isSeen} give={give} edit={() => setMode("edit")} deny={() => setMode("deny")} />
          )}
        </>
      )}
      {ask.kind === "question" && <QuestionForm ask={ask} isSending={isSending} give={give} />}
      {ask.kind === "elicitation" && <Elicitation ask={ask} isSending={isSending} give={give} />}
      {ask.kind === "dialog" && <Dialog ask={ask} isSending={isSending} give={give} />}
    </article>
  );
}

interface WholeProps {
  readonly children: ComponentChildren;
  /** Is told whether all of it is shown, or was opened. */
  readonly onSeen: (isSeen: boolean) => void;
}

/** What would be done: so much as has room, and all of it once the reader opens it. Nothing scrolls inside. */
function Whole({ children, onSeen }: WholeProps) {
  const [isOpen, setOpen] = useState(false);
  const [hidden, setHidden] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);

  useLayoutEffect(() => {
    const [outside, inside] = [box.current, inner.current];
    if (!outside || !inside) return undefined;
    const measure = () => {
      const more = outside.scrollHeight - outside.clientHeight;
      const isWide = outside.scrollWidth > outside.clientWidth + 1;
      const isCut = !isOpen && (more > 1 || isWide);
      const line = inside.querySelector("pre, table") ?? inside;
      setHidden(isCut ? Math.max(1, Math.ceil(more / parseFloat(getComputedStyle(line).lineHeight))) : 0);
      // What has no height is not on the screen.
      onSeen(isOpen || (!isCut && outside.clientHeight > 0));
    };
    measure();
    const watcher = new ResizeObserver(measure);
    watcher.observe(outside);
    watcher.observe(inside);
    return () => watcher.disconnect();
  }, [isOpen]);

  return (
    <>
      <div class={isOpen ? "what open" : "what"} ref={box} tabIndex={-1}>
        <div ref={inner}>{children}</div>
      </div>
      {hidden > 0 && (
        <button
          type="button"
          class="open-hidden"
          onClick={() => {
            setOpen(true);
            box.current?.focus({ preventScroll: true });
          }}
        >
          {plural(hidden, "line")} hidden: show all, to allow it
        </button>
      )}
    </>
  );
}

function titleOf(ask: Ask, name: string): string {
  switch (ask.kind) {
    case "question":
      return "The agent asks";
    case "elicitation":
      return `${exactLine(text(ask.payload["mcp_server_name"], "A server"))} asks`;
    case "dialog":
      return "The CLI asks";
    default:
      return name === "ExitPlanMode" ? "Approve this plan?" : `Allow ${exactLine(toolName(name))}?`;
  }
}

function ReasonLine({ ask }: { ask: Ask }) {
  const input = object(ask.payload["input"]);
  const path = text(ask.payload["blocked_path"]);
  const words = [text(ask.payload["description"]), text(input["description"])];
  const shown = [
    ...words.filter((each) => each && !text(input["file_path"]).endsWith(each)),
    path === text(input["file_path"]) ? "" : within(path, folderOf(ask.session)),
    text(ask.payload["decision_reason"]),
  ];
  return <p class="reason">{[...new Set(shown.filter(Boolean))].map(exactLine).join(" · ")}</p>;
}

interface Giving {
  readonly isSending: boolean;
  readonly give: (given: JsonObject) => Promise<void>;
}

interface ButtonsProps extends Giving {
  readonly ask: Ask;
  /** Whether the reader could see all of it. */
  readonly isSeen: boolean;
  readonly edit: () => void;
  readonly deny: () => void;
}

function Buttons({ ask, isSending, isSeen, give, edit, deny }: ButtonsProps) {
  const suggestions = list(ask.payload["permission_suggestions"]).map(object);
  return (
    <>
      <div class="buttons">
        <button
          type="button"
          class="primary allow"
          disabled={isSending || !isSeen}
          onClick={() => void give({ behavior: "allow" })}
        >
          Allow
        </button>
        <button type="button" class="edit" disabled={isSending || !isSeen} onClick={edit}>
          Edit
        </button>
        <button type="button" class="deny" disabled={isSending} onClick={deny}>
          Deny
        </button>
      </div>
      {suggestions.length > 0 && (
        <div class="buttons suggestions">
          {suggestions.map((each, at) => (
            <button
              key={at}
              type="button"
              disabled={isSending || !isSeen}
              onClick={() => void give({ behavior: "allow", updatedPermissions: [each] })}
            >
              {exactLine(suggestionWords(each))}
            </button>
          ))}
        </div>
      )}
    </>
  );
}

const PLACES: Readonly<Record<string, string>> = {
  session: "in this session",
  localSettings: "in this folder",
  projectSettings: "in this project",
  userSettings: "always",
};

const MODES: Readonly<Record<string, string>> = {
  acceptEdits: "accept all edits",
  bypassPermissions: "ask nothing any more",
  plan: "only plan",
};

/** What a suggested permission update does, in words. */
function suggestionWords(update: JsonObject): string {
  const place = PLACES[text(update["destination"])] ?? "";
  const rules = list(update["rules"])
    .map(object)
    .map((rule) => {
      const content = text(rule["ruleContent"]);
      return content ? `${text(rule["toolName"])}(${content})` : text(rule["toolName"]);
    });
  switch (update["type"]) {
    case "addRules":
      return update["behavior"] === "deny"
        ? `Allow once, and deny ${rules.join(", ")} ${place}`
        : `Always allow ${rules.join(", ")} ${place}`;
    case "setMode":
      return `Allow, and ${MODES[text(update["mode"])] ?? `use mode ${text(update["mode"])}`} ${place}`;
    case "addDirectories":
      return `Allow, and add the folder ${list(update["directories"]).map((each) => text(each)).join(", ")} ${place}`;
    default:
      return `Allow, and ${text(update["type"], "change rules")} ${place}`;
  }
}

function DenyForm({ isSending, give, cancel }: Giving & { cancel: () => void }) {
  const [reason, setReason] = useState("");
  const box = useRef<HTMLInputElement>(null);
  // At once, so that the next key is not lost.
  useLayoutEffect(() => box.current?.focus(), []);
  const message = reason.trim() || "The user denied this.";
  return (
    <form
      class="deny-form"
      onSubmit={(event) => {
        event.preventDefault();
        void give({ behavior: "deny", message });
      }}
    >
      <label>
        Why not? The agent reads it.
        <input
          ref={box}
          type="text"
          value={reason}
          onInput={(event) => setReason(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Escape" && cancel()}
        />
      </label>
      <div class="buttons">
        <button type="submit" class="danger" disabled={isSending}>
          Deny
        </button>
        <button
          type="button"
          disabled={isSending}
          onClick={() => void give({ behavior: "deny", message, interrupt: true })}
        >
          Deny and stop
        </button>
        <button type="button" class="plain" onClick={cancel}>
          Back
        </button>
      </div>
    </form>
  );
}

/** Every field of the input: texts as they are, other values as JSON. */
function InputEditor({ input, isSending, give, cancel }: Giving & { input: JsonObject; cancel: () => void }) {
  const [fields, setFields] = useState<readonly (readonly [string, string])[]>(
    Object.entries(input).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value, null, 2)]),
  );
  const [failure, setFailure] = useState("");
  const form = useRef<HTMLFormElement>(null);
  useLayoutEffect(() => form.current?.querySelector("textarea")?.focus(), []);

  const submit = (event: Event) => {
    event.preventDefault();
    const updated: Record<string, Json> = {};
    for (const [name, value] of fields) {
      try {
        updated[name] = typeof input[name] === "string" ? value : (JSON.parse(value) as Json);
      } catch {
        setFailure(`${name} is not JSON.`);
        return;
      }
    }
    void give({ behavior: "allow", updatedInput: updated });
  };

  return (
    <form
      class="editor"
      ref={form}
      onSubmit={submit}
      onKeyDown={(event) => {
        if (event.key === "Escape") cancel();
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(event);
      }}
    >
      {fields.map(([name, value], at) => (
        <label key={name}>
          {exactLine(name)}
          <textarea
            rows={Math.min(12, value.split("\n").length)}
            value={value}
            onInput={(event) => {
              const changed = event.currentTarget.value;
              setFields(fields.map((each, index) => (index === at ? [name, changed] : each)));
            }}
          />
          {exact(value) !== value && (
            <pre class="value" aria-label={`${exactLine(name)}, with what cannot be seen`}>
              {exact(value)}
            </pre>
          )}
        </label>
      ))}
      {failure && (
        <p class="note error" role="alert">
          {failure}
        </p>
      )}
      <div class="buttons">
        <button type="submit" class="primary" disabled={isSending}>
          Allow as edited
        </button>
        <button type="button" class="plain" onClick={cancel}>
          Back
        </button>
      </div>
    </form>
  );
}

function Elicitation({ ask, isSending, give }: Giving & { ask: Ask }) {
  const address = webAddress(text(ask.payload["url"]));
  const buttons = (
    <>
      <button type="button" disabled={isSending} onClick={() => void give({ action: "decline" })}>
        Decline
      </button>
      <button type="button" class="plain" disabled={isSending} onClick={() => void give({ action: "cancel" })}>
        Cancel
      </button>
    </>
  );
  return (
    <>
      <p class="words">{text(ask.payload["message"])}</p>
      {ask.payload["mode"] === "url" || address ? (
        <>
          <p>
            {address ? (
              <a href={address} target="_blank" rel="noopener noreferrer nofollow">
                {address}
              </a>
            ) : (
              text(ask.payload["url"])
            )}
          </p>
          <div class="buttons">
            <button type="button" class="primary" disabled={isSending} onClick={() => void give({ action: "accept" })}>
              Done
            </button>
            {buttons}
          </div>
        </>
      ) : (
        <ElicitationForm ask={ask} isSending={isSending} give={give}>
          {buttons}
        </ElicitationForm>
      )}
    </>
  );
}

function Dialog({ ask, isSending, give }: Giving & { ask: Ask }) {
  const words = gist("", ask.payload);
  return (
    <>
      <p class="words">{words}</p>
      <pre class="value" tabIndex={0}>
        {exact(JSON.stringify(ask.payload, null, 2))}
      </pre>
      <div class="buttons">
        <button
          type="button"
          class="primary"
          disabled={isSending}
          onClick={() => void give({ behavior: "completed", result: null })}
        >
          <Icon name="check" /> Done
        </button>
        <button type="button" disabled={isSending} onClick={() => void give({ behavior: "cancelled" })}>
          Cancel
        </button>
      </div>
    </>
  );
}
