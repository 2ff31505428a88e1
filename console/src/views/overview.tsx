// What a session is about beside its words: what is to be done, who works, what it costs, how it went.

import { useState } from "preact/hooks";
import type { Picture, Task } from "../picture";
import { control, now } from "../store";
import { count, duration, isAtWork, plural } from "../words";
import { Meters, Timeline, TurnChart } from "./charts";

/** The short form, beside the conversation on wide pages. */
export function Rail({ picture }: { picture: Picture }) {
  return (
    <aside class="rail" aria-label="Details">
      <Meters picture={picture} />
      <TurnChart picture={picture} />
      <TodoList picture={picture} />
      <Tasks picture={picture} />
    </aside>
  );
}

export function Overview({ id, picture }: { id: string; picture: Picture }) {
  const until = isAtWork(picture.state) ? now.value : picture.since;
  return (
    <div class="overview" tabIndex={0} role="region" aria-label="Overview">
      <div class="column">
        <section>
          <h2>Context and cost</h2>
          <Meters picture={picture} />
          <TurnChart picture={picture} />
        </section>
        <TodoList picture={picture} />
        <Tasks picture={picture} />
        <section>
          <h2>Timeline</h2>
          <Timeline picture={picture} until={until} />
        </section>
        <section>
          <h2>Session</h2>
          <dl class="fields">
            {facts(picture).map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ))}
          </dl>
          <Controls id={id} model={picture.model} />
        </section>
      </div>
    </div>
  );
}

function Controls({ id, model }: { id: string; model: string }) {
  const [name, setName] = useState("");
  return (
    <form
      class="controls"
      onSubmit={(event) => {
        event.preventDefault();
        void control("set_model", id, { model: name.trim() || null });
      }}
    >
      <input
        type="text"
        aria-label="Another model"
        placeholder={model || "model"}
        value={name}
        onInput={(event) => setName(event.currentTarget.value)}
      />
      <button type="submit">Use this model</button>
      <button type="button" class="end-session" onClick={() => void control("cancel", id)}>
        End the session
      </button>
    </form>
  );
}

function facts(picture: Picture): [string, string][] {
  const all: [string, string][] = [
    ["Model", picture.model],
    ["Permission mode", picture.mode],
    ["Folder", picture.cwd],
    ["CLI", picture.version],
    ["Conversation", picture.sessionId],
    ["Entries", `${picture.firstSeq} to ${picture.lastSeq}`],
  ];
  return all.filter(([, value]) => value);
}

function TodoList({ picture }: { picture: Picture }) {
  if (!picture.todos.length) return null;
  const done = picture.todos.filter((each) => each.status === "completed").length;
  return (
    <section>
      <h2>
        To do{" "}
        <span class="quiet">
          {done} of {picture.todos.length}
        </span>
      </h2>
      <ul class="todos">
        {picture.todos.map((each) => (
          <li key={each.id} class={each.status}>
            <span class="aside">{each.status.replace("_", " ")}: </span>
            {each.text}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Tasks({ picture }: { picture: Picture }) {
  const tasks = [...picture.tasks.values()].slice(-20).reverse();
  if (!tasks.length) return null;
  return (
    <section>
      <h2>Subagents and tasks</h2>
      <ul class="tasks">
        {tasks.map((task) => (
          <li key={task.id} class={task.ended === null ? "busy" : ""}>
            <span class="title">{task.description || task.agentType || task.id}</span>
            <span class="quiet">{taskFacts(task)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function taskFacts(task: Task): string {
  const length = (task.ended ?? now.value) - task.started;
  return [
    task.agentType,
    task.isBackground ? "background" : "",
    task.ended === null ? task.doing || "at work" : task.state,
    duration(length),
    task.tokens ? `${count(task.tokens)} tokens` : "",
    task.toolUses ? plural(task.toolUses, "tool call") : "",
  ]
    .filter(Boolean)
    .join(" · ");
}
