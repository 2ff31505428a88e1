"""Section 5: what the CLI sends for each end of a turn in `steersman.journal.ends`."""

from __future__ import annotations

from collections.abc import Sequence

from steersman._json import Json, JsonDict
from steersman.testing.script import Step, call, fail, say, stall
from steersman_conformance.checks import scene
from steersman_conformance.frames import Frame, asks, is_result
from steersman_conformance.hosting import Answers, hold
from steersman_conformance.raw import RawCli
from steersman_conformance.stage import Stage, uuid_of

__all__ = ["DEFERRED", "FIELDS", "INTERRUPTED", "OLDER", "SCENES", "SPELT"]

SESSION = uuid_of(6)
FIELDS = ("subtype", "is_error", "terminal_reason", "stop_reason")
"""The fields of a result that say how the turn ended."""
TOLD = FIELDS.index("stop_reason")
"""How many of them come before the last one."""

SPELT: dict[str, list[Json]] = {
    "completed": ["success", False, "completed", "end_turn"],
    "hook_stopped": ["success", False, "hook_stopped", "tool_use"],
    "stop_hook_prevented": ["success", False, "stop_hook_prevented", "end_turn"],
    "blocked_by_hook": ["success", False, None, None],
    "api_error": ["success", True, "api_error", "stop_sequence"],
    "max_turns": ["error_max_turns", True, "max_turns", "tool_use"],
    "budget_exhausted": ["error_max_budget_usd", True, "budget_exhausted", "tool_use"],
    "blocking_limit": ["success", True, "blocking_limit", "stop_sequence"],
    "structured_output_retry_exhausted": [
        *("error_max_structured_output_retries", True),
        *("structured_output_retry_exhausted", "tool_use"),
    ],
}
"""`FIELDS` for each end, by `End.why`."""

OLDER: dict[str, list[Json]] = {
    **SPELT,
    "api_error": ["success", True, "completed", "stop_sequence"],
    "budget_exhausted": ["error_max_budget_usd", True, None, "tool_use"],
    # Releases before 2.1.285 send the prompt, however long it is.
    "blocking_limit": ["success", False, "completed", "end_turn"],
    "structured_output_retry_exhausted": [
        *("error_max_structured_output_retries", True, None, "tool_use")
    ],
}

INTERRUPTED: JsonDict = {
    "aborted_streaming": ["error_during_execution", True, "aborted_streaming", None],
    "aborted_tools": ["error_during_execution", True, "aborted_tools", "tool_use"],
}
DEFERRED: list[Json] = [
    ["success", False, "tool_deferred", "tool_deferred"],
    ["success", False, None, "tool_deferred"],
]
"""`FIELDS` of a call that is deferred, and deferred again by the next CLI."""

GUARD: JsonDict = {"PreToolUse": [{"hookCallbackIds": ["guard"]}]}
STOP: JsonDict = {"Stop": [{"hookCallbackIds": ["stop"]}]}
BLOCK: JsonDict = {"UserPromptSubmit": [{"hookCallbackIds": ["block"]}]}
LONG = "word " * 1_500_000
"""A prompt that no model takes."""

FEW_RETRIES = {"CLAUDE_CODE_MAX_RETRIES": "0"}
SCHEMA = '{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}'


def _spelt(result: Frame) -> list[Json]:
    return [result.get(name) for name in FIELDS]


def _bash() -> Step:
    return call("Bash", command="true")


async def _one(
    stage: Stage,
    *steps: Step,
    flags: Sequence[str] = (),
    hooks: JsonDict | None = None,
    reply: Json = None,
    prompt: Json = "go",
) -> list[Json]:
    """Play one turn, whose hooks reply `reply`, and return how its result is spelt."""
    answers: Answers = {"hook_callback": lambda _: {} if reply is None else reply}
    async with stage.cli(*steps, flags=flags, env=FEW_RETRIES, answers=answers) as cli:
        await cli.initialize(**({} if hooks is None else {"hooks": hooks}))
        return _spelt(await cli.prompt(prompt))


@scene
async def ends_of_a_turn(stage: Stage) -> JsonDict:
    tools = ["--allowedTools=Bash"]
    never = [call("StructuredOutput", n="four") for _ in range(8)]
    ends: JsonDict = {"continue": False}
    one_penny = [*tools, "--max-budget-usd=0.000001"]
    return {
        "completed": await _one(stage, say("fine")),
        "hook_stopped": await _one(stage, _bash(), flags=tools, hooks=GUARD, reply=ends),
        "stop_hook_prevented": await _one(stage, say("fine"), hooks=STOP, reply=ends),
        "blocked_by_hook": await _one(stage, hooks=BLOCK, reply={"decision": "block"}),
        "api_error": await _one(stage, fail(400, "no good")),
        "max_turns": await _one(stage, _bash(), flags=[*tools, "--max-turns=1"]),
        "budget_exhausted": await _one(stage, _bash(), say("more"), flags=one_penny),
        "blocking_limit": await _one(stage, prompt=LONG),
        "structured_output_retry_exhausted": await _one(
            stage, *never, flags=[f"--json-schema={SCHEMA}"]
        ),
    }


@ends_of_a_turn.must("5", sees={name: SPELT[name] for name in SPELT if OLDER[name] == SPELT[name]})
def each_end_is_spelt_as_in_our_table(seen: JsonDict) -> Json:
    """Subtype, `is_error`, `terminal_reason` and `stop_reason` of a result tell how it ended."""
    return {name: spelt for name, spelt in seen.items() if OLDER[name] == SPELT[name]}


@ends_of_a_turn.feature(
    "5",
    sees=SPELT["api_error"],
    absent=OLDER["api_error"],
    without="a result that is completed and an error is one of the API",
)
def a_failure_of_the_api_has_a_terminal_reason(seen: JsonDict) -> Json:
    """The result of a turn that the API has failed says so in `terminal_reason`."""
    return seen["api_error"]


@ends_of_a_turn.feature(
    "5",
    sees=SPELT["budget_exhausted"][:TOLD],
    absent=OLDER["budget_exhausted"][:TOLD],
    without="the subtype tells the end",
)
def a_used_up_budget_has_a_terminal_reason(seen: JsonDict) -> Json:
    """The result of a turn that has used up its budget says so in `terminal_reason`."""
    # Before 2.1.303 without the `stop_reason` of the message, which nothing reads here.
    return seen["budget_exhausted"][:TOLD]


@ends_of_a_turn.feature(
    "5",
    sees=SPELT["blocking_limit"],
    absent=OLDER["blocking_limit"],
    without="the prompt is sent, and the API refuses it",
)
def a_prompt_that_is_too_long_is_not_sent(seen: JsonDict) -> Json:
    """A prompt that no model takes ends its turn with `blocking_limit`."""
    return seen["blocking_limit"]


@ends_of_a_turn.feature(
    "5",
    sees=SPELT["structured_output_retry_exhausted"],
    absent=OLDER["structured_output_retry_exhausted"],
    without="the subtype tells the end",
)
def output_that_fits_no_schema_has_a_terminal_reason(seen: JsonDict) -> Json:
    """The result of a turn whose output never fits the schema says so in `terminal_reason`."""
    return seen["structured_output_retry_exhausted"]


@scene
async def ends_by_an_interrupt(stage: Stage) -> JsonDict:
    seen: JsonDict = {}
    async with stage.cli(say("half") + stall(), answers={"can_use_tool": hold}) as cli:
        await cli.initialize()
        cli.post("go")
        await cli.asked_the_model(1)
        await cli.ask("interrupt")
        seen["aborted_streaming"] = _spelt(await cli.wait(is_result))
    async with stage.cli(_write(stage), answers={"can_use_tool": hold}) as cli:
        await cli.initialize()
        cli.post("go")
        await cli.wait(asks("can_use_tool"))
        await cli.ask("interrupt")
        seen["aborted_tools"] = _spelt(await cli.wait(is_result))
    return seen


@ends_by_an_interrupt.must("5", sees=INTERRUPTED)
def an_interrupt_is_spelt_as_in_our_table(seen: JsonDict) -> Json:
    """An interrupt is an error with the subtype `error_during_execution`."""
    return seen


@scene
async def ends_by_a_deferral(stage: Stage) -> list[RawCli]:
    seen: list[RawCli] = []
    defer = {"hookEventName": "PreToolUse", "permissionDecision": "defer"}
    answers: Answers = {"hook_callback": lambda _: {"hookSpecificOutput": defer}}
    for where in (f"--session-id={SESSION}", f"--resume={SESSION}"):
        flags = [where, "--await-initialize", "--allowedTools=Bash"]
        async with stage.cli(_bash(), flags=flags, answers=answers) as cli:
            await cli.initialize(hooks=GUARD)
            if not seen:
                cli.post("go", uuid=uuid_of(1))
            await cli.wait(is_result)
        seen.append(cli)
    return seen


def _write(stage: Stage) -> Step:
    return call("Write", file_path=str(stage.box.project / "never"), content="x")


@ends_by_a_deferral.feature(
    "C2",
    sees=DEFERRED,
    absent=[None, None],
    without="calls are not held; the model is told what was decided",
)
def a_second_deferral_has_no_terminal_reason(seen: list[RawCli]) -> Json:
    """A call that is deferred again by the next CLI ends its turn by `stop_reason` alone."""
    return [_spelt(cli.results[0]) if cli.results else None for cli in seen]


@ends_by_a_deferral.feature(
    "C2",
    sees=[[True, True], [True, False]],
    absent=[None, None],
    without="calls are not held; the model is told what was decided",
)
def a_second_deferral_names_its_call_and_no_prompt(seen: list[RawCli]) -> Json:
    """The result of a deferral names the call; that of a second one names no prompt."""
    return [
        ["deferred_tool_use" in cli.results[0], "user_message_uuids" in cli.results[0]]
        if cli.results
        else None
        for cli in seen
    ]


SCENES = (ends_of_a_turn, ends_by_an_interrupt, ends_by_a_deferral)
