// Background tasks and subagents, and the list of what is to be done.

import { isObject, list, number, object, text, type JsonObject } from "../json";
import type { Call, Task, Todo } from "../picture";
import type { Draft } from "./draft";

const UNENDED = new Set(["running", "pending", "paused", "waiting"]);

/** Reads a system message about tasks; returns whether it was one. */
export function readTask(draft: Draft, frame: JsonObject, at: number): boolean {
  const id = text(frame["task_id"]);
  switch (frame["subtype"]) {
    case "task_started":
      change(draft, id, at, { state: "running", ...factsOf(frame) });
      return true;
    case "task_progress":
      change(draft, id, at, { ...factsOf({ ...frame, description: "" }), ...given("doing", frame["description"]) });
      return true;
    case "task_updated":
      update(draft, id, at, object(frame["patch"]));
      return true;
    case "task_notification":
      change(draft, id, at, { ...factsOf(frame), state: text(frame["status"]) || "ended" });
      return true;
    case "background_tasks_changed":
      replaceBackground(draft, frame, at);
      return true;
    default:
      return false;
  }
}

/** Ends all running tasks, because their CLI has exited. */
export function loseTasks(draft: Draft, at: number): void {
  for (const task of draft.now.tasks.values()) {
    if (task.ended === null) change(draft, task.id, at, { state: "lost" });
  }
}

function update(draft: Draft, id: string, at: number, patch: JsonObject): void {
  const background = patch["is_backgrounded"];
  const ended = "end_time" in patch ? { state: "ended" } : {};
  change(draft, id, at, {
    ...given("description", patch["description"]),
    ...given("summary", patch["summary"]),
    ...(typeof background === "boolean" ? { isBackground: background } : {}),
    ...(text(patch["status"]) ? { state: text(patch["status"]) } : ended),
  });
}

function replaceBackground(draft: Draft, frame: JsonObject, at: number): void {
  const listed = new Map(
    list(frame["tasks"])
      .map(object)
      .filter((each) => text(each["task_id"]))
      .map((each) => [text(each["task_id"]), each]),
  );
  for (const task of [...draft.now.tasks.values()]) {
    if (task.isBackground && task.ended === null && !listed.has(task.id)) {
      change(draft, task.id, at, { state: "ended" });
    }
  }
  for (const [id, each] of listed) change(draft, id, at, { ...factsOf(each), isBackground: true });
}

function factsOf(frame: JsonObject): Partial<Task> {
  const usage = object(frame["usage"]);
  const background = frame["is_backgrounded"];
  return {
    ...given("toolUseId", frame["tool_use_id"]),
    ...given("type", frame["task_type"]),
    ...given("agentType", frame["subagent_type"]),
    ...given("description", frame["description"]),
    ...given("summary", frame["summary"]),
    ...(typeof background === "boolean" ? { isBackground: background } : {}),
    ...(isObject(frame["usage"])
      ? { tokens: number(usage["total_tokens"]), toolUses: number(usage["tool_uses"]) }
      : {}),
  };
}

function given(name: keyof Task, value: unknown): Partial<Task> {
  return text(value) ? { [name]: text(value) } : {};
}

function change(draft: Draft, id: string, at: number, facts: Partial<Task>): void {
  if (!id) return;
  const before = draft.now.tasks.get(id) ?? newTask(id, at);
  let after: Task = { ...before, ...facts };
  if (!UNENDED.has(after.state)) {
    // A stopped shell is `killed` in one message and `stopped` in the next: the first one counts.
    const isStated = before.ended !== null && before.state !== "ended" && before.state !== "lost";
    after = { ...after, state: isStated ? before.state : after.state, ended: before.ended ?? at };
  } else if (before.ended !== null) {
    after = { ...after, ended: null };
  }
  draft.map("tasks").set(id, after);
}

function newTask(id: string, started: number): Task {
  return {
    id,
    toolUseId: "",
    type: "",
    agentType: "",
    description: "",
    state: "running",
    started,
    ended: null,
    isBackground: false,
    doing: "",
    summary: "",
    tokens: 0,
    toolUses: 0,
  };
}

// The list of what is to be done: `TodoWrite` has it whole, `TaskCreate` and `TaskUpdate` in parts.

/** Reads the list off a call that has ended, or that just began. */
export function readTodos(draft: Draft, call: Call): void {
  if (call.parent) return;
  if (call.name === "TodoWrite") {
    draft.now.todos = list(call.input["todos"]).map((each, at) => todoOf(object(each), at));
  } else if (call.name === "TaskCreate" && call.state === "done") {
    const task = object(object(call.output)["task"]);
    const todo = { id: text(task["id"]), text: text(task["subject"]), status: "pending" };
    if (todo.id) draft.now.todos = [...draft.now.todos.filter((each) => each.id !== todo.id), todo];
  } else if (call.name === "TaskUpdate" && call.state === "done") {
    updateTodo(draft, text(call.input["taskId"]), call.input);
  }
}

function updateTodo(draft: Draft, id: string, facts: JsonObject): void {
  const changed = draft.now.todos.map((each) =>
    each.id === id
      ? { ...each, status: text(facts["status"], each.status), text: text(facts["subject"], each.text) }
      : each,
  );
  draft.now.todos = changed.filter((each) => each.status !== "deleted");
}

function todoOf(found: JsonObject, at: number): Todo {
  const status = text(found["status"], "pending");
  const doing = status === "in_progress" ? text(found["activeForm"]) : "";
  return { id: String(at), text: doing || text(found["content"]), status };
}
