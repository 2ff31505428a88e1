// The official TypeScript SDK, used through its public names only. Orders and reports are those of measuring.py.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const order = {
  shape: "turn", kind: "partial", count: 100, size: 40, window: 1, sessions: 1, warm: 20, patience: 10,
  ...JSON.parse(process.argv[2]),
};
const require = createRequire(`${process.env.BENCH_MODULES}/index.js`);
const sdk = await import(pathToFileURL(require.resolve("@anthropic-ai/claude-agent-sdk")).href);
const { z } = await import(pathToFileURL(require.resolve("zod")).href);

const OPENED_AT_ONCE = 8;
const report = { cpu: 0, wall: 0, items: order.count * order.sessions, peak: 0, held: 0, beside: 0, weight: 0, note: "" };
const prompt = `bench ${order.kind} ${order.count} ${order.size} ${order.window}`;
const warmPrompt = `bench ${order.kind} ${order.warm} ${Math.min(order.size, 65536)} ${Math.min(order.window, order.warm)}`;

const streams = ["partial", "trickle", "stamped", "streamed"].includes(order.kind);
let firstText = 0n;

// What is counted of each text: its length, except where times are measured.
function weigh(text) {
  if (order.folder && !firstText && text) firstText = process.hrtime.bigint();
  if (order.kind !== "stamped") return text.length;
  return /^\d+$/.test(text) ? Number(process.hrtime.bigint() - BigInt(text)) : 0;
}

const asks = (request) => order.kind === request || order.kind === "mixed";

class Conversation {
  constructor() {
    this.prompts = [];
    this.wake = () => {};
    this.ended = false;
    this.asked = new Promise((resolve) => (this.onAsked = resolve));
    this.query = sdk.query({ prompt: this.#input(), options: this.#options() });
    this.messages = this.query[Symbol.asyncIterator]();
  }

  async *#input() {
    while (!this.ended) {
      while (this.prompts.length) {
        const content = this.prompts.shift();
        yield { type: "user", session_id: "", parent_tool_use_id: null, message: { role: "user", content } };
      }
      if (!this.ended) await new Promise((resolve) => (this.wake = resolve));
    }
  }

  #options() {
    const options = {
      pathToClaudeCodeExecutable: order.program,
      includePartialMessages: streams,
    };
    if (order.folder) options.cwd = order.folder;
    else options.settingSources = [];
    if (asks("permission") || order.kind === "backlog")
      options.canUseTool = async (_name, input) => {
        this.onAsked();
        return { behavior: "allow", updatedInput: input };
      };
    if (asks("hook")) options.hooks = { PreToolUse: [{ hooks: [async () => ({})] }] };
    if (asks("tool")) options.mcpServers = { bench: server() };
    return options;
  }

  async ready() {
    await this.query.initializationResult();
  }

  send(text) {
    this.prompts.push(text);
    this.wake();
  }

  async turn(text) {
    this.send(text);
    let weight = 0;
    for (;;) {
      const { value: message, done } = await this.messages.next();
      if (done) throw new Error("the stream ended before the result");
      if (message.type === "stream_event") weight += weigh(message.event.delta?.text ?? "");
      else if (message.type === "assistant")
        for (const block of message.message.content) weight += weigh(block.text ?? "");
      else if (message.type === "result") {
        if (text.startsWith("bench") && message.result !== `done ${text.split(" ")[2]}`) throw new Error(JSON.stringify(message));
        return weight;
      }
    }
  }

  close() {
    this.ended = true;
    this.wake();
    this.query.close?.();
  }
}

function server() {
  const add = sdk.tool("add", "Add two numbers.", { a: z.number(), b: z.number() }, async ({ a, b }) => ({
    content: [{ type: "text", text: String(a + b) }],
  }));
  return sdk.createSdkMcpServer({ name: "bench", tools: [add] });
}

async function open() {
  const talk = new Conversation();
  await talk.ready();
  return talk;
}

async function openMany() {
  const talks = [];
  while (talks.length < order.sessions) {
    const missing = Math.min(OPENED_AT_ONCE, order.sessions - talks.length);
    talks.push(...(await Promise.all(Array.from({ length: missing }, open))));
  }
  return talks;
}

const seconds = (since) => Number(process.hrtime.bigint() - since) / 1e9;

// One prompt with the default options, as a string.
async function oneShot(prompt) {
  const options = { pathToClaudeCodeExecutable: order.program, cwd: order.folder };
  let weight = 0;
  for await (const message of sdk.query({ prompt, options }))
    if (message.type === "assistant") for (const block of message.message.content) weight += block.text?.length ?? 0;
  return weight;
}

function stopwatch() {
  const cpu = process.cpuUsage();
  const wall = process.hrtime.bigint();
  return () => {
    const used = process.cpuUsage(cpu);
    report.cpu += (used.user + used.system) / 1e6;
    report.wall += Number(process.hrtime.bigint() - wall) / 1e9;
  };
}

function resident() {
  globalThis.gc();
  return process.memoryUsage().rss;
}

const shapes = {
  async turn() {
    const talks = await openMany();
    await Promise.all(talks.map((each) => each.turn(warmPrompt)));
    const read = stopwatch();
    const weights = await Promise.all(talks.map((each) => each.turn(prompt)));
    read();
    report.weight = weights.reduce((sum, each) => sum + each, 0);
  },
  async latency() {
    await shapes.turn();
    // The readers added up delays instead of characters.
    report.wall = report.weight / 1e9;
    report.weight = 0;
  },
  async stock() {
    const started = process.hrtime.bigint();
    const talk = await open();
    report.start = seconds(started);
    report.items = 1;
    await talk.turn("warm up");
    firstText = 0n;
    const read = stopwatch();
    const sent = process.hrtime.bigint();
    report.weight = await talk.turn("measured");
    read();
    report.first = Number(firstText - sent) / 1e9;
    talk.close();
  },
  async "one-shot"() {
    await oneShot("warm up");
    const read = stopwatch();
    for (let number = 0; number < order.count; number++) report.weight += await oneShot("measured");
    read();
    report.items = order.count;
  },
  async quiet() {
    const talks = await openMany();
    for (const each of talks) await each.turn(warmPrompt);
    const read = stopwatch();
    await new Promise((resolve) => setTimeout(resolve, 5000));
    read();
    report.items = order.sessions;
    report.quiet = report.cpu / report.wall;
    talks.forEach((each) => each.close());
  },
  async connect() {
    for (let number = 0; number <= order.count; number++) {
      const read = stopwatch();
      const talk = await open();
      if (number) read();
      talk.close();
    }
  },
  async idle() {
    const first = await open();
    await first.turn(warmPrompt);
    const before = resident();
    const talks = await openMany();
    for (const each of talks) await each.turn(warmPrompt);
    report.items = order.sessions;
    report.held = (resident() - before) / order.sessions;
    first.close();
    talks.forEach((each) => each.close());
  },
  async backlog() {
    const talk = await open();
    await talk.turn("bench assistant 10 100 1");
    const read = stopwatch();
    talk.send(prompt);
    const late = new Promise((resolve) => setTimeout(resolve, order.patience * 1000, "late"));
    if ((await Promise.race([talk.asked, late])) === "late") report.note = "never";
    read();
  },
};

await shapes[order.shape]();
report.peak = process.resourceUsage().maxRSS * 1024;
console.log(JSON.stringify(report));
process.exit(0);
