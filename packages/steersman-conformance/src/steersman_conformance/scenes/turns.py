"""Section 5: the messages of a turn, from its prompt to its result."""

from __future__ import annotations

import json

from steersman._json import Json
from steersman.testing.script import call, calls, say, think
from steersman_conformance.checks import scene
from steersman_conformance.frames import Fits, Frame, calls_mcp_server, is_result, part
from steersman_conformance.hosting import HOLD, mcp_server, rpc
from steersman_conformance.raw import RawCli
from steersman_conformance.stage import Stage, uuid_of

__all__ = ["SCENES"]

SESSION = uuid_of(7)
FIRST, SECOND = uuid_of(1), uuid_of(2)
CHUNKS = ["Once ", "upon ", "a time"]

RESULT_FIELDS = (
    *("duration_ms", "is_error", "modelUsage", "num_turns", "permission_denials", "result"),
    *("session_id", "stop_reason", "subtype", "total_cost_usd", "usage", "uuid"),
)
INIT_FIELDS = (
    *("agents", "apiKeySource", "claude_code_version", "cwd", "mcp_servers", "model"),
    *("permissionMode", "session_id", "slash_commands", "tools"),
)


@scene
async def two_turns(stage: Stage) -> RawCli:
    flags = ["--include-partial-messages", f"--session-id={SESSION}", "--allowedTools=Bash"]
    async with stage.cli(
        think("hm") + say("I look.") + call("Bash", command="echo seen", id_="toolu_echo"),
        say("".join(CHUNKS), chunks=CHUNKS),
        say("Bye."),
        flags=flags,
    ) as cli:
        await cli.initialize()
        await cli.prompt("first", uuid=FIRST)
        await cli.prompt([{"type": "text", "text": "second"}], uuid=SECOND)
    return cli


@two_turns.must("5", sees=["Once upon a time", "Bye."])
def one_result_ends_each_turn(cli: RawCli) -> list[Json]:
    """Prompts that are sent one after the other get one result each."""
    return [each.get("result") for each in cli.results]


@two_turns.must("1.4", sees=2)
def one_init_opens_each_turn(cli: RawCli) -> int:
    """Every turn begins with `system/init`."""
    return len(cli.of("system", "init"))


@two_turns.must("5", sees=[])
def results_have_the_fields_we_read(cli: RawCli) -> list[str]:
    """A result has the fields that `TurnResult` reads."""
    return [name for name in RESULT_FIELDS if any(name not in each for each in cli.results)]


@two_turns.must("5", sees=[])
def init_has_the_fields_we_read(cli: RawCli) -> list[str]:
    """`system/init` names the session, the model, the tools and the permission mode."""
    return [name for name in INIT_FIELDS if name not in cli.of("system", "init")[0]]


@two_turns.must("14", sees=[SESSION])
def the_chosen_session_id_is_used(cli: RawCli) -> list[Json]:
    """Every message has the id of `--session-id`."""
    return sorted({frame["session_id"] for frame in cli.frames if "session_id" in frame})


@two_turns.must("5")
def cost_is_summed_over_the_process(cli: RawCli) -> bool:
    """`total_cost_usd` grows from result to result."""
    first, second = (float(each["total_cost_usd"]) for each in cli.results)
    return 0 < first < second


@two_turns.feature(
    "5",
    sees=["queued", "started", "completed"],
    absent=[],
    without="a replayed prompt marks the start",
)
def lifecycle_follows_a_prompt(cli: RawCli) -> list[Json]:
    """`command_lifecycle` reports the states of a prompt with a uuid."""
    return [f.get("state") for f in cli.of("command_lifecycle") if f.get("command_uuid") == FIRST]


@two_turns.feature(
    "6",
    sees=[[FIRST], [SECOND]],
    absent=[None, None],
    without="a result settles the replayed prompts",
)
def results_name_their_prompts(cli: RawCli) -> list[Json]:
    """`user_message_uuids` on a result names the prompts that it settles."""
    return [each.get("user_message_uuids") for each in cli.results]


@two_turns.feature("6", sees=FIRST, absent=None, without="messages belong to the current prompt")
def the_first_answer_names_its_prompt(cli: RawCli) -> Json:
    """The first assistant message of a turn names the prompt."""
    return cli.of("assistant")[0].get("user_message_uuid")


@two_turns.feature("5", sees=[0, 1], absent=[None, None], without="we count the results")
def results_are_numbered(cli: RawCli) -> list[Json]:
    """`result_index` counts the results of a process."""
    return [each.get("result_index") for each in cli.results]


@two_turns.feature(
    "5", sees="completed", absent=None, without="the outcome is read from the subtype"
)
def results_tell_why_the_turn_ended(cli: RawCli) -> Json:
    """`terminal_reason` gives the reason for the end of a turn."""
    return cli.results[0].get("terminal_reason")


@two_turns.feature("C1", absent=False, without="lifecycle messages are used if they arrive")
def init_announces_the_lifecycle(cli: RawCli) -> bool:
    """`system/init` lists the capability `msg_lifecycle_v1`."""
    return "msg_lifecycle_v1" in cli.of("system", "init")[0].get("capabilities", [])


@two_turns.feature("C1", absent=False, without="the receipt is empty")
def init_announces_the_interrupt_receipt(cli: RawCli) -> bool:
    """`system/init` lists the capability `interrupt_receipt_v1`."""
    return "interrupt_receipt_v1" in cli.of("system", "init")[0].get("capabilities", [])


@two_turns.must("5", sees=["running", "idle"] * 2)
def states_bracket_each_turn(cli: RawCli) -> list[Json]:
    """If enabled, `session_state_changed` reports `running` and `idle` around each turn."""
    return [each.get("state") for each in cli.of("system", "session_state_changed")]


@two_turns.must("5")
def idle_comes_after_the_result(cli: RawCli) -> bool:
    """`idle` comes after the result, as the last message of a turn."""
    last = max(at for at, frame in enumerate(cli.frames) if is_result(frame))
    return any(frame.get("state") == "idle" for frame in cli.frames[last:])


@two_turns.must("5", sees=["thinking", "text", "tool_use", "text", "text"])
def one_frame_per_content_block(cli: RawCli) -> list[Json]:
    """Each finished block is a separate assistant message."""
    return [block["type"] for frame in cli.of("assistant") for block in frame["message"]["content"]]


@two_turns.must("5", sees=[3, 1, 1])
def blocks_of_one_answer_share_its_id(cli: RawCli) -> list[int]:
    """The assistant messages of one answer have the same `message.id`."""
    ids = [frame["message"]["id"] for frame in cli.of("assistant")]
    return [ids.count(each) for each in dict.fromkeys(ids)]


@two_turns.must("5", sees=CHUNKS)
def partial_text_comes_as_the_model_sends_it(cli: RawCli) -> list[Json]:
    """`stream_event` messages contain the events of the API."""
    return [text for text in _deltas(cli) if text in CHUNKS]


@two_turns.must("5")
def a_whole_block_comes_before_its_stop_event(cli: RawCli) -> bool:
    """The assistant message of a block comes before its `content_block_stop`."""
    types = [str((frame.get("event") or frame).get("type")) for frame in cli.frames]
    return types.index("assistant") < types.index("content_block_stop")


@two_turns.must("5", sees=["toolu_echo", "seen", False])
def tool_results_come_in_user_frames(cli: RawCli) -> list[Json]:
    """The result of a tool is a block of a user message."""
    block = cli.tool_results[0]
    return [block["tool_use_id"], block["content"], bool(block.get("is_error"))]


@two_turns.must("6", sees="second")
def content_may_be_blocks(cli: RawCli) -> str:
    """The content of a prompt may be a list of blocks."""
    return cli.model.asked[-1].last_text


@two_turns.must("14", sees=[f"{SESSION}.jsonl"])
def the_transcript_is_named_for_the_session(cli: RawCli) -> list[str]:
    """The transcript is stored below `projects` in the config folder, named by session id."""
    config = cli.project.parent / "config"
    return [path.name for path in (config / "projects").glob("*/*.jsonl")]


def _deltas(cli: RawCli) -> list[Json]:
    events: list[Frame] = [frame["event"] for frame in cli.of("stream_event")]
    return [part(event, "delta").get("text") for event in events]


# --- Replayed prompts -------------------------------------------------------------------


@scene
async def replayed_prompts(stage: Stage) -> RawCli:
    flags = ["--replay-user-messages", "--allowedTools=mcp__key"]
    async with stage.cli(call("mcp__key__work"), say("ok"), flags=flags) as cli:
        await cli.initialize(sdkMcpServers=["key"])
        await cli.prompt("hello", uuid=FIRST)
    return cli


@replayed_prompts.must("6", sees=[FIRST])
def replays_carry_the_uuid(cli: RawCli) -> list[Json]:
    """`--replay-user-messages` echoes a prompt with its uuid when its turn starts."""
    return [frame.get("uuid") for frame in cli.of("user") if frame.get("isReplay")]


@replayed_prompts.canary("6", so="control responses to unknown requests are ignored")
def replays_echo_our_control_responses(cli: RawCli) -> bool:
    """With `--replay-user-messages` the CLI also echoes the host's control responses."""
    asked = {frame["request_id"] for frame in cli.of("control_request")}
    answered = {frame["response"].get("request_id") for frame in cli.of("control_response")}
    return bool(asked & answered)


# --- Several tools ----------------------------------------------------------------------


async def _most_open_at_once(stage: Stage, *, read_only: bool) -> tuple[RawCli, int]:
    """Let the model call three tools that wait; return how many ran at the same time."""
    serve = mcp_server(lambda _: HOLD, read_only=read_only)
    async with stage.cli(
        calls(*(call("mcp__key__work", n=n, id_=f"toolu_{n}") for n in (1, 2, 3))),
        say("done"),
        flags=["--allowedTools=mcp__key"],
        answers={"mcp_message": serve},
    ) as cli:
        await cli.initialize(sdkMcpServers=["key"])
        cli.post("go")
        most = 0
        for number in (1, 2, 3):
            await cli.wait(_call_number(3 if read_only else number))
            await cli.settle()
            opened = [frame for frame in cli.frames if calls_mcp_server("tools/call")(frame)]
            most = max(most, len(opened) - number + 1)
            asked = await cli.wait(_call_number(number))
            cli.answer(asked, rpc(asked["request"]["message"], {"content": []}))
        await cli.wait(is_result)
    return cli, most


def _call_number(number: int) -> Fits:
    return lambda frame: (
        calls_mcp_server("tools/call")(frame)
        and frame["request"]["message"]["params"]["arguments"] == {"n": number}
    )


@scene
async def tools_in_a_row(stage: Stage) -> tuple[RawCli, int]:
    return await _most_open_at_once(stage, read_only=False)


@tools_in_a_row.must("10", sees=1)
def plain_tools_run_one_at_a_time(seen: tuple[RawCli, int]) -> int:
    """Tools without `readOnlyHint` are called one after the other."""
    return seen[1]


@scene
async def tools_side_by_side(stage: Stage) -> tuple[RawCli, int]:
    return await _most_open_at_once(stage, read_only=True)


@tools_side_by_side.must("10", sees=3)
def read_only_tools_run_side_by_side(seen: tuple[RawCli, int]) -> int:
    """Tools with `readOnlyHint` are called in parallel."""
    return seen[1]


@tools_side_by_side.must("18", sees=[["toolu_1", "toolu_2", "toolu_3"]] * 2)
def tool_use_ids_are_unique(seen: tuple[RawCli, int]) -> list[Json]:
    """Every tool use id is in one call and one result (an old CLI had them twice)."""
    cli, _ = seen
    called = [
        block["id"]
        for frame in cli.of("assistant")
        for block in frame["message"]["content"]
        if block["type"] == "tool_use"
    ]
    return [sorted(called), sorted(block["tool_use_id"] for block in cli.tool_results)]


# --- Limits and shapes ------------------------------------------------------------------


@scene
async def too_many_rounds(stage: Stage) -> RawCli:
    async with stage.cli(
        call("Bash", command="true"),
        call("Bash", command="true"),
        say("again"),
        flags=["--max-turns=1", "--allowedTools=Bash"],
    ) as cli:
        await cli.initialize()
        await cli.prompt("loop")
        await cli.prompt("and now?")
    return cli


@too_many_rounds.must("5", sees=["error_max_turns", True])
def max_turns_ends_the_turn_with_an_error(cli: RawCli) -> list[Json]:
    """`--max-turns` ends a turn with `error_max_turns`."""
    return [cli.results[0].get("subtype"), cli.results[0].get("is_error")]


@too_many_rounds.must("5", sees=2)
def the_session_goes_on_after_max_turns(cli: RawCli) -> int:
    """After `error_max_turns` the next prompt starts a new turn."""
    return len(cli.results)


SCHEMA = '{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}'


@scene
async def shaped_output(stage: Stage) -> RawCli:
    async with stage.cli(
        call("StructuredOutput", n=4), say("Four."), flags=[f"--json-schema={SCHEMA}"]
    ) as cli:
        await cli.initialize()
        await cli.prompt("how many?")
    return cli


@shaped_output.must("14", sees={"n": 4})
def structured_output_is_in_the_result(cli: RawCli) -> Json:
    """With a schema the result contains `structured_output`."""
    return cli.result.get("structured_output")


@scene
async def shape_never_given(stage: Stage) -> RawCli:
    async with stage.cli(say("No."), say("Never."), say("No!")) as cli:
        await cli.initialize(jsonSchema=json.loads(SCHEMA))
        await cli.prompt("how many?")
    return cli


@shape_never_given.canary(
    "14", sees=["success", False, False], so="`run(output=T)` raises `NoOutput`"
)
def a_missing_shape_counts_as_success(cli: RawCli) -> list[Json]:
    """A turn without the structured output ends in a plain success."""
    result = cli.result
    return [result.get("subtype"), result.get("is_error"), "structured_output" in result]


# --- Unusual characters -----------------------------------------------------------------

ODD_TEXT = "line\u2028para\u2029next\u0085bell\u0007 ünï 🚢"
LARGE = 2 * 1024 * 1024


@scene
async def odd_text(stage: Stage) -> RawCli:
    async with stage.cli(say(ODD_TEXT), say("half \ud83d pair"), say("x" * LARGE)) as cli:
        await cli.initialize()
        await cli.prompt("odd")
        await cli.prompt("half")
        await cli.prompt("y" * LARGE)
    return cli


@odd_text.must("3", sees=[])
def line_separators_are_escaped(cli: RawCli) -> list[str]:
    """U+2028, U+2029 and control characters are always escaped in the output."""
    return _bare(cli, "\u2028\u2029\u0007")


@odd_text.feature("3", sees=[], absent=["U+0085"], without="lines are split at U+000A only")
def the_next_line_character_is_escaped(cli: RawCli) -> list[str]:
    """U+0085, which some readers treat as a line end, is always escaped in the output."""
    return _bare(cli, "\u0085")


def _bare(cli: RawCli, characters: str) -> list[str]:
    text = b"".join(cli.lines).decode(errors="replace")
    return [f"U+{ord(each):04X}" for each in characters if each in text]


@odd_text.must("3", sees=ODD_TEXT)
def text_comes_through_unchanged(cli: RawCli) -> Json:
    """The text of the model arrives unchanged."""
    return cli.results[0].get("result")


@odd_text.canary("C4", so="the standard library reads the lines that msgspec refuses")
def half_a_surrogate_pair_is_passed_on(cli: RawCli) -> bool:
    """A lone surrogate in the model's text is forwarded unchanged."""
    return b"\\ud83d pair" in b"".join(cli.lines)


@odd_text.must("3", sees=[LARGE, LARGE])
def long_lines_pass_both_ways(cli: RawCli) -> list[int]:
    """Lines of several megabytes are read and written completely."""
    asked, text = cli.model.asked[2].last_text, str(cli.results[2].get("result"))
    return [len(asked), len(text)]


# --- Background tasks -------------------------------------------------------------------


@scene
async def background_agent(stage: Stage) -> RawCli:
    task = {"description": "d", "prompt": "dig", "run_in_background": True}
    async with stage.cli(
        call("Agent", task, subagent_type="general-purpose"), say("started"), say("it is done")
    ) as cli:
        await cli.initialize()
        await cli.prompt("go", uuid=FIRST)
        await cli.wait(lambda f: is_result(f) and "origin" in f)
    return cli


@background_agent.must("13", sees=["started", "it is done"])
def background_work_starts_a_turn_of_its_own(cli: RawCli) -> list[Json]:
    """The end of a background agent starts a turn without a prompt, which has a result."""
    return [each.get("result") for each in cli.results]


@background_agent.must("13", sees="task-notification")
def an_unasked_turn_tells_its_origin(cli: RawCli) -> Json:
    """The result of a turn without a prompt has an `origin`."""
    return part(cli.result, "origin").get("kind")


@background_agent.must("13", sees=[True])
def subagents_are_announced(cli: RawCli) -> list[bool]:
    """`task_started` announces a subagent with its tool use id."""
    return [bool(each.get("tool_use_id")) for each in cli.of("system", "task_started")]


SCENES = (
    two_turns,
    replayed_prompts,
    tools_in_a_row,
    tools_side_by_side,
    too_many_rounds,
    shaped_output,
    shape_never_given,
    odd_text,
    background_agent,
)
