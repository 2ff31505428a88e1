// The input and the output of tools, readable: a terminal, a difference, a list, or plain fields.

import { addedLines, diffLines, patchLines, type Line } from "../diff";
import { isObject, list, object, text, type Json, type JsonObject } from "../json";
import type { Image } from "../picture";
import { imagesIn, promptText } from "../reading/turns";
import { exact, exactLine } from "../visible";
import { Folded, Markdown, pure } from "./parts";

const MOST_LINES = 400;

export function Diff({ lines, most = MOST_LINES }: { lines: readonly Line[]; most?: number }) {
  const shown = lines.slice(0, most);
  return (
    <div class="diff" role="group" aria-label="Changes" tabIndex={0}>
      <table>
        <tbody>
          {shown.map((line, at) => (
            <tr key={at} class={SIGNS[line.sign]}>
              <td class="number">{line.number || ""}</td>
              <td class="sign">
                {line.sign === "@" ? "" : line.sign}
                <span class="aside">{line.sign === "+" ? "added" : line.sign === "-" ? "removed" : ""}</span>
              </td>
              <td class="line">{exact(line.text)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {lines.length > shown.length && <p class="quiet">{lines.length - shown.length} more lines</p>}
    </div>
  );
}

const SIGNS = { "+": "added", "-": "removed", " ": "same", "@": "gap" } as const;

export function Terminal({ command, output }: { command: string; output?: string | undefined }) {
  return (
    <pre class="terminal" tabIndex={0}>
      <span class="prompt">$ </span>
      <span class="command">{exact(command)}</span>
      {output ? (
        <>
          {"\n"}
          <Folded text={output} />
        </>
      ) : null}
    </pre>
  );
}

/** The fields of an object, one below the other. */
export function Fields({ value, isWhole = false }: { value: JsonObject; isWhole?: boolean }) {
  const names = Object.keys(value);
  if (!names.length) return <p class="quiet">no input</p>;
  return (
    <dl class="fields">
      {names.map((name) => (
        <div key={name}>
          <dt>{exactLine(name)}</dt>
          <dd>
            <Value value={value[name] ?? null} isWhole={isWhole} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Value({ value, isWhole }: { value: Json; isWhole: boolean }) {
  const isText = typeof value === "string";
  if (!isText && (typeof value !== "object" || value === null)) return <code>{String(value)}</code>;
  const words = exact(isText ? value : JSON.stringify(value, null, 2));
  const shown = isWhole ? words : <Folded text={words} />;
  if (isText && !value.includes("\n")) return <span class="words">{shown}</span>;
  return (
    <pre class="value" tabIndex={0}>
      {shown}
    </pre>
  );
}

/** The fields of an input that have a form of their own in an ask, and what draws each of them. */
const DRAWN: Readonly<Record<string, readonly string[]>> = {
  Bash: ["command", "description"],
  Edit: ["old_string", "new_string"],
  Write: ["content"],
  NotebookEdit: ["new_source"],
  ExitPlanMode: ["plan"],
  Agent: ["prompt", "description"],
  Task: ["prompt", "description"],
};

/** All of an input, as it will be used: nothing is folded, read as Markdown or left out. */
export const WholeInput = pure<{ name: string; input: JsonObject }>(({ name, input }) => {
  const drawn = (DRAWN[name] ?? []).filter((field) => typeof input[field] === "string");
  const rest = Object.fromEntries(Object.entries(input).filter(([field]) => !drawn.includes(field)));
  return (
    <>
      {(!drawn.length || Object.keys(rest).length > 0) && <Fields value={rest} isWhole />}
      {drawn.length > 0 && <Drawn name={name} input={input} />}
    </>
  );
});

function Drawn({ name, input }: { name: string; input: JsonObject }) {
  const [before, after] = [text(input["old_string"]), text(input["new_string"])];
  switch (name) {
    case "Bash":
      return <Terminal command={text(input["command"])} />;
    case "Edit":
      return <Diff lines={diffLines(before, after)} most={Infinity} />;
    case "Write":
      return <Diff lines={addedLines(text(input["content"]))} most={Infinity} />;
    case "NotebookEdit":
      return <Diff lines={addedLines(text(input["new_source"]))} most={Infinity} />;
    default:
      return (
        <pre class="value" tabIndex={0}>
          {exact(text(input[name === "ExitPlanMode" ? "plan" : "prompt"]))}
        </pre>
      );
  }
}

/** The input of a tool. */
export function ToolInput({ name, input, output = null }: { name: string; input: JsonObject; output?: Json }) {
  switch (name) {
    case "Bash":
      return <Terminal command={text(input["command"])} />;
    case "Edit":
      return <Diff lines={patchLines(output) ?? diffLines(text(input["old_string"]), text(input["new_string"]))} />;
    case "Write":
      return <Diff lines={patchLines(output) ?? addedLines(text(input["content"]))} />;
    case "NotebookEdit":
      return (
        <Diff lines={diffLines(text(object(output)["old_source"]), text(input["new_source"]))} />
      );
    case "ExitPlanMode":
      return <Markdown text={text(input["plan"])} />;
    case "TodoWrite":
      return <Todos found={list(input["todos"])} />;
    case "AskUserQuestion":
      return <Questions found={list(input["questions"])} />;
    case "Agent":
    case "Task":
      return <Markdown text={text(input["prompt"])} />;
    default:
      return <Fields value={input} />;
  }
}

function Todos({ found }: { found: readonly Json[] }) {
  return (
    <ul class="todos">
      {found.map(object).map((each, at) => (
        <li key={at} class={text(each["status"])}>
          {text(each["content"])}
        </li>
      ))}
    </ul>
  );
}

function Questions({ found }: { found: readonly Json[] }) {
  return (
    <ul>
      {found.map(object).map((each, at) => (
        <li key={at}>{text(each["question"])}</li>
      ))}
    </ul>
  );
}

/** What a tool gave back, if its input does not show it already. */
export function ToolOutput({ name, content, output, isError }: OutputProps) {
  const reported = name === "Agent" || name === "Task" ? reportOf(output) : "";
  if (reported && !isError) return <Markdown text={reported} />;
  const words = outputText(name, content, output);
  const images = imagesIn(content);
  if (!isError && (name === "Edit" || name === "Write" || name === "TodoWrite")) return null;
  return (
    <>
      {words && (
        <pre class={isError ? "output error" : "output"} tabIndex={0}>
          <Folded text={words} />
        </pre>
      )}
      <Images images={images} />
    </>
  );
}

/** What a subagent reported, without the list of tools that the CLI puts before it. */
function reportOf(output: Json): string {
  const words = promptText(object(output)["content"]);
  return words.replace(/^\s*<tools-used-before-summary>[^<]*<\/tools-used-before-summary>\s*/, "");
}

interface OutputProps {
  readonly name: string;
  readonly content: Json;
  readonly output: Json;
  readonly isError: boolean;
}

function outputText(name: string, content: Json, output: Json): string {
  const fields = object(output);
  if (name === "Bash" && isObject(output)) {
    const parts = [text(fields["stdout"]), text(fields["stderr"])].filter(Boolean);
    if (parts.length) return parts.join("\n");
  }
  if (name === "AskUserQuestion") {
    const answers = Object.entries(object(fields["answers"]));
    if (answers.length) return answers.map(([asked, given]) => `${asked}\n→ ${text(given)}`).join("\n");
  }
  return promptText(content).replace(/^<tool_use_error>([\s\S]*)<\/tool_use_error>$/, "$1");
}

/** Only bytes that stand in the journal are shown; nothing is loaded from elsewhere. */
export function Images({ images }: { images: readonly Image[] }) {
  const shown = images.filter((each) => /^image\/(png|jpeg|gif|webp)$/.test(each.mediaType));
  if (!shown.length) return null;
  return (
    <div class="images">
      {shown.map((each, at) => (
        <img key={at} src={`data:${each.mediaType};base64,${each.data}`} alt="An image of the conversation" />
      ))}
    </div>
  );
}
