// Where the reader writes: when a prompt is delivered, what waits, and Stop.

import { useRef, useState } from "preact/hooks";
import { draftOf, keepDraft, type Pending } from "../kept";
import type { Summary } from "../protocol";
import { forget, interrupt, link, pending, retry, send, withdraw, type Attachment } from "../store";
import { isAtWork } from "../words";
import { Icon, PromptText } from "./parts";

const WHENS = [
  { name: "later", help: "in its own turn, after those before it" },
  { name: "next", help: "joins the running turn after the next tool" },
  { name: "now", help: "stops what runs, then this" },
] as const;

export function Composer({ session, summary }: { session: string; summary: Summary | undefined }) {
  const [when, setWhen] = useState<string>("later");
  const isBusy = summary ? isAtWork(summary.state) : false;
  const submit = (words: string, attachments: readonly Attachment[]) => {
    void send(session, words, isBusy ? when : "later", attachments);
    setWhen("later");
  };
  return (
    <div class="composer">
      <Queue session={session} summary={summary} />
      <PromptForm draft={session} submit={submit} label="Prompt">
        {isBusy && (
          <fieldset class="when">
            <legend class="aside">Delivery</legend>
            {WHENS.map(({ name, help }) => (
              <label key={name} title={help}>
                <input type="radio" name="when" value={name} checked={when === name} onChange={() => setWhen(name)} />
                <span>{name}</span>
              </label>
            ))}
            <span class="quiet help">{WHENS.find((each) => each.name === when)?.help}</span>
          </fieldset>
        )}
        <button type="button" class="stop" onClick={() => void interrupt(session)} title="Stop the running turn">
          <Icon name="stop" /> Stop
        </button>
      </PromptForm>
    </div>
  );
}

/** Prompts that the model has not seen; each can be withdrawn. */
function Queue({ session, summary }: { session: string; summary: Summary | undefined }) {
  const queued = summary?.queued ?? [];
  if (!queued.length) return null;
  return (
    <section class="queue" aria-label="Queued prompts">
      <ul>
        {queued.map((each) => (
          <li key={each.turn}>
            <span class="badge">{each.isBehindAsk ? "waits behind an ask" : each.when}</span>
            <PromptText text={each.text} most={300} />
            <button
              type="button"
              class="plain"
              aria-label={`Withdraw: ${each.text}`}
              onClick={() => void withdraw(session, each.turn)}
            >
              Withdraw
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** What was sent and is not in the journal yet. */
export function PendingPrompts({ session }: { session: string }) {
  const mine = pending.value.filter((each) => each.session === session);
  return (
    <>
      {mine.map((each) => (
        <article key={each.key} class="prompt pending" aria-label="Prompt, pending">
          <PromptText text={each.text} />
          <PendingState one={each} />
        </article>
      ))}
    </>
  );
}

export function PendingState({ one }: { one: Pending }) {
  if (one.failure) {
    return (
      <p class="note error">
        Not sent: {one.failure}{" "}
        <button type="button" class="plain" onClick={() => retry(one)}>
          Try again
        </button>
        <button type="button" class="plain" onClick={() => forget(one.key)}>
          Discard
        </button>
      </p>
    );
  }
  return <p class="quiet">{link.value === "online" ? "sending…" : "will be sent when the connection is back"}</p>;
}

interface FormProps {
  /** The name under which what is typed is kept. */
  readonly draft: string;
  readonly label: string;
  readonly submit: (words: string, attachments: readonly Attachment[]) => void;
  readonly children?: preact.ComponentChildren;
}

export function PromptForm({ draft, label, submit, children }: FormProps) {
  const [words, setWords] = useState(draftOf(draft));
  const [files, setFiles] = useState<readonly Attachment[]>([]);
  const box = useRef<HTMLTextAreaElement>(null);

  const change = (value: string) => {
    setWords(value);
    keepDraft(draft, value);
  };
  const add = async (found: readonly File[]) => {
    const read = await Promise.all(found.map(attachmentOf));
    setFiles((before) => [...before, ...read]);
  };
  const onSubmit = (event?: Event) => {
    event?.preventDefault();
    if (!words.trim() && !files.length) return;
    submit(words, files);
    change("");
    setFiles([]);
    box.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // On a phone, Enter is how one begins a line.
    const sends = event.ctrlKey || event.metaKey || (!event.shiftKey && matchMedia("(hover: hover)").matches);
    if (event.key === "Enter" && sends && !event.isComposing) onSubmit(event);
  };
  const onPaste = (event: ClipboardEvent) => {
    const found = [...(event.clipboardData?.files ?? [])];
    if (!found.length) return;
    event.preventDefault();
    void add(found);
  };

  return (
    <form class="prompt-form" onSubmit={onSubmit}>
      {files.length > 0 && (
        <ul class="files">
          {files.map((file, at) => (
            <li key={at}>
              {file.name}{" "}
              <button type="button" class="plain" onClick={() => setFiles(files.filter((each) => each !== file))}>
                Remove
              </button>
            </li>
          ))}
        </ul>
      )}
      <textarea
        ref={box}
        class="words"
        rows={1}
        value={words}
        aria-label={label}
        placeholder="Write to the agent"
        onInput={(event) => change(event.currentTarget.value)}
        onKeyDown={onKeyDown}
        onPaste={onPaste}
      />
      <div class="tools">
        <label class="attach" title="Attach images, a PDF or a text">
          <Icon name="clip" />
          <span class="aside">Attach files</span>
          <input
            type="file"
            multiple
            accept="image/png,image/jpeg,image/gif,image/webp,application/pdf,text/plain"
            onChange={(event) => {
              void add([...(event.currentTarget.files ?? [])]);
              event.currentTarget.value = "";
            }}
          />
        </label>
        {children}
        <button type="submit" class="primary" disabled={!words.trim() && !files.length}>
          Send <Icon name="send" />
        </button>
      </div>
    </form>
  );
}

async function attachmentOf(file: File): Promise<Attachment> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let binary = "";
  for (let at = 0; at < bytes.length; at += 32_768) {
    binary += String.fromCharCode(...bytes.subarray(at, at + 32_768));
  }
  return { media_type: file.type || "text/plain", data: btoa(binary), name: file.name };
}
