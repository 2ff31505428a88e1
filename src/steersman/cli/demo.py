"""`steersman demo`: one conversation that uses a tool, a hook, permissions and streamed text."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal, TextIO

from steersman._json import JsonDict
from steersman.agent import Agent, Session
from steersman.cli import demo_stage as stage
from steersman.cli.commands import Commands
from steersman.cli.demo_screen import Screen, screen_for
from steersman.cli.demo_script import PROMPT, demo_script
from steersman.cli.output import complain
from steersman.errors import CliNotFound, LaunchError, StartupError, SteersmanError
from steersman.hooks import Hooks, PreToolUse, Reply, deny
from steersman.journal import TurnResult
from steersman.permissions import Allow, Decision, Deny, PermissionContext
from steersman.testing.sandbox import find_any_cli

StageName = Literal["any", "embedded", "real"]

REAL_BUDGET_USD = 0.5

PAUSE = 0.25
"""Seconds before each answer of the host program, so that a reader can follow."""

REST_LIMIT = 5.0

INTERRUPTED = 130
"""The exit status that a shell reports for a program that Ctrl-C ended."""

REAL_WARNING = (
    "This uses your own Claude login and a real model. It may cost a few cents; it stops at"
    f" ${REAL_BUDGET_USD:.2f}. The agent works in a temporary folder."
)


def add_command(commands: Commands) -> None:
    """Add `steersman demo` and its arguments."""
    shown = commands.add_parser(
        "demo", help="a conversation in the terminal, offline and at no cost"
    )
    where = shown.add_mutually_exclusive_group()
    where.add_argument(
        "--embedded", action="store_true", help="use the embedded scripted CLI, not the stock one"
    )
    where.add_argument(
        "--real", action="store_true", help="use your own login and a real model; costs money"
    )
    shown.add_argument("--yes", action="store_true", help="with --real: do not ask first")
    shown.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    screen = screen_for(sys.stdout)
    if chosen.real and not (chosen.yes or _confirms(screen, chosen.stdin)):
        return 1
    try:
        return asyncio.run(show(screen, _stage_name(chosen)))
    except SteersmanError as error:
        screen.end()
        complain(error)
        return 1
    except KeyboardInterrupt:
        screen.end()
        return INTERRUPTED


def _stage_name(chosen: argparse.Namespace) -> StageName:
    if chosen.real:
        return "real"
    return "embedded" if chosen.embedded else "any"


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
