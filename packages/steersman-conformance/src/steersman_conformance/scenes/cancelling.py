"""Section 9: what an interrupt cancels, and in which order it is reported."""

from __future__ import annotations

from steersman._json import Json
from steersman.testing.script import call, say, stall
from steersman_conformance.checks import scene
from steersman_conformance.frames import Frame, asks, calls_mcp_server, is_result, part
from steersman_conformance.hosting import HOLD, allow, hold, mcp_server, rpc
from steersman_conformance.raw import RawCli
from steersman_conformance.stage import Stage

__all__ = ["SCENES"]


def _at(cli: RawCli, type_: str) -> int:
    """Return the index of the first message of a type, or -1."""
    types = [str(frame.get("type")) for frame in cli.frames]
    return types.index(type_) if type_ in types else -1


# --- With nothing to stop ---------------------------------------------------------------


@scene
async def interrupted_while_idle(stage: Stage) -> tuple[RawCli, Frame, int]:
    async with stage.cli(say("fine")) as cli:
        await cli.initialize()
        answer = await cli.ask("interrupt")
        await cli.settle()
        results = len(cli.results)
        await cli.prompt("still there?")
    return cli, answer, results


@interrupted_while_idle.must("7", sees=["success", 0, "fine"])
def an_idle_interrupt_changes_nothing(seen: tuple[RawCli, Frame, int]) -> list[Json]:
    """Without a turn, an interrupt succeeds, has no result, and does not affect the next turn."""
    cli, answer, results = seen
    return [answer.get("subtype"), results, cli.result.get("result")]


@interrupted_while_idle.feature(
    "7", sees={"still_queued": []}, absent=None, without="the receipt is empty"
)
def an_idle_interrupt_has_a_receipt(seen: tuple[RawCli, Frame, int]) -> Json:
    """An interrupt is answered with a receipt, even if it is empty."""
    return seen[1].get("response")


# --- While text streams -----------------------------------------------------------------


@scene
async def interrupted_in_the_text(stage: Stage) -> RawCli:
    flags = ["--include-partial-messages"]
    async with stage.cli(say("half a") + stall() + say(" thought"), flags=flags) as cli:
        await cli.initialize()
        cli.post("go")
        await cli.wait(lambda frame: "half a" in str(frame.get("event")))
        await cli.ask("interrupt")
        await cli.wait(is_result)
        await cli.prompt("next")
    return cli


@interrupted_in_the_text.must("9", sees=["error_during_execution", True])
def an_interrupt_ends_the_turn_with_an_error(cli: RawCli) -> list[Json]:
    """An interrupted turn ends with `error_during_execution`."""
    return [cli.results[0].get("subtype"), cli.results[0].get("is_error")]


@interrupted_in_the_text.feature(
    "5",
    sees="aborted_streaming",
    absent=None,
    without="an error after our own interrupt is an interruption",
)
def a_stopped_text_tells_its_reason(cli: RawCli) -> Json:
    """`terminal_reason` reports that a streamed text was aborted."""
    return cli.results[0].get("terminal_reason")


@interrupted_in_the_text.must("9", sees="Echo: next")
def the_cli_stays_usable_after_an_interrupt(cli: RawCli) -> Json:
    """The next prompt starts a new turn."""
    return cli.result.get("result")


@interrupted_in_the_text.must("9")
def the_interrupt_is_answered_before_the_result(cli: RawCli) -> bool:
    """The answer to an interrupt comes before the result of the interrupted turn."""
    answers = [at for at, f in enumerate(cli.frames) if f.get("type") == "control_response"]
    return answers[1] < _at(cli, "result")


@interrupted_in_the_text.must("5", sees="half a")
def what_was_said_before_a_stop_is_kept(cli: RawCli) -> Json:
    """The incomplete text is reported in an assistant message."""
    blocks = [block for f in cli.of("assistant") for block in f["message"]["content"]]
    return blocks[0].get("text")


@interrupted_in_the_text.must("9", sees=True)
def a_stop_is_noted_in_the_conversation(cli: RawCli) -> bool:
    """A user message records that the request was interrupted."""
    return any("[Request interrupted by user" in str(frame) for frame in cli.of("user"))


# --- While a permission request is open -------------------------------------------------


@scene
async def interrupted_at_a_question(stage: Stage) -> RawCli:
    written = str(stage.box.project / "never")
    async with stage.cli(
        call("Write", file_path=written, content="x"), answers={"can_use_tool": hold}
    ) as cli:
        await cli.initialize()
        cli.post("go")
        asked = await cli.wait(asks("can_use_tool"))
        await cli.ask("interrupt")
        await cli.wait(is_result)
        cli.answer(asked, allow(part(asked, "request")))
        await cli.prompt("next")
    return cli


@interrupted_at_a_question.must("9", sees=True)
def an_open_question_is_cancelled(cli: RawCli) -> bool:
    """An interrupt cancels an open permission request with `control_cancel_request`."""
    cancelled = [frame["request_id"] for frame in cli.of("control_cancel_request")]
    return cli.asked("can_use_tool")[0]["request_id"] in cancelled


@interrupted_at_a_question.must("9", sees=[False, "Echo: next"])
def a_late_answer_is_ignored(cli: RawCli) -> list[Json]:
    """An answer that comes after the interrupt has no effect."""
    return [(cli.project / "never").exists(), cli.result.get("result")]


@interrupted_at_a_question.must("9")
def an_open_tool_gets_a_result_that_is_an_error(cli: RawCli) -> bool:
    """A tool that was stopped has a result that is marked as an error."""
    return bool(cli.tool_results[0].get("is_error"))


# --- While a hook is open ---------------------------------------------------------------


@scene
async def interrupted_at_a_hook(stage: Stage) -> RawCli:
    hooks = {"PreToolUse": [{"hookCallbackIds": ["guard"]}]}
    async with stage.cli(call("Bash", command="true"), answers={"hook_callback": hold}) as cli:
        await cli.initialize(hooks=hooks)
        cli.post("go")
        await cli.wait(asks("hook_callback"))
        await cli.ask("interrupt")
        await cli.wait(is_result)
    return cli


@interrupted_at_a_hook.must("9", sees=True)
def an_open_hook_is_cancelled(cli: RawCli) -> bool:
    """An interrupt cancels an open hook callback with `control_cancel_request`."""
    cancelled = [frame["request_id"] for frame in cli.of("control_cancel_request")]
    return cli.asked("hook_callback")[0]["request_id"] in cancelled


# --- While an MCP tool runs -------------------------------------------------------------


@scene
async def interrupted_in_a_tool(stage: Stage) -> RawCli:
    async with stage.cli(
        call("mcp__key__work"),
        flags=["--allowedTools=mcp__key"],
        answers={"mcp_message": mcp_server(lambda _: HOLD)},
    ) as cli:
        await cli.initialize(sdkMcpServers=["key"])
        cli.post("go")
        asked = await cli.wait(calls_mcp_server("tools/call"))
        await cli.ask("interrupt")
        await cli.wait(is_result)
        await cli.wait(calls_mcp_server("notifications/cancelled"))
        cli.answer(asked, rpc(asked["request"]["message"], {"content": []}))
        await cli.prompt("next")
    return cli


@interrupted_in_a_tool.must("9", sees=[True, 0])
def a_tool_of_ours_is_cancelled_by_a_notification(cli: RawCli) -> list[Json]:
    """A tool call is cancelled by `notifications/cancelled`, not by `control_cancel_request`."""
    (called,) = [frame for frame in cli.frames if calls_mcp_server("tools/call")(frame)]
    notes = [frame for frame in cli.frames if calls_mcp_server("notifications/cancelled")(frame)]
    number = called["request"]["message"]["id"]
    meant = [note["request"]["message"]["params"]["requestId"] for note in notes]
    return [number in meant, len(cli.of("control_cancel_request"))]


@interrupted_in_a_tool.must("9", sees="Echo: next")
def a_late_tool_result_is_ignored(cli: RawCli) -> Json:
    """The result of a tool that finishes after the interrupt is ignored."""
    return cli.result.get("result")


# --- Control requests of the host -------------------------------------------------------


@scene
async def cancelled_request(stage: Stage) -> Frame:
    async with stage.cli(say("main")) as cli:
        await cli.initialize()
        await cli.prompt("hello")
        # A CLI that ignores the cancel answers after the model is released.
        cli.script.branch(lambda _: True, stall(2) + say("too late"))
        request_id = cli.request("side_question", question="what?")
        await cli.settle()
        cli.send({"type": "control_cancel_request", "request_id": request_id})
        return await cli.answered(request_id)


@cancelled_request.feature(
    "9", sees="error", absent="success", without="we stop waiting for the answer"
)
def a_request_of_ours_can_be_cancelled(answer: Frame) -> Json:
    """`control_cancel_request` from the host ends a slow request with an error."""
    return answer.get("subtype")


SCENES = (
    interrupted_while_idle,
    interrupted_in_the_text,
    interrupted_at_a_question,
    interrupted_at_a_hook,
    interrupted_in_a_tool,
    cancelled_request,
)
