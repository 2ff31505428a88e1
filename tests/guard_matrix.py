"""The matrix of guards: every kind of guard by every way in which one fails. The tool must not run.

One session has a guard of every kind. The command of a call names the kind, the failure and the
time of the call: the hook that is asked about `cat hook-raises-fresh` raises, and every other
guard of the session allows that call. If it says `works`, that guard allows it too, and the tool
runs: so no cell of the matrix holds for another reason.

What there is not:

- A rule is data and cannot fail. A hook beside it fails, which only advises.
- A predicate is a plain function. Nothing can interrupt it, so it has no timeout; an `async def`
  is nothing that it may be (`coroutine`).
- A hook and an approver may be `async def`, so for them a coroutine is no failure.
- An approver has no timeout of ours. It may have its own (`late`), catch it and return None
  (`swallows`), which leaves the request to the inbox. If it allows late, it allows.
- `KeyboardInterrupt` and `SystemExit` deny and then end the program: see `test_hook_failures`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from steersman.errors import AskError, UsageError
from steersman.hooks import Hooks, PermissionRequest, PreToolUse
from steersman.hooks import allow as let_run
from steersman.inbox import Inbox
from steersman.permissions import Allow, Ask
from steersman.permissions.policy import Policy, allow, ask, deny
from steersman.permissions.rules import ToolCall
from steersman.testing.script import Step, call

MODES = ("default", "acceptEdits", "auto", "bypassPermissions", "dontAsk", "plan")

SHORT, LONG, NEVER = 0.1, 60.0, 3600.0
"""The timeouts of guards that will be late and of others, and the time for which a late one waits.
"""

ANSWERS: Mapping[str, Any] = {
    "nonsense": 42,
    "text": "allow",
    "misplaced": {"permissionDecision": "deny"},
    "behavior": {"behavior": "allow"},
    "underscored": {"hook_specific_output": {"permissionDecision": "deny"}},
    "misspelt": {
        "hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecison": "deny"}
    },
    "foreign": {"hookSpecificOutput": {"hookEventName": "Stop"}},
    "async": {"async": True},
    "reason": {"reason": "not here"},
}
"""What a guard returns that is not an answer."""


class Unusual(BaseException):
    """An error that is no `Exception`."""


ERRORS: Mapping[str, type[BaseException]] = {
    "raises": RuntimeError,
    "unusual": Unusual,
    "recursion": RecursionError,
    "exits": GeneratorExit,
    "cancelled": asyncio.CancelledError,
}

LATE = ("late", "swallows", "swallowsandallows")
COMMON = (*ANSWERS, "unwritable", *ERRORS, *LATE)
FAILURES = (*COMMON, "coroutine")
FEW = ("raises", "cancelled", "misplaced", "async", "unwritable", "late", "swallowsandallows")
"""One failure of each sort: what is sent to the CLI differs only between these."""

ASKED = ("permission", "approver", "inbox")
WRITING = "official"
"""The kind whose calls write. The others only read: all modes let these run if no guard stops them,
and in `bypassPermissions` an asked write is denied, whoever allows it."""

KINDS: Mapping[str, tuple[str, ...]] = {
    "rule": COMMON,
    "denying": (*ANSWERS, *ERRORS, "coroutine"),
    "allowing": (*ANSWERS, *ERRORS, "coroutine"),
    "hook": COMMON,
    "official": COMMON,
    "permission": COMMON,
    "approver": (*ANSWERS, "unwritable", *ERRORS, "late", "swallows"),
    "inbox": COMMON,
}
"""The kinds of guards, and how each can fail."""


@dataclass(frozen=True)
class Cell:
    """One call about which a guard of one kind is asked, and how it answers."""

    kind: str
    how: str
    when: str

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.how}-{self.when}"

    @property
    def writes(self) -> bool:
        return self.kind == WRITING

    @property
    def command(self) -> str:
        return f"{'touch' if self.writes else 'cat'} {self.name}"

    @property
    def step(self) -> Step:
        return call("Bash", command=self.command, id_=self.name)

    @property
    def works(self) -> bool:
        return self.how == "works"


def cells(when: str, *kinds: str, among: Container[str] = FAILURES) -> list[Cell]:
    """Return a cell for each failure of each kind, and one that works."""
    chosen = kinds or KINDS
    found = [Cell(kind, how, when) for kind in chosen for how in KINDS[kind] if how in among]
    return found + [Cell(kind, "works", when) for kind in chosen if kind != "rule"]


def cell_of(command: object) -> Cell:
    return Cell(*str(command).split()[1].split("-"))


def results_in(asked: Any) -> dict[str, str]:
    """Return the results of tools in the requests to the model."""
    return {id_: text for each in asked for id_, text in each.tool_results.items()}


@dataclass
class Guards:
    """A guard of each kind; `kill` kills the CLI that asks one."""

    kill: Callable[[], None] = lambda: None
    asked: list[Cell] = field(default_factory=list[Cell])
    """The cells about which a guard was asked, other than the rule."""

    def options(self) -> dict[str, Any]:
        """Return the options of a session with these guards."""
        hooks = Hooks()
        for timeout in (SHORT, LONG):
            self._register(hooks, timeout)
        return {
            "policy": Policy(
                deny("Bash(cat rule-*)"),
                deny("Bash(cat denying-*)", when=self._denies),
                allow("Bash(cat allowing-*)", when=self._allows),
                deny("Bash(cat allowing-*)"),
                ask(*(f"Bash(cat {kind}-*)" for kind in ASKED)),
                allow("Bash"),
            ),
            "hooks": hooks,
            "can_use_tool": self._approve,
            "inbox": FailingInbox(self),
        }

    def _register(self, hooks: Hooks, timeout: float) -> None:
        """Register hooks for the failures that take time, or for the others."""

        async def answer(kind: str, command: object) -> Any:
            cell = cell_of(command)
            is_mine = cell.kind == kind and (cell.how in LATE) == (timeout == SHORT)
            return await self._answer_late(cell) if is_mine else None

        @hooks.on(PreToolUse, timeout=timeout, kind="advise")
        async def beside_a_rule(event: PreToolUse) -> Any:
            return await answer("rule", event.tool_input["command"])

        @hooks.on(PreToolUse, timeout=timeout)
        async def hook(event: PreToolUse) -> Any:
            return await answer("hook", event.tool_input["command"])

        @hooks.on(PermissionRequest, timeout=timeout)
        async def permission_hook(event: PermissionRequest) -> Any:
            return await answer("permission", event.tool_input["command"])

        async def official_hook(given: Any, _tool_use_id: object, _context: object) -> Any:
            return await answer("official", given["tool_input"]["command"])

        hooks.on(PreToolUse, "^Ba", timeout=timeout)(official_hook)  # type: ignore[arg-type]  # its form has three parameters

    def _denies(self, call: ToolCall) -> Any:
        return self.answer(cell_of(call.input["command"]), yes=False)

    def _allows(self, call: ToolCall) -> Any:
        return self.answer(cell_of(call.input["command"]), yes=True)

    async def _approve(self, _tool: str, given: dict[str, Any], _context: object) -> Any:
        cell = cell_of(given["command"])
        if cell.kind == "inbox":
            return None
        if cell.kind != "approver":
            return Allow()
        if cell.how == "swallows":
            with suppress(TimeoutError):
                await self._wait(cell)
            return None
        if cell.how == "late":
            await self._wait(cell)
        return self.answer(cell, yes=Allow(), unwritable=Allow({"command": object()}))

    async def _wait(self, cell: Cell) -> None:
        self.asked.append(cell)
        async with asyncio.timeout(SHORT):
            await asyncio.sleep(NEVER)

    async def _answer_late(self, cell: Cell) -> Any:
        """Answer as a hook of this cell, perhaps after the timeout."""
        if cell.how == "late":
            self.asked.append(cell)
            await asyncio.sleep(NEVER)
        if cell.how in LATE:
            self.asked.append(cell)
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(NEVER)
            return None if cell.how == "swallows" else let_run()
        unwritable = let_run(updated_input={"command": object()})
        return self.answer(cell, yes=let_run(), unwritable=unwritable)

    def answer(self, cell: Cell, *, yes: Any, unwritable: Any = None) -> Any:
        """Answer as the guard of this cell: `yes` if it works, or once it has killed the CLI."""
        self.asked.append(cell)
        if cell.how == "kills":
            self.kill()
        if cell.how in ("kills", "works"):
            return yes
        if cell.how in ERRORS:
            raise ERRORS[cell.how]
        if cell.how == "coroutine":
            return asyncio.sleep(0, result=yes)
        return unwritable if cell.how == "unwritable" else ANSWERS[cell.how]


class FailingInbox:
    """An inbox whose asks are answered as their commands say. It raises if they say so."""

    def __init__(self, guards: Guards) -> None:
        self._guards = guards
        self._inbox, self._late = Inbox(), Inbox(expires_after=SHORT)
        self._answering: set[asyncio.Task[None]] = set()

    def open(self, ask: Ask, settle: Callable[[Any, str], None]) -> None:
        cell = cell_of(ask.tool_input["command"])
        if cell.how in ERRORS:
            self._guards.asked.append(cell)
            raise ERRORS[cell.how]
        self._of(ask).open(ask, settle)
        if cell.kind == "inbox":
            task = asyncio.get_running_loop().create_task(self._reply(ask, cell))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    def close(self, ask_id: str, reason: str) -> None:
        for inbox in (self._inbox, self._late):
            inbox.close(ask_id, reason)

    def close_ask(self, ask: Ask, reason: str) -> None:
        self._of(ask).close_ask(ask, reason)

    def _of(self, ask: Ask) -> Inbox:
        return self._late if cell_of(ask.tool_input["command"]).how in LATE else self._inbox

    async def _reply(self, ask: Ask, cell: Cell) -> None:
        if cell.how in LATE:
            self._guards.asked.append(cell)
            await self._until_expired(ask)
            answer: Any = Allow()
        else:
            answer = self._guards.answer(cell, yes=Allow(), unwritable=Allow({"command": object()}))
        inbox = self._of(ask)
        try:
            await inbox.answer(ask.id, answer, session=ask.session)
        except UsageError:
            await inbox.expire(ask.id, session=ask.session)
        except AskError:
            # It has expired, or its CLI is gone.
            return

    async def _until_expired(self, ask: Ask) -> None:
        async for change in self._late.watch():
            if change.ask.id == ask.id and change.what != "opened":
                return
