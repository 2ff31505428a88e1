"""Sections 1 to 4: the start of a CLI, the handshake, control requests, and fatal input."""

from __future__ import annotations

from dataclasses import dataclass

from steersman._json import Json, JsonDict
from steersman.testing.script import call, say
from steersman_conformance.checks import scene
from steersman_conformance.frames import Frame, asks, calls_mcp_server, part
from steersman_conformance.hosting import HOLD, hold, mcp_server, rpc
from steersman_conformance.raw import RawCli
from steersman_conformance.stage import STREAM_JSON, Stage

__all__ = ["SCENES"]


@dataclass(frozen=True, slots=True)
class Handshake:
    """A CLI, and its answer to `initialize`."""

    cli: RawCli
    answer: Frame
    before_prompt: list[str]
    """The messages before the first prompt."""


@scene
async def bare_handshake(stage: Stage) -> Handshake:
    async with stage.cli() as cli:
        early = await cli.ask("mcp_status")
        answer = await cli.initialize(hooks=None)
        await cli.settle()
        before = cli.order
    return Handshake(cli, {**answer, "early": early}, before)


@bare_handshake.must("1.3")
def initialize_is_answered_without_a_prompt(seen: Handshake) -> bool:
    """`initialize` is answered before any prompt."""
    return "commands" in seen.answer


@bare_handshake.must("1.4", sees=[])
def nothing_comes_before_the_first_prompt(seen: Handshake) -> list[str]:
    """The handshake contains no `system/init`, which begins each turn instead."""
    return [each for each in seen.before_prompt if each not in ("success", "control_response")]


@bare_handshake.must("4", sees=["account", "agents", "commands", "models"])
def initialize_tells_commands_agents_models_account(seen: Handshake) -> list[str]:
    """The answer to `initialize` lists commands, agents, models and the account."""
    return sorted({"account", "agents", "commands", "models"} & seen.answer.keys())


@bare_handshake.must("4", sees=[])
def initialize_tells_no_session_id(seen: Handshake) -> list[str]:
    """The answer to `initialize` contains no session id, so we set one with `--session-id`."""
    return sorted(name for name in seen.answer if "session_id" in name)


@bare_handshake.feature("4", without="features are detected from the messages themselves")
def initialize_lists_capabilities(seen: Handshake) -> bool:
    """The answer to `initialize` lists capabilities."""
    return isinstance(seen.answer.get("capabilities"), list)


@bare_handshake.feature("4", without="the version is known from the first turn on")
def initialize_tells_the_version(seen: Handshake) -> bool:
    """The answer to `initialize` names the CLI's version."""
    return bool(seen.answer.get("claude_code_version"))


@bare_handshake.feature("11", without="a hook that fails answers `deny` itself")
def initialize_announces_on_failure(seen: Handshake) -> bool:
    """`hook_on_failure_supported` announces that `onFailure` works."""
    return seen.answer.get("hook_on_failure_supported") is True


@bare_handshake.must("7", sees="success")
def requests_are_served_before_initialize(seen: Handshake) -> Json:
    """A control request before `initialize` is answered."""
    return seen.answer["early"].get("subtype")


@bare_handshake.must("16", sees=0)
def end_of_input_ends_an_idle_cli(seen: Handshake) -> int | None:
    """An idle CLI exits with status 0 at the end of its input."""
    return seen.cli.status


@bare_handshake.must("16", sees="")
def stderr_is_silent(seen: Handshake) -> str:
    """A CLI without problems writes nothing to stderr."""
    return seen.cli.stderr[:300]


# --- Odd lines --------------------------------------------------------------------------


@scene
async def odd_lines(stage: Stage) -> RawCli:
    async with stage.cli(say("sane")) as cli:
        await cli.initialize()
        cli.write(b"\n[]\n7\n")
        cli.send({"type": "keep_alive"})
        cli.send({"type": "never_heard_of"})
        cli.send({"type": "control_cancel_request", "request_id": "nobody"})
        cli.send(
            {"type": "control_response", "response": {"subtype": "success", "request_id": "no"}}
        )
        cli.request("no_such_request")
        await cli.initialize(hooks="nonsense")
        await cli.initialize(no_such_field=1)
        await cli.prompt("still there?")
    return cli


@odd_lines.must("3", sees="sane")
def odd_lines_are_ignored(cli: RawCli) -> Json:
    """Blank lines, scalars, unknown types, and answers to unknown requests are ignored."""
    return cli.result.get("result")


@odd_lines.must("7", sees="Unsupported control request subtype: no_such_request")
def unknown_requests_are_refused(cli: RawCli) -> Json:
    """An unknown control request is answered with an error."""
    return _answer(cli, "conform_2").get("error")


@odd_lines.feature(
    "7", sees="unsupported_request", absent=None, without="the error's text is shown"
)
def refusals_have_a_code(cli: RawCli) -> Json:
    """The refusal of an unknown request has an `error_code`."""
    return _answer(cli, "conform_2").get("error_code")


@odd_lines.feature("4", sees="error", absent="success", without="we never send malformed hooks")
def bad_hooks_are_refused(cli: RawCli) -> Json:
    """Malformed `hooks` cause an error response, and the CLI stays usable."""
    return _answer(cli, "conform_3").get("subtype")


@odd_lines.must("4", sees="success")
def initialize_may_come_again(cli: RawCli) -> Json:
    """A second `initialize` is accepted, and unknown fields are ignored."""
    return _answer(cli, "conform_4").get("subtype")


def _answer(cli: RawCli, request_id: str) -> Frame:
    bodies = [part(frame, "response") for frame in cli.of("control_response")]
    found: list[Frame] = [body for body in bodies if body.get("request_id") == request_id]
    return found[0] if found else {}


# --- Fatal lines ------------------------------------------------------------------------

FATAL = {
    "no JSON": b"this is not JSON\n",
    "user without message": b'{"type":"user"}\n',
    "wrong role": b'{"type":"user","message":{"role":"assistant","content":"x"}}\n',
    "no request": b'{"type":"control_request","request_id":"x"}\n',
}


@scene
async def fatal_lines(stage: Stage) -> dict[str, RawCli]:
    seen: dict[str, RawCli] = {}
    for name, line in FATAL.items():
        async with stage.cli() as cli:
            await cli.initialize()
            cli.write(line)
            await cli.wait_exited()
        seen[name] = cli
    return seen


@fatal_lines.must("3", sees=dict.fromkeys(FATAL, 1))
def a_broken_line_kills_the_cli(seen: dict[str, RawCli]) -> dict[str, int | None]:
    """The CLI exits with status 1 after one broken line on stdin."""
    return {name: cli.status for name, cli in seen.items()}


@fatal_lines.must("3", sees=dict.fromkeys(FATAL, True))
def a_broken_line_is_told_on_stderr(seen: dict[str, RawCli]) -> dict[str, bool]:
    """The CLI writes the problem of a broken line to stderr."""
    return {name: bool(cli.stderr.strip()) for name, cli in seen.items()}


# --- Refused starts ---------------------------------------------------------------------

REFUSED = {
    "unknown flag": ["--no-such-flag"],
    "bad settings": ["--settings=/nowhere/settings.json"],
    "bad mcp config": ["--mcp-config=/nowhere/mcp.json"],
    "not verbose": [],
}


@scene
async def refused_starts(stage: Stage) -> dict[str, RawCli]:
    seen: dict[str, RawCli] = {}
    for name, flags in REFUSED.items():
        argv = [flag for flag in STREAM_JSON if name != "not verbose" or flag != "--verbose"]
        async with stage.cli(argv=argv, flags=flags) as cli:
            cli.request("initialize")
            await cli.wait_exited()
        seen[name] = cli
    return seen


@refused_starts.must("2", sees={name: [1, 0, True] for name in REFUSED})
def a_refused_start_is_one_line_on_stderr(seen: dict[str, RawCli]) -> JsonDict:
    """With bad flags the CLI exits with status 1, an empty stdout and the reason on stderr."""
    return {
        name: [cli.status, len(cli.frames), bool(cli.stderr.strip())] for name, cli in seen.items()
    }


# --- Waiting for the handshake ----------------------------------------------------------


@scene
async def user_before_initialize(stage: Stage) -> RawCli:
    async with stage.cli(flags=["--await-initialize"]) as cli:
        cli.post("too early")
        await cli.wait_exited()
    return cli


@user_before_initialize.feature(
    "2", sees=[1, True], absent=[1, False], without="turns are never resumed before the handshake"
)
def await_initialize_refuses_an_early_prompt(cli: RawCli) -> Json:
    """With `--await-initialize` the CLI exits if a prompt comes before `initialize`."""
    return [cli.status, "unknown option" not in cli.stderr]


@scene
async def no_initialize_at_all(stage: Stage) -> RawCli:
    async with stage.cli(say("hello")) as cli:
        await cli.prompt("no greeting")
    return cli


@no_initialize_at_all.must("4", sees="hello")
def a_prompt_works_without_initialize(cli: RawCli) -> Json:
    """A prompt without an `initialize` request is answered."""
    return cli.result.get("result")


# --- MCP servers ------------------------------------------------------------------------

NAMED = '--mcp-config={"mcpServers":{"key":{"type":"sdk","name":"other"}}}'
NAMELESS = '--mcp-config={"mcpServers":{"key":{"type":"sdk"}}}'


@scene
async def tool_server_of_ours(stage: Stage) -> RawCli:
    async with stage.cli(
        call("mcp__key__work", n=1, id_="toolu_one"), flags=[NAMED, "--allowedTools=mcp__key"]
    ) as cli:
        await cli.initialize()
        await cli.prompt("work")
    return cli


@tool_server_of_ours.must("10", sees=["initialize", "notifications/initialized", "tools/list"])
def a_tool_server_is_greeted_in_three_steps(cli: RawCli) -> list[Json]:
    """The CLI sends `initialize`, its notification and `tools/list` in this order."""
    return list(dict.fromkeys(_methods(cli)))[:3]


@tool_server_of_ours.must("10", sees=["key"])
def a_tool_server_goes_by_its_key(cli: RawCli) -> list[Json]:
    """`server_name` is the key in the configuration, not the `name` field."""
    return sorted({frame["request"]["server_name"] for frame in cli.asked("mcp_message")})


@tool_server_of_ours.must("10", sees="toolu_one")
def a_tool_call_names_its_tool_use(cli: RawCli) -> Json:
    """`tools/call` carries the tool use id in `_meta`."""
    calls = _messages(cli, "tools/call")
    return calls[0]["params"]["_meta"]["claudecode/toolUseId"]


@tool_server_of_ours.must("10", sees="done")
def a_tool_result_reaches_the_model(cli: RawCli) -> Json:
    """The model gets the tool's result unchanged."""
    return cli.model.asked[-1].tool_results.get("toolu_one")


@tool_server_of_ours.must("5", sees=[{"name": "key", "status": "connected"}])
def init_lists_tool_servers(cli: RawCli) -> Json:
    """`system/init` lists the MCP servers and their state."""
    servers = cli.of("system", "init")[0]["mcp_servers"]
    return [{"name": each["name"], "status": each["status"]} for each in servers]


@scene
async def nameless_tool_server(stage: Stage) -> RawCli:
    async with stage.cli(say("fine"), flags=[NAMELESS]) as cli:
        await cli.initialize()
        await cli.prompt("anyone?")
    return cli


@nameless_tool_server.canary(
    "10", sees=[[], "fine"], so="servers are named in `initialize`, not in a configuration"
)
def a_nameless_tool_server_is_dropped_in_silence(cli: RawCli) -> Json:
    """An sdk server without `name` is silently ignored."""
    return [_methods(cli), cli.result.get("result")]


@scene
async def tool_servers_in_initialize(stage: Stage) -> RawCli:
    async with stage.cli(call("mcp__two__work"), flags=["--allowedTools=mcp__one,mcp__two"]) as cli:
        await cli.initialize(sdkMcpServers=["one", "two"])
        await cli.prompt("work")
    return cli


@tool_servers_in_initialize.must("4", sees=[["one", "two"], ["two"]])
def initialize_can_name_tool_servers(cli: RawCli) -> Json:
    """Servers named in `initialize.sdkMcpServers` are initialized, and their tools are called."""
    requests = [frame["request"] for frame in cli.asked("mcp_message")]
    return [
        sorted(each["server_name"] for each in requests if each["message"]["method"] == method)
        for method in ("initialize", "tools/call")
    ]


@scene
async def mute_tool_server(stage: Stage) -> Handshake:
    async with stage.cli(say("hi"), answers={"mcp_message": hold}, flags=[NAMED]) as cli:
        answer = await cli.initialize()
        cli.post("hello")
        await cli.settle()
        before = cli.order
        asked = await cli.wait(asks("mcp_message"))
        cli.answer(asked, rpc(asked["request"]["message"], {}))
        await cli.kill()
    return Handshake(cli, answer, before)


@mute_tool_server.must("1.3")
def initialize_does_not_wait_for_tool_servers(seen: Handshake) -> bool:
    """`initialize` is answered while an MCP server does not answer."""
    return "commands" in seen.answer


@mute_tool_server.must("4", sees=False)
def the_first_turn_waits_for_tool_servers(seen: Handshake) -> bool:
    """The first turn waits until the MCP servers have answered or failed."""
    return "init" in seen.before_prompt


@scene
async def unacknowledged_notification(stage: Stage) -> tuple[RawCli, list[Json]]:
    serve = mcp_server()

    def mute_to_notifications(request: Frame) -> Json:
        is_note = request["message"]["method"] == "notifications/initialized"
        return HOLD if is_note else serve(request)

    async with stage.cli(answers={"mcp_message": mute_to_notifications}, flags=[NAMED]) as cli:
        await cli.initialize()
        note = await cli.wait(calls_mcp_server("notifications/initialized"))
        await cli.settle()
        held = _methods(cli)
        cli.answer(note, rpc(note["request"]["message"], {}))
        await cli.wait(calls_mcp_server("tools/list"))
    return cli, held


@unacknowledged_notification.must(
    "1.8", sees=[["initialize", "notifications/initialized"], "tools/list"]
)
def notifications_need_an_answer(seen: tuple[RawCli, list[Json]]) -> Json:
    """`tools/list` is sent only after `notifications/initialized` was acknowledged."""
    cli, held = seen
    return [held, _methods(cli)[-1]]


def _messages(cli: RawCli, method: str) -> list[Frame]:
    messages = [frame["request"]["message"] for frame in cli.asked("mcp_message")]
    return [message for message in messages if message.get("method") == method]


def _methods(cli: RawCli) -> list[Json]:
    return [frame["request"]["message"].get("method") for frame in cli.asked("mcp_message")]


SCENES = (
    bare_handshake,
    odd_lines,
    fatal_lines,
    refused_starts,
    user_before_initialize,
    no_initialize_at_all,
    tool_server_of_ours,
    nameless_tool_server,
    tool_servers_in_initialize,
    mute_tool_server,
    unacknowledged_notification,
)
