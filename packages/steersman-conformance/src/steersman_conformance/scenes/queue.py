"""Section 6: prompts that arrive during a turn, and special prompts."""

from __future__ import annotations

from steersman import _json
from steersman._json import Json
from steersman.testing.script import call, say, stall
from steersman_conformance.checks import scene
from steersman_conformance.frames import (
    Fits,
    Frame,
    calls_mcp_server,
    is_result,
    part,
)
from steersman_conformance.hosting import HOLD, mcp_server, rpc
from steersman_conformance.raw import RawCli
from steersman_conformance.stage import Stage, uuid_of

__all__ = ["SCENES"]

FIRST, SECOND, THIRD = uuid_of(1), uuid_of(2), uuid_of(3)


def _results(count: int) -> Fits:
    """Return a test that result number `count` passes."""
    met: list[Frame] = []

    def fits(frame: Frame) -> bool:
        if is_result(frame):
            met.append(frame)
        return len(met) >= count

    return fits


# --- While text streams -----------------------------------------------------------------


@scene
async def prompts_during_text(stage: Stage) -> RawCli:
    async with stage.cli(say("slow") + stall() + say(" but sure")) as cli:
        await cli.initialize()
        cli.post("first", uuid=FIRST)
        await cli.asked_the_model(1)
        cli.post("second", uuid=SECOND)
        cli.post("third", uuid=THIRD)
        await cli.settle()
        await cli.release()
        await cli.wait(_results(2))
    return cli


@prompts_during_text.canary(
    "6", sees=[2, "second\nthird"], so="we queue prompts and send one at a time"
)
def waiting_prompts_are_merged(cli: RawCli) -> list[Json]:
    """Two waiting prompts become one turn with one result."""
    return [len(cli.results), cli.model.asked[-1].last_text]


@prompts_during_text.feature(
    "6",
    sees=[SECOND, THIRD],
    absent=None,
    without="the replays before the result name them",
)
def a_merged_result_names_all_its_prompts(cli: RawCli) -> Json:
    """The result of a merged turn names all its prompts."""
    return cli.result.get("user_message_uuids")


# --- While a tool runs ------------------------------------------------------------------


async def _second_prompt_during_a_tool(stage: Stage, **fields: Json) -> RawCli:
    """Send a prompt while a tool runs, then let the tool finish."""
    async with stage.cli(
        call("mcp__key__work", id_="toolu_1"),
        say("done"),
        flags=["--allowedTools=mcp__key"],
        answers={"mcp_message": mcp_server(lambda _: HOLD)},
    ) as cli:
        await cli.initialize(sdkMcpServers=["key"])
        cli.post("first", uuid=FIRST)
        asked = await cli.wait(calls_mcp_server("tools/call"))
        cli.post("second", uuid=SECOND, **fields)
        await cli.settle()
        cli.answer(asked, rpc(asked["request"]["message"], {"content": []}))
        await cli.wait(_results(2 if fields else 1))
    return cli


@scene
async def prompt_during_a_tool(stage: Stage) -> RawCli:
    return await _second_prompt_during_a_tool(stage)


@prompt_during_a_tool.must("6", sees=[1, True])
def a_prompt_during_a_tool_is_folded_in(cli: RawCli) -> list[Json]:
    """A prompt that arrives while a tool runs joins the turn and gets no separate result."""
    return [len(cli.results), cli.model.asked[-1].last_text.startswith("second")]


@prompt_during_a_tool.feature(
    "6", sees=[FIRST, SECOND], absent=None, without="we never send a second prompt during a turn"
)
def a_folded_prompt_is_named_by_the_result(cli: RawCli) -> Json:
    """The result also names the folded prompt."""
    return cli.result.get("user_message_uuids")


@scene
async def urgent_prompt(stage: Stage) -> RawCli:
    return await _second_prompt_during_a_tool(stage, priority="now")


@urgent_prompt.must("6", sees=[["success", ""], ["success", "done"]])
def now_ends_the_turn_under_way(cli: RawCli) -> list[Json]:
    """A prompt with `priority: now` ends the running turn with an empty success, then runs."""
    return [[each.get("subtype"), each.get("result")] for each in cli.results]


@scene
async def patient_prompt(stage: Stage) -> RawCli:
    return await _second_prompt_during_a_tool(stage, priority="later")


@patient_prompt.must("6", sees=["done", "Echo: second"])
def later_waits_for_the_end_of_the_turn(cli: RawCli) -> list[Json]:
    """A prompt with `priority: later` runs as a separate turn after the current one."""
    return [each.get("result") for each in cli.results]


# --- Special prompts --------------------------------------------------------------------


@scene
async def odd_prompts(stage: Stage) -> RawCli:
    async with stage.cli() as cli:
        await cli.initialize()
        await cli.prompt("once", uuid=FIRST)
        cli.post("twice", uuid=FIRST)
        await cli.settle()
        await cli.prompt("a note", shouldQuery=False)
        await cli.prompt("noted?")
        await cli.prompt("/no-such-command at all")
        await cli.prompt("/cost", client_composed=True)
    return cli


@odd_prompts.must("6", sees=False)
def a_repeated_uuid_is_dropped(cli: RawCli) -> bool:
    """A prompt with a uuid that was used before is silently dropped."""
    return any("twice" in str(request.body["messages"]) for request in cli.model.asked)


@odd_prompts.must("6", sees=[0, True])
def a_note_gets_an_empty_result(cli: RawCli) -> list[Json]:
    """`shouldQuery: false` gives an empty result, and the text is part of the next request."""
    noted = any("a note" in str(request.body["messages"]) for request in cli.model.asked[1:])
    return [cli.results[1].get("num_turns"), noted]


@odd_prompts.must("6")
def an_unknown_command_is_told_to_the_model_or_the_user(cli: RawCli) -> bool:
    """An unknown slash command ends in a result, from the CLI or from the model."""
    return bool(cli.results[3].get("result"))


@odd_prompts.feature(
    "6",
    sees="Echo: /cost",
    absent=None,
    without="the CLI runs it: check prompts from untrusted sources",
)
def composed_prompts_run_no_commands(cli: RawCli) -> Json:
    """With `client_composed` a slash command is plain text."""
    answer = cli.results[4].get("result")
    return answer if answer == "Echo: /cost" else None


@scene
async def cleared(stage: Stage) -> RawCli:
    async with stage.cli() as cli:
        await cli.initialize()
        await cli.prompt("xyzzy")
        await cli.prompt("/clear")
        await cli.prompt("after")
    return cli


@cleared.must("19.18", sees=[2, False])
def clear_changes_the_session_id(cli: RawCli) -> list[Json]:
    """`/clear` starts a new session without the old messages."""
    ids = {each["session_id"] for each in (cli.results[0], cli.results[-1])}
    return [len(ids), "xyzzy" in str(cli.model.asked[-1].body["messages"])]


# --- Withdrawing ------------------------------------------------------------------------


@scene
async def taken_back(stage: Stage) -> tuple[RawCli, dict[str, Frame]]:
    seen: dict[str, Frame] = {}
    async with stage.cli(say("slow") + stall(), say("next")) as cli:
        await cli.initialize()
        cli.post("first", uuid=FIRST)
        await cli.asked_the_model(1)
        cli.post("second", uuid=SECOND)
        cli.post("third", uuid=THIRD)
        await cli.settle()
        seen["cancelled"] = await cli.ask("cancel_async_message", message_uuid=THIRD)
        seen["unknown"] = await cli.ask("cancel_async_message", message_uuid=uuid_of(9))
        seen["receipt"] = await cli.ask("interrupt")
        await cli.wait(_results(2))
    return cli, seen


@taken_back.must("7", sees=[True, False])
def a_waiting_prompt_can_be_taken_back(seen: tuple[RawCli, dict[str, Frame]]) -> list[Json]:
    """`cancel_async_message` withdraws a waiting prompt and reports whether it did."""
    # From 2.1.328 on, the answer also names the prompt.
    answers = [part(seen[1][name], "response") for name in ("cancelled", "unknown")]
    return [each.get("cancelled") for each in answers]


@taken_back.must("6", sees=["second"])
def what_was_taken_back_is_never_asked(seen: tuple[RawCli, dict[str, Frame]]) -> list[str]:
    """Of two waiting prompts, the one that was not withdrawn runs after the interrupt."""
    return [request.last_text for request in seen[0].model.asked[1:]]


@taken_back.feature(
    "7", sees=[SECOND], absent=None, without="the receipt is empty; we know our own queue"
)
def the_interrupt_receipt_lists_waiting_prompts(seen: tuple[RawCli, dict[str, Frame]]) -> Json:
    """The answer to an interrupt lists the prompts that are `still_queued`."""
    return part(seen[1]["receipt"], "response").get("still_queued")


@taken_back.feature(
    "9", sees=["cancelled"], absent=[], without="the answer to the request settles the prompt"
)
def lifecycle_tells_what_was_taken_back(seen: tuple[RawCli, dict[str, Frame]]) -> list[Json]:
    """`command_lifecycle: cancelled` reports a prompt that was withdrawn."""
    frames = [f for f in seen[0].of("command_lifecycle") if f.get("command_uuid") == THIRD]
    return [frame.get("state") for frame in frames][-1:]


@scene
async def all_taken_back(stage: Stage) -> tuple[RawCli, Frame]:
    async with stage.cli(say("slow") + stall(), say("next")) as cli:
        await cli.initialize()
        cli.post("first", uuid=FIRST)
        await cli.asked_the_model(1)
        cli.post("second", uuid=SECOND)
        await cli.settle()
        receipt = await cli.ask("interrupt", cancel_queued=True)
        await cli.wait(is_result)
        await cli.prompt("third")
    return cli, receipt


@all_taken_back.feature("7", sees=[SECOND], absent=None, without="we clear our own queue")
def an_interrupt_can_take_waiting_prompts_along(seen: tuple[RawCli, Frame]) -> Json:
    """`cancel_queued` withdraws the waiting prompts and lists them as `cancelled`."""
    return part(seen[1], "response").get("cancelled")


@scene
async def taken_back_at_once(stage: Stage) -> tuple[RawCli, Frame]:
    async with stage.cli() as cli:
        await cli.initialize()
        # One write, so that the CLI reads both lines at once.
        prompt = {"type": "user", "message": {"role": "user", "content": "unwanted"}}
        request = {"subtype": "cancel_async_message", "message_uuid": FIRST}
        lines = (
            {**prompt, "uuid": FIRST},
            {"type": "control_request", "request_id": "take_back", "request": request},
        )
        cli.write(b"".join(_json.dumps(line) + b"\n" for line in lines))
        answer = await cli.answered("take_back")
        await cli.prompt("next")
    return cli, answer


@taken_back_at_once.canary(
    "7", sees=[{"cancelled": False}, False], so="a `false` is ignored: the turn must settle"
)
def taking_back_at_once_is_answered_wrongly(seen: tuple[RawCli, Frame]) -> list[Json]:
    """Right after a prompt is sent, the answer is `cancelled: false`, yet the prompt never runs."""
    cli, answer = seen
    ran = any(request.last_text == "unwanted" for request in cli.model.asked)
    return [answer.get("response"), ran]


SCENES = (
    prompts_during_text,
    prompt_during_a_tool,
    urgent_prompt,
    patient_prompt,
    odd_prompts,
    cleared,
    taken_back,
    all_taken_back,
    taken_back_at_once,
)
