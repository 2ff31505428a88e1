"""Sections 8 and 12: permission requests and their answers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from steersman._json import Json
from steersman.testing.script import Step, call, calls, say
from steersman_conformance.checks import scene
from steersman_conformance.frames import Frame, asks
from steersman_conformance.hosting import Refusal, hold
from steersman_conformance.raw import RawCli
from steersman_conformance.stage import ASKING, MODE, STREAM_JSON, Stage

__all__ = ["SCENES"]

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def _write(stage: Stage, name: str, content: str = "x") -> Step:
    return call("Write", file_path=str(stage.box.project / name), content=content, id_=f"t_{name}")


def _read(cli: RawCli, name: str) -> str | None:
    path = cli.project / name
    return path.read_text() if path.exists() else None


def _result_of(cli: RawCli, name: str) -> Frame:
    found = [block for block in cli.tool_results if block["tool_use_id"] == f"t_{name}"]
    return found[0] if found else {}


# --- Good answers and bad ones ----------------------------------------------------------

ANSWERS: dict[str, Callable[[Frame], Any]] = {
    "allowed": lambda request: {"behavior": "allow", "updatedInput": request["input"]},
    "changed": lambda request: {
        "behavior": "allow",
        "updatedInput": {**request["input"], "content": "changed"},
    },
    "bare": lambda _: {"behavior": "allow"},
    "denied": lambda _: {"behavior": "deny", "message": "host says no"},
    "error": lambda _: Refusal("host is broken"),
    "mute": lambda _: {"behavior": "deny"},
    "null": lambda _: {"behavior": "allow", "updatedInput": None},
    "nonsense": lambda _: {"yes": True},
}


@scene
async def answers_to_questions(stage: Stage) -> RawCli:
    def decide(request: Frame) -> Json:
        return ANSWERS[request["input"]["file_path"].rpartition("/")[2]](request)

    async with stage.cli(
        *(_write(stage, name) for name in ANSWERS),
        say("all tried"),
        answers={"can_use_tool": decide},
    ) as cli:
        await cli.initialize()
        await cli.prompt("write")
    return cli


@answers_to_questions.must("8", sees=["input", "tool_name", "tool_use_id"])
def questions_have_the_fields_we_read(cli: RawCli) -> list[str]:
    """`can_use_tool` contains the tool, its input and its tool use id."""
    request = cli.asked("can_use_tool")[0]["request"]
    return sorted({"input", "tool_name", "tool_use_id"} & request.keys())


@answers_to_questions.must("8")
def questions_carry_suggestions(cli: RawCli) -> bool:
    """`permission_suggestions` contains rules that would avoid the request."""
    return bool(cli.asked("can_use_tool")[0]["request"].get("permission_suggestions"))


@answers_to_questions.must("8", sees=[len(ANSWERS), True])
def question_ids_are_unique_uuids(cli: RawCli) -> list[Json]:
    """The ids of the CLI's control requests are unique UUIDs."""
    ids = [frame["request_id"] for frame in cli.asked("can_use_tool")]
    return [len(set(ids)), all(UUID.fullmatch(each) for each in ids)]


@answers_to_questions.must("12", sees="x")
def allow_lets_the_tool_run(cli: RawCli) -> str | None:
    """`allow` with the same input runs the tool."""
    return _read(cli, "allowed")


@answers_to_questions.must("12", sees="changed")
def allow_can_change_the_input(cli: RawCli) -> str | None:
    """`updatedInput` is what the tool gets."""
    return _read(cli, "changed")


@answers_to_questions.feature("12", sees="x", absent=None, without="we always send the input")
def allow_needs_no_input(cli: RawCli) -> str | None:
    """`allow` without `updatedInput` runs the tool with the original input."""
    return _read(cli, "bare")


@answers_to_questions.must("12", sees=[None, True, True])
def deny_tells_the_model_why(cli: RawCli) -> list[Json]:
    """`deny` refuses the tool, and its message is the tool's result."""
    block = _result_of(cli, "denied")
    return [_read(cli, "denied"), block.get("is_error"), "host says no" in str(block)]


@answers_to_questions.must("12", sees=[None, True])
def an_error_for_an_answer_refuses_the_tool(cli: RawCli) -> list[Json]:
    """An error response refuses the tool, and the turn continues."""
    return [_read(cli, "error"), _result_of(cli, "error").get("is_error")]


@answers_to_questions.must("19.5", sees=[None] * 3)
def malformed_answers_refuse_the_tool(cli: RawCli) -> list[Json]:
    """`deny` without a message, a null input and an invalid answer refuse the tool."""
    return [_read(cli, name) for name in ("mute", "null", "nonsense")]


@answers_to_questions.must("12", sees=["all tried", 1])
def refusals_do_not_end_the_turn(cli: RawCli) -> list[Json]:
    """After any answer the turn continues to its result."""
    return [cli.result.get("result"), len(cli.results)]


@answers_to_questions.must("12")
def denials_are_listed_in_the_result(cli: RawCli) -> bool:
    """The result lists the denied tool calls."""
    denied = [each["tool_use_id"] for each in cli.result["permission_denials"]]
    return "t_denied" in denied


@answers_to_questions.must("5", sees=True)
def an_open_question_is_a_state(cli: RawCli) -> bool:
    """The state is `requires_action` while a permission request is open."""
    states = [each.get("state") for each in cli.of("system", "session_state_changed")]
    return "requires_action" in states


# --- Tools without a permission request -------------------------------------------------


@scene
async def asked_and_not_asked(stage: Stage) -> RawCli:
    (stage.box.project / "there.txt").write_text("here")
    async with stage.cli(
        call("Read", file_path=str(stage.box.project / "there.txt")),
        call("Bash", command="echo harmless"),
        _write(stage, "free"),
        call("WebFetch", url="http://127.0.0.1:9/", prompt="x", id_="t_gone"),
        say("done"),
        flags=["--allowedTools=Write", "--disallowedTools=WebFetch"],
    ) as cli:
        await cli.initialize()
        await cli.prompt("look")
    return cli


@asked_and_not_asked.must("12", sees=[])
def harmless_tools_are_not_asked(cli: RawCli) -> list[str]:
    """Reads in the project, an echo, and allowed tools run without a permission request."""
    return [frame["request"]["tool_name"] for frame in cli.asked("can_use_tool")]


@asked_and_not_asked.must("12", sees=False)
def disallowed_tools_are_taken_away(cli: RawCli) -> bool:
    """`--disallowedTools` removes a tool from the model's list."""
    return "WebFetch" in cli.of("system", "init")[0]["tools"]


@scene
async def nobody_to_ask(stage: Stage) -> RawCli:
    argv = (*STREAM_JSON, MODE)
    async with stage.cli(_write(stage, "never"), say("denied"), argv=argv) as cli:
        await cli.initialize()
        await cli.prompt("write")
    return cli


@nobody_to_ask.must("12", sees=[None, 0, ["t_never"]])
def without_a_prompt_tool_asks_are_denials(cli: RawCli) -> list[Json]:
    """Without `--permission-prompt-tool` the tool is denied without a request."""
    denied = [each["tool_use_id"] for each in cli.result["permission_denials"]]
    return [_read(cli, "never"), len(cli.asked("can_use_tool")), denied]


@scene
async def no_mode(stage: Stage) -> RawCli:
    argv = (*STREAM_JSON, ASKING)
    async with stage.cli(_write(stage, "unasked"), say("done"), argv=argv) as cli:
        await cli.initialize()
        await cli.prompt("write")
    return cli


@no_mode.feature("12", sees="default", absent="auto", without="we always give the mode")
def a_mode_that_is_not_given_is_default(cli: RawCli) -> Json:
    """Without `--permission-mode` the CLI is in the mode `default`."""
    return cli.of("system", "init")[0]["permissionMode"]


@no_mode.feature("12", sees=["Write"], absent=[], without="we always give the mode")
def without_a_mode_writes_are_asked(cli: RawCli) -> list[str]:
    """Without `--permission-mode` a write causes a permission request."""
    return [frame["request"]["tool_name"] for frame in cli.asked("can_use_tool")]


# --- Several requests -------------------------------------------------------------------


async def _open_questions(stage: Stage, *steps: Step) -> tuple[RawCli, int]:
    """Leave permission requests open; return how many come before the first answer."""
    async with stage.cli(*steps, say("done"), answers={"can_use_tool": hold}) as cli:
        await cli.initialize()
        cli.post("go")
        await cli.wait(asks("can_use_tool"))
        for _ in range(3):
            await cli.settle()
        opened = len(cli.asked("can_use_tool"))
        await cli.kill()
    return cli, opened


@scene
async def two_writes(stage: Stage) -> tuple[RawCli, int]:
    return await _open_questions(stage, calls(_write(stage, "one"), _write(stage, "two")))


@two_writes.must("12", sees=1)
def writes_are_asked_one_at_a_time(seen: tuple[RawCli, int]) -> int:
    """Two writes in one answer cause one permission request after the other."""
    return seen[1]


@scene
async def denied_for_good(stage: Stage) -> RawCli:
    stop = {"behavior": "deny", "message": "secret reason", "interrupt": True}
    async with stage.cli(
        _write(stage, "never"), say("gone on"), answers={"can_use_tool": lambda _: stop}
    ) as cli:
        await cli.initialize()
        await cli.prompt("write")
        await cli.prompt("and now?")
    return cli


@denied_for_good.must("12", sees=["error_during_execution", True])
def deny_with_interrupt_ends_the_turn(cli: RawCli) -> list[Json]:
    """`deny` with `interrupt` interrupts the turn."""
    return [cli.results[0].get("subtype"), cli.results[0].get("is_error")]


@denied_for_good.must("9", sees=2)
def the_session_goes_on_after_a_stop(cli: RawCli) -> int:
    """After an interrupted turn the next prompt starts a new turn."""
    return len(cli.results)


# --- Rules as answers -------------------------------------------------------------------


async def _answered_with_a_rule(stage: Stage, destination: str) -> RawCli:
    """Allow a command together with a rule, then run it again."""
    rule = {"toolName": "Bash", "ruleContent": "touch here"}
    update = {"type": "addRules", "rules": [rule], "behavior": "allow"}

    def decide(request: Frame) -> Json:
        updates = [{**update, "destination": destination}]
        return {
            "behavior": "allow",
            "updatedInput": request["input"],
            "updatedPermissions": updates,
        }

    touch = call("Bash", command="touch here")
    async with stage.cli(touch, touch, say("done"), answers={"can_use_tool": decide}) as cli:
        await cli.initialize()
        await cli.prompt("touch it twice")
    return cli


@scene
async def rule_for_the_session(stage: Stage) -> RawCli:
    return await _answered_with_a_rule(stage, "session")


@rule_for_the_session.must("12", sees=1)
def a_session_rule_is_used_at_once(cli: RawCli) -> int:
    """A rule with destination `session` avoids the second permission request."""
    return len(cli.asked("can_use_tool"))


@scene
async def rule_for_the_project(stage: Stage) -> RawCli:
    return await _answered_with_a_rule(stage, "localSettings")


@rule_for_the_project.canary(
    "19.15", sees=[2, True], so="answers should name `session` as the destination"
)
def a_local_rule_has_no_effect(cli: RawCli) -> list[Json]:
    """A rule with destination `localSettings` is written, but not used if the file is disabled."""
    file = cli.project / ".claude" / "settings.local.json"
    return [len(cli.asked("can_use_tool")), file.exists() and "touch here" in file.read_text()]


# --- AskUserQuestion --------------------------------------------------------------------

QUESTION = {
    "question": "Which?",
    "header": "Pick",
    "multiSelect": False,
    "options": [
        {"label": "left", "description": "one way"},
        {"label": "right", "description": "the other"},
    ],
}


@scene
async def question_to_the_person(stage: Stage) -> RawCli:
    def decide(request: Frame) -> Json:
        answered = {**request["input"], "answers": {"Which?": "right"}}
        return {"behavior": "allow", "updatedInput": answered}

    async with stage.cli(
        call("AskUserQuestion", questions=[QUESTION], id_="t_ask"),
        say("done"),
        answers={"can_use_tool": decide},
    ) as cli:
        await cli.initialize()
        await cli.prompt("ask me")
    return cli


@question_to_the_person.must("12", sees=["AskUserQuestion", True])
def questions_to_the_person_are_permissions(cli: RawCli) -> list[Json]:
    """`AskUserQuestion` is a `can_use_tool` request; the model gets the answers in its input."""
    names = [frame["request"]["tool_name"] for frame in cli.asked("can_use_tool")]
    return [*names, "right" in str(_result_of(cli, "ask").get("content"))]


@question_to_the_person.feature("8", without="the name of the tool is used")
def questions_to_the_person_are_marked(cli: RawCli) -> bool:
    """`requires_user_interaction` marks requests that only a user can answer."""
    return cli.asked("can_use_tool")[0]["request"].get("requires_user_interaction") is True


SCENES = (
    answers_to_questions,
    asked_and_not_asked,
    nobody_to_ask,
    no_mode,
    two_writes,
    denied_for_good,
    rule_for_the_session,
    rule_for_the_project,
    question_to_the_person,
)
