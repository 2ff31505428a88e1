// Everything that the views share, and everything that they can do.

import { batch, computed, effect, signal } from "@preact/signals";
import { list, number, object, text, texts, type Json, type JsonObject } from "./json";
import { Refused, request, sessionPath } from "./http";
import { keepLogin, keepMarks, keepPending, readMarks, readPending, type Pending } from "./kept";
import { Live, type Answered, type LinkState } from "./live";
import { askKey, readAsk, readSummary, type Ask, type Failure, type Summary } from "./protocol";
import { readRecord } from "./record";
import { go, route } from "./route";
import { SessionView } from "./session";
import { exactLine } from "./visible";

export const link = signal<LinkState>("connecting");
export const me = signal("");
/** Why nothing can be shown: not logged in, or a link that was used. */
export const barred = signal("");
export const agents = signal<readonly string[]>([]);
export const sessions = signal<ReadonlyMap<string, Summary>>(new Map());
export const hasList = signal(false);
export const asks = signal<ReadonlyMap<string, Ask>>(new Map());
export const pending = signal<readonly Pending[]>(readPending());
/** The last entry of each session that was shown here. */
export const marks = signal<ReadonlyMap<string, number>>(readMarks());
/** The newest report for the reader, such as who answered an ask first. */
export const report = signal<{ readonly text: string; readonly isError: boolean } | null>(null);
/** Seconds since the epoch, every second. */
export const now = signal(Date.now() / 1000);

const views = new Map<string, SessionView>();
const url = new URL("live", location.href);
url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
url.hash = "";
const live = new Live(url.href, { onFrame, onState, onLost });

export const openAsks = computed(() =>
  [...asks.value.values()].sort((a, b) => a.created - b.created),
);

export function asksOf(session: string): Ask[] {
  return openAsks.value.filter((ask) => ask.session === session);
}

export const isUnread = (each: Summary): boolean => each.last > (marks.value.get(each.id) ?? 0);

const RANK: Readonly<Record<string, number>> = {
  waiting_permission: 0,
  starting: 1,
  running: 1,
  waiting_tool_call: 1,
  paused: 2,
};

/** Sessions in the order in which they need the reader. */
export const ordered = computed(() => {
  const rank = (each: Summary) => (each.asks || asksOf(each.id).length ? 0 : (RANK[each.state] ?? 3));
  return [...sessions.value.values()].sort((a, b) => {
    // Of those that wait for the reader, the one that has waited longest.
    const isWaiting = rank(a) === 0 && rank(b) === 0;
    return rank(a) - rank(b) || (isWaiting ? a.since - b.since : b.lastActivity - a.lastActivity);
  });
});

// Beginning

/** Logs in, with the token of the link if there is one, and opens the connection. */
export async function start(): Promise<void> {
  const token = /^#token=(.+)$/.exec(location.hash)?.[1];
  if (token !== undefined) history.replaceState(null, "", location.pathname + location.search);
  try {
    if (token !== undefined) keepLogin(text((await request("POST", "login", { token }))["token"]));
    await readMe();
  } catch (error) {
    if (error instanceof Refused && error.status) {
      // Somebody who is logged in already may click the used link again.
      if (token !== undefined && (await isLoggedIn())) return connect();
      barred.value = error.message;
      return;
    }
  }
  connect();
}

async function isLoggedIn(): Promise<boolean> {
  return readMe().then(
    () => true,
    () => false,
  );
}

async function readMe(): Promise<void> {
  me.value = text(object((await request("GET", "me"))["viewer"])["name"]);
}

function connect(): void {
  live.start();
  setInterval(() => {
    if (!document.hidden) now.value = Date.now() / 1000;
  }, 1000);
}

/** The view of a session; its entries are read when it is first asked for. */
export function viewOf(id: string): SessionView {
  let view = views.get(id);
  if (!view) {
    view = new SessionView(id);
    views.set(id, view);
    void read(view);
  }
  return view;
}

/** The folder of a session that is shown; empty if it is not known. */
export function folderOf(id: string): string {
  return views.get(id)?.picture.value.cwd ?? "";
}

async function read(view: SessionView): Promise<void> {
  await view.load();
  follow(view);
}

/** Follows from the last complete entry on, so that a message in the making is seen whole. */
function follow(view: SessionView): void {
  if (view.isLoaded.value) live.post({ type: "follow", session: view.id, ...view.cursor });
}

// Frames

function onState(state: LinkState): void {
  link.value = state;
  if (state === "refused") barred.value = "The server does not know this browser any more.";
}

/** The browser does not report why a connection was refused, so that is asked for. */
async function onLost(): Promise<void> {
  try {
    await request("GET", "me");
  } catch (error) {
    if (error instanceof Refused && (error.status === 401 || error.status === 403)) live.refuse();
  }
}

function onFrame(frame: JsonObject): void {
  if (typeof frame["seq"] === "number") {
    const record = readRecord(frame);
    if (record) views.get(text(frame["session"]))?.receive(record);
    return;
  }
  switch (frame["type"]) {
    case "hello":
      onHello(frame);
      break;
    case "session":
      onSession(frame["session"]);
      break;
    case "ask":
      onAsk(frame);
      break;
    case "lagged":
      onLagged(frame);
      break;
    case "error":
      onError(frame);
      break;
  }
}

function onHello(frame: JsonObject): void {
  const found = list(frame["sessions"]).map(readSummary).filter((each) => each !== null);
  const open = list(frame["asks"]).map(readAsk).filter((each) => each !== null);
  batch(() => {
    me.value = text(object(frame["viewer"])["name"], me.value);
    agents.value = texts(frame["agents"]);
    sessions.value = new Map(found.map((each) => [each.id, each]));
    asks.value = new Map(open.map((each) => [askKey(each), each]));
    // What was there before this browser came is not news.
    if (!marks.value.size) marks.value = new Map(found.map((each) => [each.id, each.last]));
    hasList.value = true;
  });
  for (const view of views.values()) {
    if (view.isLoaded.value) follow(view);
    else void read(view);
  }
  if (isFirst) resend();
  isFirst = false;
}

let isFirst = true;

function onSession(found: unknown): void {
  const summary = readSummary(found);
  if (summary) sessions.value = new Map(sessions.value).set(summary.id, summary);
}

function onAsk(frame: JsonObject): void {
  const ask = readAsk(frame["ask"]);
  if (!ask) return;
  const changed = new Map(asks.value);
  if (frame["what"] === "opened" || frame["what"] === "delegated") {
    changed.set(askKey(ask), ask);
    if (frame["what"] === "opened") {
      answered.delete(askKey(ask));
      announce(ask);
    }
  } else {
    changed.delete(askKey(ask));
  }
  asks.value = changed;
}

function onLagged(frame: JsonObject): void {
  const view = views.get(text(frame["session"]));
  if (view) view.lost.value += number(frame["lost"]);
}

/** Refusals of a cursor whose entry the server does not have: what was shown could not be stored. */
const ANOTHER_JOURNAL = new Set(["after_in_future", "after_replaced"]);

function onError(frame: JsonObject): void {
  const view = views.get(text(frame["session"]));
  if (view && ANOTHER_JOURNAL.has(text(object(frame["error"])["code"]))) {
    view.reset();
    void read(view);
  }
}

// What the reader can do

export function tell(message: string, isError = false): void {
  report.value = { text: message, isError };
}

async function perform(verb: string, fields: JsonObject): Promise<Answered> {
  const answered = await live.perform(verb, fields);
  if (!answered.ok && verb !== "answer") tell(answered.failure.message, true);
  return answered;
}

export interface Attachment {
  readonly media_type: string;
  readonly data: string;
  readonly name: string;
}

/** Sends a prompt, or begins a session with it. It is shown as pending until the journal has it. */
export async function send(
  session: string,
  prompt: string,
  when: string,
  attachments: readonly Attachment[] = [],
  agent = "",
): Promise<void> {
  const one: Pending = {
    key: newKey(),
    session,
    agent,
    text: prompt,
    when,
    at: Date.now() / 1000,
    turn: "",
    failure: "",
    files: attachments.length,
  };
  if (attachments.length) attached.set(one.key, attachments);
  pending.value = [...pending.value, one];
  await submit(one);
}

/** What is attached to pending prompts. It is too large to be kept over a reload. */
const attached = new Map<string, readonly Attachment[]>();

/** Only secure pages have `crypto.randomUUID`, and a server of one's own may have none. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (each) => each.toString(16).padStart(2, "0")).join("");
}

async function submit(one: Pending): Promise<void> {
  const attachments = attached.get(one.key) ?? [];
  if (one.files > attachments.length) {
    changePending(one.key, { failure: "the reload has lost what was attached; attach it again" });
    return;
  }
  const verb = one.session ? "send" : "begin";
  const fields: JsonObject = {
    text: one.text,
    when: one.when,
    key: one.key,
    ...(one.session ? { session: one.session } : {}),
    ...(one.agent && !one.session ? { agent: one.agent } : {}),
  };
  const answered = attachments.length
    ? await post(one, { ...fields, attachments: attachments as unknown as Json })
    : await perform(verb, fields);
  if (!answered.ok) {
    changePending(one.key, { failure: answered.failure.message });
    return;
  }
  attached.delete(one.key);
  const begun = readSummary(answered.answer["session"]);
  changePending(one.key, { turn: text(answered.answer["turn"]), session: begun?.id ?? one.session });
  if (begun) {
    // Frames that came with the answer are newer than what it has.
    if (!sessions.value.has(begun.id)) onSession(answered.answer["session"]);
    if (route.value.view === "new" || route.value.view === "list") go({ view: "session", id: begun.id, tab: "conversation" });
  }
}

/** Attachments may be large, so they are posted. */
async function post(one: Pending, fields: JsonObject): Promise<Answered> {
  try {
    const path = one.session ? sessionPath(one.session, "/send") : "sessions";
    return { ok: true, answer: await request("POST", path, fields) };
  } catch (error) {
    const failure: Failure =
      error instanceof Refused ? error.failure : { code: "unknown", message: String(error), by: "" };
    tell(failure.message, true);
    return { ok: false, failure };
  }
}

function changePending(key: string, facts: Partial<Pending>): void {
  pending.value = pending.value.map((each) => (each.key === key ? { ...each, ...facts } : each));
}

export function forget(key: string): void {
  attached.delete(key);
  pending.value = pending.value.filter((each) => each.key !== key);
}

/** Sends again what was sent before a reload and has no turn: its key makes it one turn. */
function resend(): void {
  for (const one of pending.value) {
    if (!one.turn && !one.failure) void submit(one);
  }
}

export function retry(one: Pending): void {
  changePending(one.key, { failure: "" });
  void submit({ ...one, failure: "" });
}

export const withdraw = async (session: string, turn: string): Promise<boolean> => {
  const answered = await perform("withdraw", { session, turn });
  const isDone = answered.ok && answered.answer["withdrawn"] === true;
  if (isDone) pending.value = pending.value.filter((each) => each.turn !== turn);
  else if (answered.ok) tell("Too late: the model has seen it.");
  return isDone;
};

export const interrupt = (session: string): Promise<Answered> => perform("interrupt", { session });

export const control = (verb: string, session: string, fields: JsonObject = {}): Promise<Answered> =>
  perform(verb, { ...fields, session });

/** The asks that were answered in this page, whoever was first. */
const answered = new Set<string>();
export const isAnsweredHere = (key: string): boolean => answered.has(key);

/** Answers an ask. Returns why not, or an empty text. */
export async function answer(ask: Ask, given: JsonObject): Promise<string> {
  answered.add(askKey(ask));
  const fields = { ask: ask.id, session: ask.session, answer: given, seen: ask.digest };
  const outcome = await perform("answer", fields);
  if (outcome.ok) {
    drop(ask);
    return "";
  }
  const { code, by, message } = outcome.failure;
  if (code === "already_answered" || code === "ask_gone" || code === "ask_not_found") {
    drop(ask);
    if (code !== "already_answered" || by !== me.value) {
      tell(by ? `${by} was first: ${message}` : message);
    }
    return "";
  }
  answered.delete(askKey(ask));
  tell(message, true);
  return message;
}

function drop(ask: Ask): void {
  const changed = new Map(asks.value);
  changed.delete(askKey(ask));
  asks.value = changed;
}

export function markRead(id: string, seq: number): void {
  if ((marks.value.get(id) ?? 0) < seq) marks.value = new Map(marks.value).set(id, seq);
}

// Notifications

export const mayNotify = signal("Notification" in window ? Notification.permission : "denied");

export async function askToNotify(): Promise<void> {
  if ("Notification" in window) mayNotify.value = await Notification.requestPermission();
}

function announce(ask: Ask): void {
  if (mayNotify.value !== "granted" || !document.hidden) return;
  const title = sessions.value.get(ask.session)?.title || "A session";
  const note = new Notification("An agent needs you", {
    body: exactLine(`${title}: ${text(ask.payload["tool_name"], ask.kind)}`),
    tag: askKey(ask),
  });
  note.onclick = () => {
    window.focus();
    go({ view: "session", id: ask.session, tab: "conversation" });
  };
}

// What follows from the rest

const MOST_VIEWS = 12;

/** Follows only the sessions that were looked at last. */
effect(() => {
  const current = route.value;
  if (current.view !== "session") return;
  const view = views.get(current.id);
  if (view) {
    views.delete(current.id);
    views.set(current.id, view);
  }
  for (const id of [...views.keys()].slice(0, -MOST_VIEWS)) {
    views.delete(id);
    live.post({ type: "unfollow", session: id });
  }
});

document.addEventListener("visibilitychange", () => {
  const current = route.value;
  if (document.hidden || current.view !== "session") return;
  markRead(current.id, sessions.value.get(current.id)?.last ?? 0);
});

effect(() => keepMarks(marks.value));
effect(() => keepPending(pending.value));
effect(() => {
  const count = asks.value.size;
  document.title = count ? `(${count}) steersman` : "steersman";
});

const LONG_AGO = 600;

/** Forgets a pending prompt once the queue or the journal has it. */
effect(() => {
  const left = pending.value.filter((each) => {
    if (!each.turn) return true;
    if (Date.now() / 1000 - each.at > LONG_AGO) return false;
    const queued = sessions.value.get(each.session)?.queued.some((one) => one.turn === each.turn);
    return !queued && !views.get(each.session)?.picture.value.turns.has(each.turn);
  });
  if (left.length !== pending.value.length) pending.value = left;
});
