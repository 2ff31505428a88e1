// The WebSocket of this tab: frames in, requests out, and a new connection when one is lost.
// It knows no view and keeps no session; `store.ts` does.

import { isObject, text, type JsonObject } from "./json";
import { login } from "./kept";
import { readFailure, type Failure } from "./protocol";

export type LinkState = "connecting" | "online" | "lost" | "refused";

export interface Listener {
  onFrame(frame: JsonObject): void;
  onState(state: LinkState): void;
  /** A connection was lost or could not be made. */
  onLost(): void;
}

export type Answered = { ok: true; answer: JsonObject } | { ok: false; failure: Failure };

interface Waiting {
  readonly line: string;
  readonly isRepeatable: boolean;
  readonly settle: (answered: Answered) => void;
}

/** Requests that may be sent again after a lost connection: each has one effect at most. */
const REPEATABLE = new Set(["begin", "send", "answer", "withdraw"]);
const OFFLINE: Failure = { code: "offline", message: "The connection was lost. Try again.", by: "" };
const DELAYS = [100, 250, 500, 1000, 2000, 4000];
const PING_EVERY = 5000;
const SILENCE = 12_000;

export class Live {
  private socket: WebSocket | null = null;
  private readonly waiting = new Map<string, Waiting>();
  private attempts = 0;
  private timer = 0;
  private lastFrame = 0;
  private count = 0;
  private state: LinkState = "connecting";

  constructor(
    private readonly url: string,
    private readonly listener: Listener,
  ) {}

  start(): void {
    this.connect();
    addEventListener("offline", () => this.lose());
    addEventListener("online", () => this.reconnectNow());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.reconnectNow();
    });
    setInterval(() => this.watch(), PING_EVERY);
  }

  /** Sends a frame that needs no answer; dropped while there is no connection. */
  post(frame: JsonObject): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(frame));
  }

  /** Performs a verb, and returns its answer or why it was refused. Never throws. */
  perform(verb: string, fields: JsonObject): Promise<Answered> {
    this.count += 1;
    const id = `c${this.count}`;
    const line = JSON.stringify({ ...fields, type: "do", id, verb });
    return new Promise((settle) => {
      const waiting = { line, settle, isRepeatable: REPEATABLE.has(verb) };
      if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(line);
      else if (!waiting.isRepeatable) return settle({ ok: false, failure: OFFLINE });
      this.waiting.set(id, waiting);
    });
  }

  /** Ends for good: the server does not let this browser in. */
  refuse(): void {
    clearTimeout(this.timer);
    this.socket = null;
    this.change("refused");
  }

  private connect(): void {
    clearTimeout(this.timer);
    // A page can give a WebSocket no other header.
    const token = login();
    const socket = new WebSocket(this.url, token ? ["steersman", `steersman-token.${token}`] : ["steersman"]);
    this.socket = socket;
    socket.onmessage = (event) => {
      if (this.socket === socket) this.receive(String(event.data));
    };
    socket.onclose = (event) => {
      if (this.socket === socket) this.onClose(event.code);
    };
  }

  private receive(data: string): void {
    this.lastFrame = Date.now();
    for (const line of data.split("\n")) {
      if (!line) continue;
      let frame: unknown;
      try {
        frame = JSON.parse(line);
      } catch {
        // A line that is no JSON says nothing; those around it do.
        continue;
      }
      if (!isObject(frame)) continue;
      if (frame["type"] === "hello") this.onHello();
      if (frame["type"] === "done") this.onDone(frame);
      // The browser reports the end of the connection seconds later.
      if (frame["type"] === "closing") this.lose();
      this.listener.onFrame(frame);
    }
  }

  private onHello(): void {
    this.attempts = 0;
    this.change("online");
    for (const { line } of this.waiting.values()) this.socket?.send(line);
  }

  private onDone(frame: JsonObject): void {
    const id = text(frame["id"]);
    const waiting = this.waiting.get(id);
    this.waiting.delete(id);
    if ("error" in frame) waiting?.settle({ ok: false, failure: readFailure(frame) });
    else waiting?.settle({ ok: true, answer: isObject(frame["answer"]) ? frame["answer"] : {} });
  }

  private onClose(code: number): void {
    if (code === 4401 || code === 4403) {
      this.refuse();
      return;
    }
    this.lose();
  }

  /** Gives the connection up, and plans the next one. */
  private lose(): void {
    const socket = this.socket;
    this.socket = null;
    socket?.close();
    this.change("lost");
    this.listener.onLost();
    for (const [id, waiting] of this.waiting) {
      if (waiting.isRepeatable) continue;
      this.waiting.delete(id);
      waiting.settle({ ok: false, failure: OFFLINE });
    }
    const delay = DELAYS[Math.min(this.attempts, DELAYS.length - 1)] ?? 1000;
    this.attempts += 1;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.connect(), delay * (0.75 + Math.random() / 2));
  }

  private reconnectNow(): void {
    if (this.state !== "lost" || this.socket) return;
    this.attempts = 0;
    this.connect();
  }

  /** Finds connections that are lost without a word. */
  private watch(): void {
    if (this.socket?.readyState !== WebSocket.OPEN) return;
    if (!document.hidden && Date.now() - this.lastFrame > SILENCE) this.lose();
    else this.post({ type: "ping", id: "p" });
  }

  private change(state: LinkState): void {
    if (state === this.state) return;
    this.state = state;
    this.listener.onState(state);
  }
}
