"""`steersman demo`: one conversation that uses a tool, a hook, permissions and streamed text."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal, TextIO

from steersman._json import JsonDict
from steersman._terminal import printable
from steersman.agent import Agent, Session
from steersman.cli import demo_stage as stage
from steersman.cli.output import complain
from steersman.cli.statuses import FAILED, INTERRUPTED
from steersman.errors import CliNotFound, LaunchError, StartupError, SteersmanError
from steersman.hooks import Hooks, PreToolUse, Reply, deny
from steersman.journal import TurnResult
from steersman.permissions import Allow, Decision, Deny, PermissionContext
from steersman.testing.request import ModelRequest
from steersman.testing.sandbox import find_any_cli
from steersman.testing.script import Script, Step, Usage, call, say, stall, step

StageName = Literal["any", "embedded", "real"]

REAL_BUDGET_USD = 0.5

PAUSE = 0.25
"""Seconds before each answer of the host program, so that a reader can follow."""

REST_LIMIT = 5.0

REAL_WARNING = (
    "This uses your own Claude login and a real model. It may cost a few cents; it stops at"
    f" ${REAL_BUDGET_USD:.2f}. The agent works in a temporary folder."
)


def play(*, embedded: bool, real: bool, yes: bool, stdin: TextIO) -> int:
    """Show the demo."""
    screen = screen_for(sys.stdout)
    if real and not (yes or _confirms(screen, stdin)):
        return FAILED
    try:
        return asyncio.run(show(screen, "real" if real else "embedded" if embedded else "any"))
    except SteersmanError as error:
        screen.end()
        complain(error)
        return FAILED
    except KeyboardInterrupt:
        screen.end()
        return INTERRUPTED


def _confirms(screen: Screen, stdin: TextIO) -> bool:
    screen.line("real", REAL_WARNING)
    if not stdin.isatty():
        screen.line("real", "There is no terminal to ask on; pass --yes to agree beforehand.")
        return False
    screen.line("real", "Continue? [y/N]")
    return stdin.readline().strip().lower() in ("y", "yes")


async def show(
    screen: Screen,
    where: StageName = "any",
    *,
    pause: float = PAUSE,
    find: Callable[[], str] = find_any_cli,
) -> int:
    """Play the demo and return the exit status."""
    if where == "real":
        return await _play(screen, stage.real(REAL_BUDGET_USD), pause)
    why = "as you asked"
    if where == "any":
        try:
            return await _play(screen, stage.stock(demo_script, find()), pause)
        except CliNotFound:
            why = "no stock CLI was found"
        except (LaunchError, StartupError) as error:
            why = f"the stock one did not start: {error.what.splitlines()[0]}"
    return await _play(screen, stage.embedded(demo_script, why), pause)


async def _play(screen: Screen, place: AbstractContextManager[stage.Stage], pause: float) -> int:
    with place as chosen:
        result = await Demo(screen, chosen, pause).play()
    return 0 if result.is_success else 1


class Demo:
    """The host program of the demo: a tool, a hook, a permission callback, and a reader."""

    _session: Session

    def __init__(self, screen: Screen, place: stage.Stage, pause: float = PAUSE) -> None:
        self._screen = screen
        self._stage = place
        self._pause = pause
        self._state = "starting"

    async def play(self) -> TurnResult:
        """Start a session, send the prompt, show the answer while it streams, and close."""
        async with self._agent().session() as self._session:
            version = self._session.initialized.claude_code_version
            self._screen.title("steersman demo: " + self._stage.title.replace("{version}", version))
            self._show_state()
            self._screen.line("you", PROMPT)
            turn = await self._session.send(PROMPT)
            self._show_state()
            async for chunk in turn.text():
                self._show_state()
                self._screen.stream("claude", chunk)
            result = await turn
            await self._rest()
            self._show_result(result)
        self._show_state()
        return result

    def _agent(self) -> Agent:
        hooks = Hooks()
        hooks.on(PreToolUse, "Bash")(self.before_bash)
        return Agent(
            functions=[self.add],
            hooks=hooks,
            can_use_tool=self.decide,
            tools=["Bash", "Write"],
            cwd=self._stage.project,
            **self._stage.fields,
        )

    async def add(self, a: float, b: float) -> float:
        """Add two numbers."""
        await self._moment()
        self._screen.line("tool", f"add({a}, {b}) runs here, in Python, and returns {a + b}")
        return a + b

    async def before_bash(self, event: PreToolUse) -> Reply | None:
        """Deny commands that delete files."""
        await self._moment()
        command = str(event.tool_input.get("command", ""))
        self._screen.line("hook", f"before Bash: {command}")
        if not command.startswith("rm "):
            return None
        self._screen.line("denied", "by the hook: nothing is deleted here")
        return deny("Nothing is deleted here.")

    async def decide(self, tool_name: str, tool_input: JsonDict, _: PermissionContext) -> Decision:
        """Answer permission requests: allow writes in the project, deny everything else."""
        await self._moment()
        if tool_name == "Write":
            path = Path(str(tool_input.get("file_path", "")))
            self._screen.line("ask", f"may it write {path.name}?")
            if path.parent == self._stage.project:
                self._screen.line("allowed", "it lies in the project's folder")
                return Allow()
        else:
            self._screen.line("ask", f"may it run {tool_name}: {tool_input.get('command', '')}?")
        self._screen.line("denied", "this needs a review by the user")
        return Deny("This needs a review by the user.")

    async def _moment(self) -> None:
        """Pause, so that the text before can be read."""
        await asyncio.sleep(self._pause)
        self._show_state()

    async def _rest(self) -> None:
        """Wait until the CLI is idle; a turn has its result a moment earlier."""
        async with asyncio.timeout(REST_LIMIT):
            async for _ in self._session.journal():
                if self._session.state != "running":
                    break
        self._show_state()

    def _show_state(self) -> None:
        state = self._session.state
        if state != self._state:
            self._screen.line("state", f"{self._state} → {state}")
            self._state = state

    def _show_result(self, result: TurnResult) -> None:
        written = self._stage.project / "total.txt"
        if written.is_file():
            self._screen.line("file", f"total.txt holds {written.read_text().strip()}")
        spent = "as the CLI computes it; nothing was spent" if self._stage.is_free else "spent"
        self._screen.line("cost", f"${result.cost_usd:.4f} ({spent})")
        if result.is_success:
            denied = len(result.permission_denials)
            self._screen.line("turn", f"completed, {denied} tool calls denied")
        else:
            self._screen.line("failed", str(result.cause or result.answer or result.outcome))


GUTTER = 9
NARROWEST = 2 * GUTTER
WIDEST = 88

COLOURS: Mapping[str, str] = {
    "you": "1",
    "claude": "36",
    "tool": "35",
    "ask": "33",
    "hook": "34",
    "allowed": "32",
    "denied": "31",
    "state": "2",
    "cost": "32",
    "file": "32",
    "failed": "31",
    "real": "33",
}


class Screen:
    """Writes labelled lines and streamed text, both wrapped at `width`."""

    def __init__(self, out: TextIO, *, width: int = 80, has_colour: bool = False) -> None:
        self._out = out
        self._width = max(NARROWEST, min(width, WIDEST))
        self._has_colour = has_colour
        self._column = 0
        self._rest = ""
        """The beginning of a word whose end has not arrived."""
        self._gap = ""
        """The space before the next word, written if the word fits on the line."""

    def title(self, text: str) -> None:
        """Write the title."""
        self.end()
        for line in textwrap.wrap(_shown(text), self._width):
            self._write(self._coloured("1", line) + "\n")
        self._write("\n")

    def line(self, label: str, text: str) -> None:
        """Write one labelled line."""
        self.end()
        body = textwrap.wrap(_shown(text), self._width - GUTTER) or [""]
        if label == "state":
            body = [self._coloured(COLOURS["state"], part) for part in body]
        self._write(self._label(label) + f"\n{' ' * GUTTER}".join(body) + "\n")

    def stream(self, label: str, chunk: str) -> None:
        """Write the next chunk of a text, word by word; the first chunk begins a line."""
        chunk = _shown(chunk)
        if self._column == 0:
            chunk = chunk.lstrip()
            if not chunk:
                return
            self._write(self._label(label))
            self._column = GUTTER
        *whole, self._rest = re.split(r"(?<=\s)(?=\S)", self._rest + chunk)
        for word in whole:
            self._put(word)

    def end(self) -> None:
        """End the line of streamed text, if there is one."""
        if self._column:
            rest, self._rest = self._rest, ""
            self._put(rest)
            self._write("\n")
            self._column, self._gap = 0, ""

    def _put(self, word: str) -> None:
        """Write a word, on the next line if it does not fit; keep the space after it for later."""
        bare = word.rstrip()
        if self._column + len(self._gap + bare) > self._width:
            self._break()
        room = self._width - GUTTER
        for start in range(0, len(bare) - room, room):
            self._write(bare[start : start + room])
            self._break()
        last = self._gap + bare[max(0, (len(bare) - 1) // room) * room :]
        self._write(last)
        self._column += len(last)
        self._gap = word[len(bare) :]
        if "\n" in self._gap:
            self._break()

    def _break(self) -> None:
        self._write("\n" + " " * GUTTER)
        self._column, self._gap = GUTTER, ""

    def _label(self, label: str) -> str:
        return self._coloured(COLOURS.get(label, "0"), label.rjust(GUTTER - 2)) + "  "

    def _coloured(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._has_colour else text

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def _shown(text: str) -> str:
    """Return text of the model, of a tool or of a file without commands for the terminal."""
    return printable(text.replace("\r", "\n"))


def screen_for(out: TextIO, environ: Mapping[str, str] = os.environ) -> Screen:
    """Return a screen for `out`, with colours only on a terminal that supports them."""
    has_colour = out.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
    return Screen(out, width=shutil.get_terminal_size((80, 24)).columns, has_colour=has_colour)


PROMPT = (
    "What is 19.99 + 5.01? Use the add tool, write the total to total.txt, push it with"
    " `git push`, then tidy up with `rm total.txt`."
)

TYPING = 0.03
"""Seconds between two words."""

USAGE = Usage(input_tokens=420, cache_read_input_tokens=9_000)
"""The token usage of each step, from which the CLI computes the cost."""


def demo_script(project: Path) -> Script:
    """Return the script: one turn of five steps that call an own tool, Write and Bash."""

    def write(request: ModelRequest) -> Step:
        total = next(iter(request.tool_results.values()), "25.0")
        return typed(f"The total is {total}. I'll write it down.") + call(
            "Write", file_path=str(project / "total.txt"), content=f"{total}\n"
        )

    return Script(
        typed("I'll add the two amounts first.") + call("mcp__functions__add", a=19.99, b=5.01),
        write,
        typed("Written. Now I'll push it.") + _bash("git push", "Push the commit"),
        typed(
            "Pushing needs your review, so I'll leave that to you. One thing is left: tidying up."
        )
        + _bash("rm total.txt", "Remove the file"),
        typed(
            "Done, except for two things I was not allowed to do: push, and remove total.txt."
            " 19.99 + 5.01 makes 25, and the file still says so."
        ),
    )


def typed(text: str) -> Step:
    """Send `text` word by word, with short pauses."""
    parts = [part for word in text.split(" ") for part in (say(f"{word} "), stall(TYPING))]
    return step(*parts, usage=USAGE)


def _bash(command: str, description: str) -> Step:
    return call("Bash", command=command, description=description)
