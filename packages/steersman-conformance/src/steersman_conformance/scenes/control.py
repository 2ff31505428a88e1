"""Section 7: the control requests that a running CLI answers."""

from __future__ import annotations

from steersman._json import Json, JsonDict
from steersman.testing.script import call, say, stall
from steersman_conformance.checks import Scene, scene
from steersman_conformance.frames import Frame, part
from steersman_conformance.raw import RawCli
from steersman_conformance.stage import Stage, uuid_of

__all__ = ["SCENES"]

Answered = dict[str, Frame]
"""The answers of a CLI, by control request."""


# --- All control requests ---------------------------------------------------------------

MUST_BE_SERVED: dict[str, JsonDict] = {
    "mcp_status": {},
    "set_max_thinking_tokens": {"max_thinking_tokens": 1000},
    "get_context_usage": {},
    "get_settings": {},
    "mcp_set_servers": {"servers": {}},
    "apply_flag_settings": {"settings": {}},
    "reload_plugins": {},
    "generate_session_title": {"description": "a test"},
}

MAY_BE_SERVED: dict[str, JsonDict] = {
    "list_models": {},
    "get_session_cost": {},
    "get_usage": {},
    "get_binary_version": {},
    "get_hooks_listing": {},
    "list_permission_rules": {},
    "reload_skills": {},
    "reload_output_styles": {},
    "background_tasks": {},
    "stop_task": {"task_id": "nobody"},
    "rename_session": {"title": "renamed"},
    "read_file": {"path": "there.txt"},
    "file_suggestions": {"query": "the"},
}


@scene
async def vocabulary(stage: Stage) -> Answered:
    (stage.box.project / "there.txt").write_text("here")
    async with stage.cli() as cli:
        await cli.initialize()
        await cli.prompt("hello")
        return {
            subtype: await cli.ask(subtype, **fields)
            for subtype, fields in {**MUST_BE_SERVED, **MAY_BE_SERVED}.items()
        }


def _state_what_is_served(target: Scene[Answered]) -> None:
    for subtype in MUST_BE_SERVED:
        target.must("7", sees="success")(_served(subtype))
    for subtype in MAY_BE_SERVED:
        refused = "`RequestRefused` is raised"
        target.feature("7", sees="success", absent="error", without=refused)(_served(subtype))


def _served(subtype: str) -> Json:
    def look(answers: Answered) -> Json:
        return answers[subtype].get("subtype")

    look.__name__ = f"{subtype}_is_served"
    look.__doc__ = f"The control request `{subtype}` is answered."
    return look


_state_what_is_served(vocabulary)


# --- Models and modes -------------------------------------------------------------------


@scene
async def other_models(stage: Stage) -> tuple[RawCli, Answered]:
    answers: Answered = {}
    async with stage.cli() as cli:
        await cli.initialize()
        await cli.prompt("default")
        answers["haiku"] = await cli.ask("set_model", model="claude-haiku-4-5")
        await cli.prompt("haiku")
        answers["typo"] = await cli.ask("set_model", model="claude-no-such-model")
        answers["default"] = await cli.ask("set_model", model=None)
        await cli.prompt("default again")
    return cli, answers


@other_models.must("7", sees=[True, True, False])
def set_model_is_used_at_once(seen: tuple[RawCli, Answered]) -> list[bool]:
    """`set_model` affects the next request to the model, and null restores the default."""
    first, haiku, again = (request.model for request in seen[0].model.asked)
    return ["haiku" in haiku, first == again, "haiku" in first]


@other_models.canary("19.17", sees="success", so="the next turn fails with an error")
def a_misspelt_model_is_accepted(seen: tuple[RawCli, Answered]) -> Json:
    """`set_model` with an unknown name succeeds."""
    return seen[1]["typo"].get("subtype")


@other_models.feature("7", absent=False, without="the answer contains no model")
def set_model_tells_what_the_name_means(seen: tuple[RawCli, Answered]) -> bool:
    """The answer to `set_model` names the current model."""
    return bool(part(seen[1]["haiku"], "response").get("model"))


@scene
async def other_modes(stage: Stage) -> tuple[RawCli, Answered]:
    modes = ("acceptEdits", "plan", "dontAsk", "default", "bypassPermissions", "no-such-mode")
    path = str(stage.box.project / "written")
    async with stage.cli(call("Write", file_path=path, content="x")) as cli:
        await cli.initialize()
        answers = {mode: await cli.ask("set_permission_mode", mode=mode) for mode in modes}
        await cli.ask("set_permission_mode", mode="acceptEdits")
        await cli.prompt("write")
    return cli, answers


@other_modes.must("7", sees=["success", "success", "success", "success"])
def permission_modes_can_be_set(seen: tuple[RawCli, Answered]) -> list[Json]:
    """`set_permission_mode` accepts acceptEdits, plan, dontAsk and default."""
    modes = ("acceptEdits", "plan", "dontAsk", "default")
    return [seen[1][mode].get("subtype") for mode in modes]


@other_modes.must("7", sees="error")
def bypass_is_refused_unless_launched_for(seen: tuple[RawCli, Answered]) -> Json:
    """`bypassPermissions` is refused in a session that was not started for it."""
    return seen[1]["bypassPermissions"].get("subtype")


@other_modes.feature("7", sees="error", absent="success", without="we refuse an unknown mode")
def unknown_modes_are_refused(seen: tuple[RawCli, Answered]) -> Json:
    """An unknown permission mode is refused."""
    return seen[1]["no-such-mode"].get("subtype")


@other_modes.must("12", sees=[0, "x"])
def accept_edits_does_not_ask(seen: tuple[RawCli, Answered]) -> list[Json]:
    """With acceptEdits a file in the project is written without a permission request."""
    cli, _ = seen
    written = cli.project / "written"
    return [len(cli.asked("can_use_tool")), written.read_text() if written.exists() else None]


# --- While a turn runs ------------------------------------------------------------------


@scene
async def requests_during_a_turn(stage: Stage) -> tuple[RawCli, Answered]:
    async with stage.cli(say("slow") + stall() + say(" turn")) as cli:
        await cli.initialize()
        cli.post("go")
        await cli.asked_the_model(1)
        ids = {name: cli.request("mcp_status") for name in ("one", "two", "three")}
        answers = {name: await cli.answered(each) for name, each in ids.items()}
        answers["stray"] = await cli.ask(
            "mcp_message", server_name="nobody", message={"jsonrpc": "2.0", "method": "x"}
        )
        before = len(cli.results)
        await cli.release()
        await cli.wait(lambda frame: frame.get("type") == "result")
        answers["before"] = {"results": before}
    return cli, answers


@requests_during_a_turn.must("7", sees=[["success"] * 3, 0])
def requests_are_served_during_a_turn(seen: tuple[RawCli, Answered]) -> list[Json]:
    """Control requests are answered while a turn runs, several at once."""
    _, answers = seen
    served = [answers[name].get("subtype") for name in ("one", "two", "three")]
    return [served, answers["before"]["results"]]


@requests_during_a_turn.canary("7", sees="success", so="we check the name of the server")
def messages_of_unknown_servers_are_acknowledged(seen: tuple[RawCli, Answered]) -> Json:
    """`mcp_message` for an unknown server is answered with success."""
    return seen[1]["stray"].get("subtype")


# --- `side_question`, servers, files, the end -------------------------------------------


@scene
async def side_question(stage: Stage) -> Answered:
    async with stage.cli(say("main"), stall()) as cli:
        await cli.initialize()
        await cli.prompt("hello")
        answered = await cli.ask("side_question", question="what was said?")
    return {"answered": answered}


@side_question.feature("7", absent="error", without="`RequestRefused` is raised", sees="success")
def side_questions_are_answered(seen: Answered) -> Json:
    """`side_question` gets an answer of the model outside of the conversation."""
    return seen["answered"].get("subtype")


@scene
async def servers_set_later(stage: Stage) -> tuple[RawCli, Answered]:
    server = {"late": {"type": "sdk", "name": "late"}}
    async with stage.cli(
        say("a"), call("mcp__late__work"), flags=["--allowedTools=mcp__late"]
    ) as cli:
        await cli.initialize()
        await cli.prompt("nothing yet")
        answer = await cli.ask("mcp_set_servers", servers=server)
        await cli.prompt("work")
    return cli, {"set": answer}


@servers_set_later.must("7", sees=[["late"], True])
def tool_servers_can_be_added(seen: tuple[RawCli, Answered]) -> list[Json]:
    """`mcp_set_servers` adds an in-process MCP server, which the next turn can use."""
    cli, answers = seen
    methods = [each["request"]["message"].get("method") for each in cli.asked("mcp_message")]
    return [part(answers["set"], "response").get("added"), "tools/call" in methods]


@scene
async def rewound_files(stage: Stage) -> tuple[RawCli, Answered]:
    path = stage.box.project / "kept.txt"
    path.write_text("before")
    uuid, answers = uuid_of(1), dict[str, Frame]()
    env = {"CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "true"}
    async with stage.cli(
        call("Read", file_path=str(path)),
        call("Write", file_path=str(path), content="after"),
        say("written"),
        env=env,
    ) as cli:
        await cli.initialize()
        await cli.prompt("write", uuid=uuid)
        written = path.read_text()
        answers["dry"] = await cli.ask("rewind_files", user_message_id=uuid, dry_run=True)
        answers["real"] = await cli.ask("rewind_files", user_message_id=uuid)
        answers["texts"] = {"written": written, "rewound": path.read_text()}
    return cli, answers


@rewound_files.feature(
    "7",
    sees=["after", True, "before"],
    absent=["after", None, "after"],
    without="the request fails",
)
def files_can_be_rewound(seen: tuple[RawCli, Answered]) -> list[Json]:
    """`rewind_files` restores the files to their state before a prompt."""
    texts, dry = seen[1]["texts"], part(seen[1]["dry"], "response")
    return [texts["written"], dry.get("canRewind"), texts["rewound"]]


@scene
async def ended_session(stage: Stage) -> int | None:
    async with stage.cli() as cli:
        await cli.initialize()
        cli.request("end_session")
        return await cli.wait_exited()


@ended_session.feature("7", sees=0, absent=None, without="the CLI exits at the end of its input")
def end_session_ends_the_cli(status: int | None) -> int | None:
    """`end_session` makes the CLI exit with status 0."""
    return status


SCENES = (
    vocabulary,
    other_models,
    other_modes,
    requests_during_a_turn,
    side_question,
    servers_set_later,
    rewound_files,
    ended_session,
)
