"""The policy of a session: whose calls it decides about, and input that was changed."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from steersman._session.requests.decision_log import DecisionLog
from steersman._session.requests.policy_hook import PolicyHook
from steersman.hooks import HookEvent, Hooks, PermissionRequest, PreToolUse, modify
from steersman.hooks import allow as let_run
from steersman.hooks import ask as make_ask
from steersman.hooks import deny as stop
from steersman.journal import Kind
from steersman.options import Options
from steersman.permissions import AddRules, Allow, CanUseTool, Deny, ToolRule
from steersman.permissions.policy import Policy, allow, ask, deny
from steersman.permissions.rules import ToolCall
from steersman.testing.script import Script, call, say
from steersman.testing.scripted.cli import ScriptedCLI
from tests._session.peers import opened
from tests._session.requests.test_hooks import on, runner_of

POLICY = Policy(deny("Bash(rm *)"), ask("Bash(git push *)"), allow("Bash(git *)"))

Input = dict[str, Any]
STATUS, PUSH, REMOVE, OTHER = (
    {"command": command} for command in ("git status", "git push now", "rm x", "touch x")
)


def policy_hook(policy: Policy = POLICY, **options: Any) -> PolicyHook:
    return PolicyHook(Options(policy=policy, **options))


async def decided(reply: Any, event: HookEvent, policy: Policy = POLICY, **kind: Any) -> Any:
    """Return decision and changed input of the answer, if a hook replies so to the event."""
    runs = on(type(event), lambda _: reply, **kind)
    _, _, asking = runner_of(runs, recheck=policy_hook(policy).recheck)
    answer = (await asking(event)).get("hookSpecificOutput", {})
    about = answer.get("decision", answer)
    return about.get("permissionDecision", about.get("behavior")), about.get("updatedInput")


def bash(given: Input = STATUS, **fields: Any) -> PreToolUse:
    return PreToolUse(tool_name="Bash", tool_input=given, tool_use_id="t1", **fields)


# Input that a hook changes


@pytest.mark.parametrize("kind", ["guard", "advise"])
@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (modify(STATUS), (None, STATUS)),
        (modify(REMOVE), ("deny", None)),
        (modify(PUSH), ("ask", PUSH)),
        (modify(OTHER), ("ask", OTHER)),
        (let_run(updated_input=STATUS), ("allow", STATUS)),
        (let_run(updated_input=REMOVE), ("deny", None)),
        (let_run(updated_input=PUSH), ("ask", PUSH)),
        (let_run(updated_input=OTHER), ("allow", OTHER)),
        (let_run(), ("allow", None)),
        (stop("no"), ("deny", None)),
        (make_ask(), ("ask", None)),
        (
            {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": REMOVE}},
            ("deny", None),
        ),
        (
            {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": PUSH}},
            ("ask", PUSH),
        ),
    ],
)
async def test_the_policy_decides_about_the_input_that_a_hook_changes(
    reply: Any, expected: tuple[str | None, Input | None], kind: str
) -> None:
    assert await decided(reply, bash(), kind=kind) == expected


async def test_changed_input_without_a_rule_is_asked_about_only_after_an_allow() -> None:
    assert await decided(modify(OTHER), bash({"command": "make"})) == (None, OTHER)
    bypassing = bash(permission_mode="bypassPermissions")
    assert await decided(modify(OTHER), bypassing) == (None, OTHER)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [(REMOVE, ("deny", None)), (PUSH, ("allow", PUSH)), (OTHER, ("allow", OTHER))],
)
async def test_a_permission_hook_answers_what_the_policy_asks_but_not_what_it_denies(
    changed: Input, expected: tuple[str, Input | None]
) -> None:
    event = PermissionRequest(tool_name="Bash", tool_input=STATUS)

    assert await decided(let_run(updated_input=changed), event) == expected


async def test_a_denial_of_changed_input_is_recorded_with_its_rule() -> None:
    written: list[tuple[Kind, Input]] = []
    hook = policy_hook()
    hook.decisions = DecisionLog(lambda kind, details: written.append((kind, dict(details))))
    _, _, asking = runner_of(on(PreToolUse, lambda _: modify(REMOVE)), recheck=hook.recheck)

    await asking(bash(agent_id="a1"))

    ((kind, details),) = written
    assert kind is Kind.DECIDED
    assert details == {
        "tool_use_id": "t1",
        "tool": "Bash",
        "verdict": "deny",
        "source": "rule",
        "by": "deny Bash(rm *)",
        "agent": "a1",
    }


# Input that an approver or a user changes


class Ran:
    """A built-in tool that records its inputs."""

    def __init__(self) -> None:
        self.inputs: list[Input] = []

    def __call__(self, given: Input) -> str:
        self.inputs.append(given)
        return "ran"


async def ran_with(command: str, **options: Any) -> list[Input]:
    ran = Ran()
    cli = ScriptedCLI(Script(call("Bash", command=command), say("done")), tools={"Bash": ran})
    async with opened(cli, policy=POLICY, **options) as session:
        await (await session.send("go"))
    return ran.inputs


@pytest.mark.parametrize(
    ("changed", "runs"), [(REMOVE, []), (PUSH, [PUSH]), (OTHER, [OTHER]), (None, [OTHER])]
)
async def test_an_approver_cannot_change_the_input_into_one_that_the_policy_denies(
    changed: Input | None, runs: list[Input]
) -> None:
    assert await ran_with("touch x", can_use_tool=lambda *_: Allow(changed)) == runs


async def test_a_hook_cannot_change_an_allowed_input_into_one_that_the_policy_denies() -> None:
    hooks = Hooks()
    hooks.on(PreToolUse)(lambda _: modify(REMOVE))

    assert await ran_with("git status", hooks=hooks, can_use_tool=lambda *_: Allow()) == []


@pytest.mark.parametrize(("answer", "runs"), [(Allow(), [PUSH]), (Deny("no"), [])])
async def test_what_a_hook_changes_is_asked_about_as_changed(
    answer: Allow | Deny, runs: list[Input]
) -> None:
    seen: list[Input] = []
    hooks = Hooks()
    hooks.on(PreToolUse)(lambda _: modify(PUSH))

    def approve(_tool: str, given: Input, _context: object) -> Allow | Deny:
        seen.append(given)
        return answer

    assert await ran_with("git status", hooks=hooks, can_use_tool=approve) == runs
    assert seen == [PUSH]


# Agents


def verdict_of(hook: PolicyHook, **agent: Any) -> str | None:
    reply = hook(bash(**agent))
    decision: str | None = reply.get("hookSpecificOutput", {}).get("permissionDecision")
    return decision


MAIN_ONLY = Policy(allow("Bash", agents=["main"]), otherwise="deny")
REV_ONLY = Policy(allow("Bash", agents=["rev"]), otherwise="deny")


def test_a_subagent_called_main_is_not_the_main_agent() -> None:
    hook = policy_hook(MAIN_ONLY)

    assert verdict_of(hook) == "allow"
    assert verdict_of(hook, agent_id="a1", agent_type="main") == "deny"
    assert verdict_of(hook, agent_id="a1") == "deny"


@pytest.mark.parametrize("reported", [None, "rev"])
@pytest.mark.parametrize("policy", [MAIN_ONLY, REV_ONLY])
def test_the_leading_agent_is_main_and_its_own_type(policy: Policy, reported: str | None) -> None:
    hook = policy_hook(policy, agent="rev")

    assert verdict_of(hook, agent_type=reported) == "allow"


def test_a_subagent_goes_by_its_type_also_if_the_leading_agent_has_another() -> None:
    assert verdict_of(policy_hook(REV_ONLY), agent_id="a1", agent_type="rev") == "allow"
    assert verdict_of(policy_hook(REV_ONLY, agent="rev"), agent_id="a1", agent_type="x") == "deny"
    denying = Policy(deny("Bash", agents=["x"]), otherwise="ask")
    assert verdict_of(policy_hook(denying), agent_id="a1") == "deny"


# Rules that the user has allowed, and rules in `allowed_tools`


def verdict_about(hook: PolicyHook, command: str) -> str | None:
    decision: str | None = (
        hook(bash({"command": command})).get("hookSpecificOutput", {}).get("permissionDecision")
    )
    return decision


MAYBE_COVERED = ("git push now && make", "bash -c 'git push now'")


def test_a_remembered_rule_allows_only_what_it_certainly_covers() -> None:
    hook = policy_hook(Policy(otherwise="ask"))
    hook.remember(Allow(updated_permissions=[AddRules(rules=[ToolRule("Bash", "git push *")])]))

    assert verdict_about(hook, "git push now") == "allow"
    assert [verdict_about(hook, each) for each in MAYBE_COVERED] == ["ask", "ask"]


def test_a_remembered_rule_must_cover_the_file_behind_a_link_too(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "link").symlink_to(tmp_path / "secret")
    hook = policy_hook(Policy(ask("Edit")))
    hook.remember(Allow(updated_permissions=[AddRules(rules=[ToolRule("Edit", "docs/**")])]))

    def verdict(name: str) -> str | None:
        given = {"file_path": str(tmp_path / "docs" / name)}
        event = PreToolUse(tool_name="Edit", tool_input=given, tool_use_id="t1", cwd=str(tmp_path))
        decision: str | None = hook(event).get("hookSpecificOutput", {}).get("permissionDecision")
        return decision

    assert (verdict("a"), verdict("link")) == ("allow", "ask")


def test_every_call_is_asked_about_unless_allowed_tools_certainly_cover_it() -> None:
    hook = policy_hook(
        Policy(),
        ask_every_call=True,
        allowed_tools=["Bash(git push *)"],
        can_use_tool=lambda *_: Allow(),
    )

    assert verdict_about(hook, "git push now") is None
    assert [verdict_about(hook, each) for each in MAYBE_COVERED] == ["ask", "ask"]


# Predicates


def _given(value: Any, _call: ToolCall) -> Any:
    return value


def test_an_allow_rule_needs_true_and_no_other_true_value() -> None:
    nonsense: Any
    for nonsense in (42, "no", {"behavior": "deny"}, object()):
        policy = Policy(allow("Bash", when=partial(_given, nonsense)), otherwise="deny")
        assert policy.explain("Bash").verdict == "deny"
    assert Policy(allow("Bash", when=lambda _: True)).explain("Bash").verdict == "allow"


class Unusual(BaseException):
    pass


def raises(_call: ToolCall) -> bool:
    raise Unusual


async def is_async(_call: ToolCall) -> bool:
    return True


async def is_async_too(_call: ToolCall) -> bool:
    return False


@pytest.mark.parametrize("predicate", [raises, is_async, is_async_too])
def test_a_predicate_that_fails_counts_against_the_call(predicate: Any) -> None:
    denying = Policy(deny("Bash", when=predicate), otherwise="ask")
    asking = Policy(ask("Bash", when=predicate), allow("Bash"))
    allowing = Policy(allow("Bash", when=predicate), otherwise="deny")

    assert denying.explain("Bash").verdict == "deny"
    assert asking.explain("Bash").verdict == "ask"
    assert allowing.explain("Bash").verdict == "deny"


# What may run twice


def test_a_call_may_be_repeated_where_it_is_made_and_with_the_input_that_it_has() -> None:
    hook = policy_hook(Policy(repeatable=["Read(docs/**)", "Bash(git status)"]))
    hook(PreToolUse(tool_name="Read", tool_input={}, tool_use_id="t2", cwd="/home/ann"))
    hook(bash(cwd="/home/ann"))
    requests = [
        CanUseTool(tool_name=name, input=given, tool_use_id=id_)
        for name, given, id_ in (
            ("Read", {"file_path": "/home/ann/docs/a"}, "t2"),
            ("Read", {"file_path": "/home/ben/docs/a"}, "t2"),
            ("Bash", STATUS, "t1"),
            ("Bash", REMOVE, "t1"),
            ("Bash", STATUS, "another call"),
        )
    ]

    assert [hook.may_repeat(each) for each in requests] == [True, False, True, False, False]
