"""Section 11: hook callbacks."""

from __future__ import annotations

from steersman._json import Json, JsonDict
from steersman.testing.script import Step, call, say
from steersman_conformance.checks import scene
from steersman_conformance.frames import Frame, asks, is_type, part
from steersman_conformance.hosting import Refusal, hold
from steersman_conformance.raw import RawCli
from steersman_conformance.stage import Stage, uuid_of

__all__ = ["SCENES"]

EVERYDAY = (
    *("PermissionRequest", "PostToolUse", "PostToolUseFailure"),
    *("PreToolUse", "Stop", "UserPromptSubmit"),
)
EVENTS = (*EVERYDAY, "SessionStart", "SessionEnd")


def _hooks(*events: str, **fields: Json) -> JsonDict:
    """Return hooks on events; the id of a callback is the name of its event."""
    return {event: [{"hookCallbackIds": [event], **fields}] for event in events}


def _write(stage: Stage, name: str) -> Step:
    return call("Write", file_path=str(stage.box.project / name), content="x", id_=f"t_{name}")


def _exists(cli: RawCli, name: str) -> bool:
    return (cli.project / name).exists()


def _decision(decision: str, **fields: Json) -> JsonDict:
    output = {"hookEventName": "PreToolUse", "permissionDecision": decision, **fields}
    return {"hookSpecificOutput": output}


# --- Which events fire ------------------------------------------------------------------


@scene
async def one_hook_on_each_event(stage: Stage) -> RawCli:
    async with stage.cli(_write(stage, "one"), call("Bash", command="false"), say("done")) as cli:
        await cli.initialize(hooks=_hooks(*EVENTS))
        await cli.prompt("go")
        cli.request("end_session")
        await cli.wait_exited()
    return cli


def _fired(cli: RawCli) -> list[str]:
    names = [frame["request"]["callback_id"] for frame in cli.asked("hook_callback")]
    return sorted(set(names))


@one_hook_on_each_event.must("11", sees=list(EVERYDAY))
def hooks_fire_around_a_turn(cli: RawCli) -> list[str]:
    """The common events call their callbacks."""
    return [name for name in _fired(cli) if not name.startswith("Session")]


@one_hook_on_each_event.canary("11", sees=False, so="we run the hooks for the start ourselves")
def session_start_never_fires_at_start_up(cli: RawCli) -> bool:
    """A callback on `SessionStart` is not called when a session starts."""
    return "SessionStart" in _fired(cli)


@one_hook_on_each_event.canary("11", sees=False, so="the transport reports the end of the process")
def session_end_never_fires_at_exit(cli: RawCli) -> bool:
    """A callback on `SessionEnd` is not called when a session ends."""
    return "SessionEnd" in _fired(cli)


@one_hook_on_each_event.must("11", sees=[])
def hook_input_has_the_fields_we_read(cli: RawCli) -> list[str]:
    """`PreToolUse` contains the session, the folder, the tool, its input and its tool use id."""
    wanted = {"session_id", "cwd", "hook_event_name", "tool_name", "tool_input", "tool_use_id"}
    (first, *_) = [
        frame["request"]["input"]
        for frame in cli.asked("hook_callback")
        if frame["request"]["callback_id"] == "PreToolUse"
    ]
    return sorted(wanted - first.keys())


# --- Decisions of hooks -----------------------------------------------------------------


@scene
async def decisions_of_hooks(stage: Stage) -> RawCli:
    changed = {"file_path": str(stage.box.project / "changed"), "content": "x"}
    decisions: JsonDict = {
        "denied": _decision("deny", permissionDecisionReason="hook says no"),
        "allowed": _decision("allow"),
        "asked": _decision("ask"),
        "original": _decision("allow", updatedInput=changed),
    }

    def decide(request: Frame) -> Json:
        name = request["input"]["tool_input"]["file_path"].rpartition("/")[2]
        return decisions[name]

    async with stage.cli(
        *(_write(stage, name) for name in decisions),
        say("done"),
        answers={"hook_callback": decide},
    ) as cli:
        await cli.initialize(hooks=_hooks("PreToolUse"))
        await cli.prompt("go")
    return cli


@decisions_of_hooks.must("11", sees=[False, True])
def a_hook_can_deny(cli: RawCli) -> list[bool]:
    """`deny` refuses the tool, and the model gets the reason."""
    return [_exists(cli, "denied"), "hook says no" in str(cli.tool_results[0])]


@decisions_of_hooks.must("11", sees=[True, ["t_asked"]])
def a_hook_can_allow_or_ask(cli: RawCli) -> list[Json]:
    """`allow` avoids the permission request, `ask` causes it."""
    asked = [frame["request"]["tool_use_id"] for frame in cli.asked("can_use_tool")]
    return [_exists(cli, "allowed"), asked]


@decisions_of_hooks.must("11", sees=[False, True])
def a_hook_can_change_the_input(cli: RawCli) -> list[bool]:
    """The tool gets `updatedInput`."""
    return [_exists(cli, "original"), _exists(cli, "changed")]


@scene
async def hooks_that_disagree(stage: Stage) -> RawCli:
    def decide(request: Frame) -> Json:
        return _decision("deny" if request["callback_id"] == "no" else "allow")

    hooks = {"PreToolUse": [{"hookCallbackIds": ["yes", "no"]}, {"hookCallbackIds": ["yes"]}]}
    async with stage.cli(
        _write(stage, "never"), say("done"), answers={"hook_callback": decide}
    ) as cli:
        await cli.initialize(hooks=hooks)
        await cli.prompt("go")
    return cli


@hooks_that_disagree.must("11", sees=False)
def deny_wins_over_allow(cli: RawCli) -> bool:
    """If hooks disagree, `deny` takes precedence."""
    return _exists(cli, "never")


@scene
async def prompt_and_stop_hooks(stage: Stage) -> RawCli:
    def decide(request: Frame) -> Json:
        given = request["input"]
        if given["hook_event_name"] == "UserPromptSubmit":
            is_bad = "forbidden" in given["prompt"]
            return {"decision": "block", "reason": "not this"} if is_bad else {}
        return {} if given["stop_hook_active"] else {"decision": "block", "reason": "go on"}

    async with stage.cli(say("first"), say("second"), answers={"hook_callback": decide}) as cli:
        await cli.initialize(hooks=_hooks("UserPromptSubmit", "Stop"))
        await cli.prompt("forbidden words")
        await cli.prompt("good words")
    return cli


@prompt_and_stop_hooks.must("11", sees=[0, 2])
def a_blocked_prompt_reaches_no_model(cli: RawCli) -> list[Json]:
    """`UserPromptSubmit` with `block` gives a result without a request to the model."""
    asked = [each for each in cli.model.asked if each.last_text == "forbidden words"]
    return [len(asked), len(cli.results)]


@prompt_and_stop_hooks.must("11", sees="second")
def a_stop_hook_can_go_on(cli: RawCli) -> Json:
    """`Stop` with `block` continues the turn."""
    return cli.result.get("result")


# --- Hooks that fail --------------------------------------------------------------------


async def _broken_hook(stage: Stage, **fields: Json) -> RawCli:
    async with stage.cli(
        _write(stage, "guarded"),
        say("done"),
        answers={"hook_callback": lambda _: Refusal("the hook is broken")},
    ) as cli:
        await cli.initialize(hooks=_hooks("PreToolUse", **fields))
        await cli.prompt("go")
    return cli


@scene
async def broken_hook(stage: Stage) -> RawCli:
    return await _broken_hook(stage)


@broken_hook.canary("11", sees=True, so="a guard that raises answers `deny`")
def a_broken_hook_lets_the_tool_run(cli: RawCli) -> bool:
    """A hook that answers with an error does not stop its tool."""
    return _exists(cli, "guarded")


@scene
async def broken_hook_that_blocks(stage: Stage) -> RawCli:
    return await _broken_hook(stage, onFailure="block")


@broken_hook_that_blocks.feature(
    "11", sees=False, absent=True, without="a guard that raises answers `deny`"
)
def on_failure_block_holds_the_tool_back(cli: RawCli) -> bool:
    """With `onFailure: block` a hook that answers with an error refuses the tool."""
    return _exists(cli, "guarded")


@scene
async def slow_hook(stage: Stage) -> RawCli:
    async with stage.cli(
        _write(stage, "guarded"), say("done"), answers={"hook_callback": hold}
    ) as cli:
        await cli.initialize(hooks=_hooks("PreToolUse", timeout=1))
        await cli.prompt("go")
    return cli


@slow_hook.must("11", sees=[True, True])
def a_hook_out_of_time_is_cancelled(cli: RawCli) -> list[bool]:
    """A hook that exceeds its timeout is cancelled, and the turn ends."""
    asked = {frame["request_id"] for frame in cli.asked("hook_callback")}
    cancelled = {frame["request_id"] for frame in cli.of("control_cancel_request")}
    return [bool(asked) and asked <= cancelled, bool(cli.results)]


@slow_hook.feature("11", sees=False, absent=True, without="guards answer before their timeout")
def a_hook_out_of_time_refuses_the_tool(cli: RawCli) -> bool:
    """A `PreToolUse` hook that exceeds its timeout refuses the tool."""
    return _exists(cli, "guarded")


# --- A hook and a permission request at once --------------------------------------------


@scene
async def hook_and_question(stage: Stage) -> RawCli:
    allowed = {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}
    async with stage.cli(
        _write(stage, "raced"), say("done"), answers={"can_use_tool": hold, "hook_callback": hold}
    ) as cli:
        await cli.initialize(hooks=_hooks("PermissionRequest"))
        cli.post("go")
        hook = await cli.wait(asks("hook_callback"))
        await cli.wait(asks("can_use_tool"))
        cli.answer(hook, {"hookSpecificOutput": allowed})
        await cli.wait(is_type("result"))
    return cli


@hook_and_question.must("9", sees=[True, True])
def the_loser_of_two_questions_is_cancelled(cli: RawCli) -> list[bool]:
    """`PermissionRequest` and `can_use_tool` are sent together; the slower one is cancelled."""
    question = cli.asked("can_use_tool")[0]["request_id"]
    cancelled = [frame["request_id"] for frame in cli.of("control_cancel_request")]
    return [question in cancelled, _exists(cli, "raced")]


# --- DeferralCheck --------------------------------------------------------------------------

SESSION = uuid_of(5)


@scene
async def deferred_tool(stage: Stage) -> tuple[RawCli, RawCli]:
    guarded = "--allowedTools=Write"
    async with stage.cli(
        _write(stage, "deferred"),
        say("done"),
        flags=[guarded, f"--session-id={SESSION}"],
        answers={"hook_callback": lambda _: _decision("defer")},
    ) as first:
        await first.initialize(hooks=_hooks("PreToolUse"))
        await first.prompt("go")
    # The second CLI gets no `initialize`, so it has no hooks when it resumes.
    async with stage.cli(say("resumed"), flags=[guarded, f"--resume={SESSION}"]) as second:
        await second.wait(is_type("result"))
    return first, second


@deferred_tool.feature(
    "C2",
    sees=["tool_deferred", "t_deferred"],
    absent=[None, None],
    without="requests are kept open",
)
def a_hook_can_put_a_tool_off(seen: tuple[RawCli, RawCli]) -> list[Json]:
    """`defer` ends the turn, and the result names the deferred tool."""
    result = seen[0].results[0]
    return [
        result.get("terminal_reason") if "deferred_tool_use" in result else None,
        part(result, "deferred_tool_use").get("id"),
    ]


@deferred_tool.canary("C2", sees=True, so="requests are kept open; `defer` is not used")
def a_deferred_tool_runs_before_its_hooks_are_there(seen: tuple[RawCli, RawCli]) -> bool:
    """A resumed CLI runs the deferred tool before `initialize`, without its hooks."""
    return _exists(seen[1], "deferred")


SCENES = (
    one_hook_on_each_event,
    decisions_of_hooks,
    hooks_that_disagree,
    prompt_and_stop_hooks,
    broken_hook,
    broken_hook_that_blocks,
    slow_hook,
    hook_and_question,
    deferred_tool,
)
