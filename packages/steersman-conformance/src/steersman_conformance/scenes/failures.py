"""Sections 15 and 16: failures of the API, and the end of the process."""

from __future__ import annotations

import os
import signal

from steersman._json import Json
from steersman.testing.script import call, cut, fail, say, stall, when
from steersman_conformance.checks import scene
from steersman_conformance.frames import Frame, asks, is_result, is_type
from steersman_conformance.hosting import hold
from steersman_conformance.raw import RawCli
from steersman_conformance.stage import Stage

__all__ = ["SCENES"]

FEW_RETRIES = {"CLAUDE_CODE_MAX_RETRIES": "1"}


# --- Errors of the API ------------------------------------------------------------------


@scene
async def api_errors(stage: Stage) -> dict[str, Frame]:
    """Several failures, one prompt each, with their results and the number of retries."""
    script = (
        when("bad", fail(400, "no good")),
        when("missing", fail(404, "no such model")),
        when("busy", fail(529, "overloaded"), say("recovered")),
        when("broken", call("Bash", '{"command": '), say("went on")),
        when("long", say("cut off").stopping("max_tokens"), say(" and on")),
    )
    seen: dict[str, Frame] = {}
    async with stage.cli(*script, env=FEW_RETRIES) as cli:
        await cli.initialize()
        for name in ("bad", "missing", "busy", "broken", "long"):
            start = cli.here
            result = await cli.prompt(name)
            seen[name] = {**result, "frames": cli.frames[start:]}
    seen["end"] = {"status": cli.status}
    return seen


def _retries(result: Frame) -> list[Frame]:
    return [frame for frame in result["frames"] if is_type("system", "api_retry")(frame)]


@api_errors.must("1.7", sees=["success", True, 400])
def an_api_error_is_a_success_that_failed(seen: dict[str, Frame]) -> list[Json]:
    """After a failure of the API the result is `success` with `is_error` and the status."""
    result = seen["bad"]
    return [result.get("subtype"), result.get("is_error"), result.get("api_error_status")]


@api_errors.must("15", sees=[0, 0])
def wrong_requests_are_not_retried(seen: dict[str, Frame]) -> list[int]:
    """400 and 404 are not retried."""
    return [len(_retries(seen[name])) for name in ("bad", "missing")]


@api_errors.must("15", sees=["recovered", [529]])
def an_overloaded_api_is_retried(seen: dict[str, Frame]) -> list[Json]:
    """529 is retried, and `api_retry` reports it."""
    statuses = [each.get("error_status") for each in _retries(seen["busy"])]
    return [seen["busy"].get("result"), statuses]


@api_errors.must("15", sees=[])
def a_retry_has_the_fields_we_read(seen: dict[str, Frame]) -> list[str]:
    """`api_retry` contains attempt, limit, delay and error."""
    wanted = ("attempt", "max_retries", "retry_delay_ms", "error_status", "error")
    return [name for name in wanted if name not in _retries(seen["busy"])[0]]


@api_errors.must("15", sees="went on")
def broken_tool_input_is_an_error_of_the_tool(seen: dict[str, Frame]) -> Json:
    """Tool input that is not JSON fails the tool, not the turn."""
    return seen["broken"].get("result")


@api_errors.feature("15", without="only the error of the tool is reported")
def broken_tool_input_is_kept(seen: dict[str, Frame]) -> bool:
    """Tool input that is not JSON is reported as `__unparsedToolInput`."""
    return any("__unparsedToolInput" in str(frame) for frame in seen["broken"]["frames"])


@api_errors.must("15", sees=[1, False])
def a_text_at_its_limit_goes_on(seen: dict[str, Frame]) -> list[Json]:
    """After `max_tokens` the same turn continues with another request to the model."""
    results = [frame for frame in seen["long"]["frames"] if is_result(frame)]
    return [len(results), bool(seen["long"].get("is_error"))]


@scene
async def wrong_key(stage: Stage) -> RawCli:
    refused = [fail(401, "invalid x-api-key") for _ in range(4)]
    async with stage.cli(*refused, env=FEW_RETRIES) as cli:
        await cli.initialize()
        await cli.prompt("hello")
    return cli


@wrong_key.canary(
    "19.19", sees=[True, True], so="after two refusals we stop the retries and raise `NotLoggedIn`"
)
def a_wrong_key_is_tried_again(cli: RawCli) -> list[bool]:
    """401 is retried although the key does not change."""
    errors = [frame.get("error") for frame in cli.of("system", "api_retry")]
    return ["authentication_failed" in errors, bool(cli.result.get("is_error"))]


@wrong_key.must("1.11", sees=1)
def the_end_after_an_error_is_status_one(cli: RawCli) -> int | None:
    """After a result with an error, the CLI exits with status 1 at the end of input."""
    return cli.status


@scene
async def cut_stream(stage: Stage) -> RawCli:
    broken = say("half of", chunks=["half", " of"]) + cut()
    flags = ["--include-partial-messages"]
    async with stage.cli(broken, say("whole"), flags=flags, env=FEW_RETRIES) as cli:
        await cli.initialize()
        await cli.prompt("tell")
    return cli


@cut_stream.must("15", sees=["whole", False])
def a_cut_stream_is_tried_again(cli: RawCli) -> list[Json]:
    """A stream that is cut off is requested again, and the turn succeeds."""
    return [cli.result.get("result"), cli.result.get("is_error")]


@cut_stream.feature("5", without="the streamed part stays in the text")
def a_cut_stream_says_what_to_drop(cli: RawCli) -> bool:
    """`abandoned_blocks` names the blocks of a stream that was cut off."""
    return any("abandoned_blocks" in str(frame) for frame in cli.frames)


@scene
async def no_credential(stage: Stage) -> RawCli:
    async with stage.cli(env={"ANTHROPIC_API_KEY": ""}) as cli:
        await cli.initialize()
        await cli.prompt("hello")
    return cli


@no_credential.must("19.19", sees=["success", True, True])
def no_credential_is_an_ordinary_turn(cli: RawCli) -> list[Json]:
    """Without a login the result is `success` with `is_error` and names the problem."""
    text = str(cli.result.get("result"))
    return [cli.result.get("subtype"), cli.result.get("is_error"), "login" in text]


# --- How a process ends -----------------------------------------------------------------


@scene
async def input_ends_in_a_turn(stage: Stage) -> RawCli:
    async with stage.cli(say("slow") + stall() + say(" but whole")) as cli:
        await cli.initialize()
        cli.post("go")
        await cli.asked_the_model(1)
        cli.end_input()
        await cli.release()
        await cli.wait_exited()
    return cli


@input_ends_in_a_turn.must("16", sees=["slow but whole", 0])
def a_turn_outlives_its_input(cli: RawCli) -> list[Json]:
    """At the end of input the current turn finishes first."""
    return [cli.result.get("result"), cli.status]


@scene
async def input_ends_at_a_question(stage: Stage) -> RawCli:
    path = str(stage.box.project / "never")
    async with stage.cli(
        call("Write", file_path=path, content="x"), say("done"), answers={"can_use_tool": hold}
    ) as cli:
        await cli.initialize()
        cli.post("go")
        await cli.wait(asks("can_use_tool"))
        cli.end_input()
        await cli.wait_exited()
    return cli


@input_ends_at_a_question.must("16", sees=[False, "done"])
def an_open_question_fails_with_the_input(cli: RawCli) -> list[Json]:
    """The end of input fails an open permission request; the turn continues without the tool."""
    return [(cli.project / "never").exists(), cli.result.get("result")]


async def _signalled(stage: Stage, number: signal.Signals) -> RawCli:
    async with stage.cli(say("slow") + stall(), flags=["--include-partial-messages"]) as cli:
        await cli.initialize()
        cli.post("go")
        # A CLI that has not read the beginning of the answer yet handles a signal in another way.
        await cli.wait(is_type("stream_event"))
        os.kill(cli.pid, number)
        await cli.wait_exited()
    return cli


@scene
async def terminated(stage: Stage) -> RawCli:
    return await _signalled(stage, signal.SIGTERM)


@terminated.must("16", sees=[143, 0])
def sigterm_ends_it_without_a_result(cli: RawCli) -> list[Json]:
    """After SIGTERM the CLI exits with status 143, without a result."""
    return [cli.status, len(cli.results)]


@scene
async def interrupted_by_signal(stage: Stage) -> RawCli:
    return await _signalled(stage, signal.SIGINT)


@interrupted_by_signal.must("16", sees=[0, ["error_during_execution"]])
def sigint_is_an_interrupt_and_the_end(cli: RawCli) -> list[Json]:
    """After SIGINT the turn ends with a result and the CLI exits with status 0."""
    return [cli.status, [each.get("subtype") for each in cli.results]]


SCENES = (
    api_errors,
    wrong_key,
    cut_stream,
    no_credential,
    input_ends_in_a_turn,
    input_ends_at_a_question,
    terminated,
    interrupted_by_signal,
)
