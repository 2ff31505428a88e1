"""Section 14: resuming and forking sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from steersman._json import Json, JsonDict
from steersman.testing.script import call, say
from steersman_conformance.checks import scene
from steersman_conformance.raw import RawCli
from steersman_conformance.stage import Stage, uuid_of

__all__ = ["SCENES"]

LONGEST_WAIT = 20.0
SHORT = 0.01

OURS, FORK, UNKNOWN = uuid_of(1), uuid_of(2), uuid_of(9)

CONTINUATIONS: dict[str, list[str]] = {
    "new": [f"--session-id={OURS}"],
    "resumed": [f"--resume={OURS}"],
    "continued": ["--continue"],
    "forked": [f"--resume={OURS}", "--fork-session"],
    "forked to": [f"--resume={OURS}", "--fork-session", f"--session-id={FORK}"],
}


@scene
async def going_on(stage: Stage) -> dict[str, RawCli]:
    seen: dict[str, RawCli] = {}
    for name, flags in CONTINUATIONS.items():
        async with stage.cli(flags=flags) as cli:
            await cli.initialize()
            await cli.prompt(f"in the {name}")
        seen[name] = cli
    return seen


@going_on.must("14", sees=[OURS, OURS])
def resume_and_continue_keep_the_id(seen: dict[str, RawCli]) -> list[Json]:
    """`--resume` and `--continue` keep the session id."""
    return [seen[name].result.get("session_id") for name in ("resumed", "continued")]


@going_on.must("14", sees=[True, FORK])
def a_fork_has_an_id_of_its_own(seen: dict[str, RawCli]) -> list[Json]:
    """`--fork-session` creates a new id, or uses that of `--session-id`."""
    made, given = (seen[name].result["session_id"] for name in ("forked", "forked to"))
    return [made not in (OURS, FORK), given]


@going_on.must("14", sees=[True] * 4)
def history_goes_along(seen: dict[str, RawCli]) -> list[bool]:
    """The model gets the earlier messages of a resumed session."""
    others = [name for name in CONTINUATIONS if name != "new"]
    return ["in the new" in str(seen[name].model.asked[0].body["messages"]) for name in others]


# --- What is refused --------------------------------------------------------------------

REFUSED: dict[str, list[str]] = {
    "id in use": [f"--session-id={OURS}"],
    "no such id": [f"--resume={UNKNOWN}"],
    "resume with an id": [f"--resume={OURS}", f"--session-id={FORK}"],
    "no uuid": ["--session-id=nonsense"],
}


@scene
async def refused_sessions(stage: Stage) -> dict[str, RawCli]:
    seen: dict[str, RawCli] = {}
    async with stage.cli(flags=CONTINUATIONS["new"]) as cli:
        await cli.initialize()
        await cli.prompt("mine")
    for name, flags in REFUSED.items():
        async with stage.cli(flags=flags) as cli:
            cli.request("initialize")
            await cli.wait_exited()
        seen[name] = cli
    return seen


@refused_sessions.must("14", sees={name: [1, True] for name in REFUSED})
def bad_session_ids_are_refused(seen: dict[str, RawCli]) -> JsonDict:
    """With an id in use, an unknown or a malformed id the CLI exits with status 1."""
    return {name: [cli.status, bool(cli.stderr.strip())] for name, cli in seen.items()}


@refused_sessions.must("2", sees=[0, "error_during_execution", 0])
def a_refused_resume_also_writes_a_result(seen: dict[str, RawCli]) -> list[Json]:
    """With an unknown id to resume there is an empty result and no answer to `initialize`."""
    cli = seen["no such id"]
    answers = len(cli.of("control_response"))
    return [answers, cli.result.get("subtype"), cli.result.get("num_turns")]


# --- Transcripts ------------------------------------------------------------------------


@scene
async def mirrored_session(stage: Stage) -> RawCli:
    async with stage.cli(flags=["--session-mirror"]) as cli:
        await cli.initialize()
        await cli.prompt("hello")
    return cli


@mirrored_session.feature("14", without="the transcript is read from its file")
def the_transcript_can_be_mirrored(cli: RawCli) -> bool:
    """`--session-mirror` sends the entries of the transcript when they are written."""
    return any(frame.get("entries") for frame in cli.of("transcript_mirror"))


@scene
async def unkept_session(stage: Stage) -> RawCli:
    async with stage.cli(flags=["--no-session-persistence"]) as cli:
        await cli.initialize()
        await cli.prompt("hello")
    return cli


@unkept_session.must("14", sees=[])
def a_session_can_be_left_unwritten(cli: RawCli) -> list[str]:
    """`--no-session-persistence` leaves no transcript."""
    config = cli.project.parent / "config"
    return [path.name for path in config.glob("projects/*/*.jsonl")]


@scene
async def cut_history(stage: Stage) -> RawCli:
    async with stage.cli(say("one"), say("two"), flags=[f"--session-id={OURS}"]) as first:
        await first.initialize()
        await first.prompt("first")
        await first.prompt("second")
    at = first.of("assistant")[0]["uuid"]
    async with stage.cli(flags=[f"--resume={OURS}", f"--resume-session-at={at}"]) as cli:
        await cli.initialize()
        await cli.prompt("third")
    return cli


@cut_history.must("14", sees=[OURS, True, False])
def history_can_be_cut(cli: RawCli) -> list[Json]:
    """`--resume-session-at` resumes from an earlier message, with the same id."""
    text = str(cli.model.asked[0].body["messages"])
    return [cli.result.get("session_id"), "'one'" in text, "'two'" in text]


@scene
async def killed_in_a_tool(stage: Stage) -> RawCli:
    started = stage.box.project / "started"
    command = f"touch {started}; sleep 60"
    flags = [f"--session-id={OURS}", "--allowedTools=Bash"]
    async with stage.cli(call("Bash", command=command), flags=flags) as first:
        await first.initialize()
        first.post("xyzzy")
        await first.wait(lambda frame: frame.get("type") == "assistant")
        # A CLI that is killed before it has saved the conversation leaves nothing to resume.
        await _until(lambda: started.exists() and _has_written(stage.box.config, "xyzzy"))
        await first.kill()
    async with stage.cli(flags=[f"--resume={OURS}"]) as cli:
        await cli.initialize()
        await cli.prompt("what now?")
    return cli


@killed_in_a_tool.must("14", sees=[1, True, "Echo: what now?"])
def a_killed_session_can_be_resumed(cli: RawCli) -> list[Json]:
    """A session whose CLI was killed during a tool can be resumed, and nothing is rerun."""
    text = "xyzzy" in str(cli.model.asked[0].body["messages"])
    return [len(cli.model.asked), text, cli.result.get("result")]


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(LONGEST_WAIT):
        while not is_so():  # noqa: ASYNC110 - other processes set no events
            await asyncio.sleep(SHORT)


def _has_written(config: Path, text: str) -> bool:
    transcripts = config.glob("projects/*/*.jsonl")
    return any(text in each.read_text(encoding="utf-8", errors="replace") for each in transcripts)


SCENES = (
    going_on,
    refused_sessions,
    mirrored_session,
    unkept_session,
    cut_history,
    killed_in_a_tool,
)
