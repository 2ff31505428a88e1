"""A policy on the stock CLI: what it says is what happens, and the record says who decided."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from steersman import Allow, Deny, Hooks, Policy, Toolbox, tool
from steersman.hooks import PreToolUse
from steersman.journal import Kind
from steersman.permissions import PermissionContext, allow, ask, deny
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Step, call, calls, say
from tests.live.staging import LIMIT, MakeScripted, entries_of

pytestmark = pytest.mark.live

Said = Literal["none", "allow", "ask", "deny"]
Answered = Literal["yes", "no"]
ANSWERS: tuple[Answered, ...] = ("yes", "no")
SAID: tuple[Said, ...] = ("none", "allow", "ask", "deny")
MODES = ("default", "acceptEdits", "plan", "dontAsk", "auto", "bypassPermissions")

LESS = ("acceptEdits", "plan", "dontAsk")
"""Modes whose column the suite compares in other tests; here only `make soak` does."""

# What becomes of a call, by what is said of it, with a letter for each of the modes above.
# r: it runs and nobody is asked; a: somebody is asked; d: it is denied and nobody is asked.
MATRIX: dict[str, dict[Said, str]] = {
    "write": {"none": "aradrr", "allow": "rrarrr", "ask": "aaaaad", "deny": "dddddd"},
    "outside": {"none": "aaaddr", "allow": "rrarrr", "ask": "aaaaad", "deny": "dddddd"},
    "read": {"none": "rrrrrr", "allow": "rrrrrr", "ask": "aaaaaa", "deny": "dddddd"},
    "make": {"none": "aadddr", "allow": "rrrrrr", "ask": "aaaaad", "deny": "dddddd"},
    "list": {"none": "rrrrrr", "allow": "rrrrrr", "ask": "aaaaaa", "deny": "dddddd"},
    "mcp": {"none": "aaaddr", "allow": "rrarrr", "ask": "aaaaaa", "deny": "dddddd"},
    # The CLI guards these whatever a hook allows. In the last mode it would not ask about them, and
    # a link may lead to them from everywhere: there our guard denies every asked write.
    "guarded": {"none": "aadddr", "allow": "aadddr", "ask": "aadddd", "deny": "dddddd"},
}
LETTERS = {"r": "ran", "a": "asked", "d": "denied"}


@dataclass(frozen=True)
class Combination:
    """A call, what our rule and the caller's own hook say of it, and what the callback would."""

    kind: str
    rule: Said
    hook: Said = "none"
    answer: Answered = "no"

    @property
    def id(self) -> str:
        return f"{self.kind}_{self.rule}_{self.hook}_{self.answer}"

    def expected(self, mode: str) -> tuple[str, bool]:
        """How it ends, and whether the tool runs."""
        strongest = max(self.rule, self.hook, key=SAID.index)
        ending = LETTERS[MATRIX[self.kind][strongest][MODES.index(mode)]]
        return ending, ending == "ran" or (ending == "asked" and self.answer == "yes")


COMBINATIONS = [
    *(
        Combination("write", rule, hook, answer)
        for rule, hook, answer in itertools.product(SAID, SAID, ANSWERS)
    ),
    *(Combination(kind, rule) for kind in MATRIX for rule in SAID if kind != "write"),
]


class Stage:
    """The calls of the matrix, and what they leave behind."""

    def __init__(self, box: CliSandbox) -> None:
        self.box = box
        self.asked: list[str] = []
        self.called: list[str] = []
        self.elsewhere = box.root / "elsewhere"
        self.elsewhere.mkdir()
        for said in SAID:
            (box.project / f"{said}-read").write_text(f"secret of {said}")
            (box.project / f"{said}-list").mkdir()
            (box.project / f"{said}-list" / "marker").touch()

    def input_of(self, each: Combination) -> tuple[str, dict[str, Any]]:
        project, rule = self.box.project, each.rule
        return {
            "write": ("Write", {"file_path": str(project / rule / each.id), "content": "x"}),
            "outside": ("Write", {"file_path": str(self.elsewhere / rule), "content": "x"}),
            "read": ("Read", {"file_path": str(project / f"{rule}-read")}),
            "make": ("Bash", {"command": f"mkfifo {rule}.fifo"}),
            "list": ("Bash", {"command": f"ls {rule}-list"}),
            "mcp": (f"mcp__box__{rule}", {}),
            "guarded": (
                "Write",
                {"file_path": str(project / ".vscode" / rule), "content": "x"},
            ),
        }[each.kind]

    def policy(self, order: str) -> Policy:
        def rules(said: str) -> Iterator[str]:
            yield f"Edit(/{said}/**)"
            yield f"Edit(/{self.elsewhere}/{said})"
            yield f"Read({said}-read)"
            yield f"Bash(mkfifo {said}.fifo)"
            yield f"Bash(ls {said}-list)"
            yield f"mcp__box__{said}"
            yield f"Edit(.vscode/{said})"

        made = {
            "deny": deny(*rules("deny")),
            "ask": ask(*rules("ask")),
            "allow": allow(*rules("allow")),
        }
        return Policy(*(made[said] for said in order.split()))

    def toolbox(self) -> Toolbox:
        def made(name: str) -> Any:
            @tool(name=name)
            def ping() -> str:
                """Ping."""
                self.called.append(name)
                return "pong"

            return ping

        return Toolbox("box", [made(said) for said in SAID])

    def hooks(self) -> Hooks:
        hooks, said_of = Hooks(), {each.id: each.hook for each in COMBINATIONS}

        @hooks.on(PreToolUse)
        def says(event: PreToolUse) -> Any:
            said = said_of[event.tool_use_id]
            output = {"hookEventName": "PreToolUse", "permissionDecision": said}
            return None if said == "none" else {"hookSpecificOutput": output}

        return hooks

    def decide(self, _name: str, _input: dict[str, Any], context: PermissionContext) -> Any:
        self.asked.append(context.tool_use_id)
        return Allow() if context.tool_use_id.endswith("yes") else Deny("no")

    def step(self) -> Step:
        made = [(each.id, *self.input_of(each)) for each in COMBINATIONS]
        return calls(*(call(name, given, id_=id_) for id_, name, given in made))

    def seen(self, each: Combination, told: dict[str, str]) -> tuple[str, bool]:
        """How a call really ended, and what there is of it."""
        name, given = self.input_of(each)
        has_run = {
            "mcp": each.rule in self.called,
            "list": "marker" in told[each.id],
            "read": f"secret of {each.rule}" in told[each.id],
            "make": (self.box.project / f"{each.rule}.fifo").exists(),
        }.get(each.kind)
        if has_run is None:
            assert name == "Write"
            has_run = self.box.root.joinpath(given["file_path"]).exists()
        if each.id in self.asked:
            return "asked", has_run
        return "ran" if has_run else "denied", has_run


@pytest.mark.parametrize(
    ("mode", "order"),
    [
        *((mode, "deny allow ask") for mode in MODES if mode not in LESS),
        *(pytest.param(mode, "deny allow ask", marks=pytest.mark.soak_only) for mode in LESS),
        # Here the CLI does not hold the denials as well.
        ("default", "ask allow deny"),
        ("bypassPermissions", "ask allow deny"),
    ],
)
async def test_mode_rule_callback_and_hook_come_together_as_the_policy_explains(
    scripted: MakeScripted, sandbox: CliSandbox, mode: str, order: str
) -> None:
    stage = Stage(sandbox)
    policy = stage.policy(order)
    agent, model = scripted(
        stage.step(),
        say("done"),
        # The CLI refuses this mode to root outside a sandbox.
        env={"IS_SANDBOX": "1"},
        permission_mode=mode,
        policy=policy,
        hooks=stage.hooks(),
        can_use_tool=stage.decide,
        mcp_servers={"box": stage.toolbox()},
    )

    async with asyncio.timeout(2 * LIMIT), agent.session() as session:
        await (await session.send("go"))
        journal = await entries_of(session)

    told = model.asked[-1].tool_results
    seen = {each.id: stage.seen(each, told) for each in COMBINATIONS}
    assert seen == {each.id: each.expected(mode) for each in COMBINATIONS}
    for each in COMBINATIONS:
        tool_name, given = stage.input_of(each)
        explained = policy.explain(tool_name, given, mode=mode, cwd=str(sandbox.project))
        if each.hook == "none" and explained.is_final:
            endings = {"allow": "ran", "deny": "denied", "ask": "asked"}
            assert (each.id, endings[explained.verdict]) == (each.id, seen[each.id][0])
    decided = {
        entry.details["tool_use_id"]: entry.details["verdict"]
        for entry in journal
        if entry.kind is Kind.DECIDED
    }
    if order.startswith("deny"):
        # The CLI holds it too, and takes the tool away: there was no call to decide about.
        del seen["mcp_deny_none_no"]
    assert decided == {id_: "allow" if has_run else "deny" for id_, (_, has_run) in seen.items()}
    assert [entry for entry in journal if entry.kind is Kind.UNDECIDED] == []
