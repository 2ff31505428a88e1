// Forms for questions of the agent and of MCP servers.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { list, object, text, texts, type Json, type JsonObject } from "../json";
import type { Ask } from "../protocol";

interface FormProps {
  readonly ask: Ask;
  readonly isSending: boolean;
  readonly give: (given: JsonObject) => Promise<void>;
}

/** The questions of `AskUserQuestion`: choices, or words of the reader's own. */
export function QuestionForm({ ask, isSending, give }: FormProps) {
  const questions = list(object(ask.payload["input"])["questions"]).map(object);
  const [chosen, setChosen] = useState<ReadonlyMap<number, readonly string[]>>(new Map());
  const [own, setOwn] = useState<ReadonlyMap<number, string>>(new Map());

  const answers = questions.map((question, at) => {
    const given = [...(chosen.get(at) ?? []), (own.get(at) ?? "").trim()].filter(Boolean);
    return { question: text(question["question"]), text: given.length ? given.join(", ") : null };
  });
  const isAnswered = answers.some((each) => each.text !== null);

  const choose = (at: number, label: string, isMany: boolean) => {
    const before = chosen.get(at) ?? [];
    const isOn = before.includes(label);
    const after = isMany ? (isOn ? before.filter((each) => each !== label) : [...before, label]) : [label];
    setChosen(new Map(chosen).set(at, after));
    if (!isMany) setOwn(new Map(own).set(at, ""));
  };

  return (
    <form
      class="questions"
      onSubmit={(event) => {
        event.preventDefault();
        void give({ answers });
      }}
    >
      {questions.map((question, at) => {
        const isMany = question["multiSelect"] === true;
        return (
          <fieldset key={at}>
            <legend>{text(question["question"])}</legend>
            {list(question["options"]).map((each, index) => {
              const label = text(each) || text(object(each)["label"]);
              return (
                <label key={index} class="choice">
                  <input
                    type={isMany ? "checkbox" : "radio"}
                    name={`${ask.id}.${at}`}
                    checked={(chosen.get(at) ?? []).includes(label)}
                    onChange={() => choose(at, label, isMany)}
                  />
                  <span>
                    {label}
                    <small>{text(object(each)["description"])}</small>
                  </span>
                </label>
              );
            })}
            <label class="own">
              Other
              <input
                type="text"
                value={own.get(at) ?? ""}
                onInput={(event) => {
                  setOwn(new Map(own).set(at, event.currentTarget.value));
                  if (!isMany) setChosen(new Map(chosen).set(at, []));
                }}
              />
            </label>
          </fieldset>
        );
      })}
      <div class="buttons">
        <button type="submit" class="primary" disabled={isSending || !isAnswered}>
          Answer
        </button>
        <button
          type="button"
          disabled={isSending}
          onClick={() => void give({ behavior: "deny", message: "The user did not answer." })}
        >
          Skip
        </button>
      </div>
    </form>
  );
}

/** The form that an MCP server asks for, by its schema. */
export function ElicitationForm({ ask, isSending, give, children }: FormProps & { children: ComponentChildren }) {
  const schema = object(ask.payload["requested_schema"] ?? ask.payload["requestedSchema"]);
  const properties = Object.entries(object(schema["properties"])).map(([name, each]) => [name, object(each)] as const);
  const required = new Set(texts(schema["required"]));
  const [values, setValues] = useState<Readonly<Record<string, Json>>>({});
  const set = (name: string, value: Json) => setValues({ ...values, [name]: value });

  return (
    <form
      class="questions"
      onSubmit={(event) => {
        event.preventDefault();
        void give({ action: "accept", content: values });
      }}
    >
      {properties.map(([name, field]) => (
        <label key={name} class="own">
          {text(field["title"], name)}
          <Input name={name} field={field} isRequired={required.has(name)} value={values[name] ?? null} set={set} />
          <small>{text(field["description"])}</small>
        </label>
      ))}
      <div class="buttons">
        <button type="submit" class="primary" disabled={isSending}>
          Answer
        </button>
        {children}
      </div>
    </form>
  );
}

interface InputProps {
  readonly name: string;
  readonly field: JsonObject;
  readonly isRequired: boolean;
  readonly value: Json;
  readonly set: (name: string, value: Json) => void;
}

function Input({ name, field, isRequired, value, set }: InputProps) {
  const choices = texts(field["enum"]);
  if (choices.length) {
    return (
      <select required={isRequired} value={text(value)} onChange={(event) => set(name, event.currentTarget.value)}>
        <option value="" />
        {choices.map((each) => (
          <option key={each} value={each}>{each}</option>
        ))}
      </select>
    );
  }
  if (field["type"] === "boolean") {
    return (
      <input type="checkbox" checked={value === true} onChange={(event) => set(name, event.currentTarget.checked)} />
    );
  }
  const isNumber = field["type"] === "number" || field["type"] === "integer";
  return (
    <input
      type={isNumber ? "number" : "text"}
      required={isRequired}
      value={value === null ? "" : String(value)}
      onInput={(event) => {
        const { value: typed, valueAsNumber } = event.currentTarget;
        set(name, isNumber ? (Number.isNaN(valueAsNumber) ? null : valueAsNumber) : typed);
      }}
    />
  );
}
