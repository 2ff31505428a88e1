"""A conversation is recorded once, without its secrets, and plays as it went."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from steersman import Agent, Allow, Deny, Hooks, TurnResult, tool
from steersman.cli.cassette import lint_files
from steersman.cli.main import main
from steersman.errors import CliExited, LaunchError, StartupError, TurnFailed, UsageError
from steersman.hooks import PreToolUse, Reply
from steersman.journal import Entry
from steersman.journal.files import Header, Record, Track, line_of
from steersman.ports import Channel, Launch, Receiver
from steersman.testing.cassettes import RULES, Cassette, Drifted, Recorder, Rule, read_cassette
from steersman.testing.cassettes.scrubbing import Finding, Scrubber, lint
from steersman.testing.script import Script, call, calls, say, stall, think
from steersman.testing.scripted.cli import ScriptedCLI
from steersman.transports.replay import ReplayTransport
from tests.samples import traces
from tests.testing.cassette_samples import Story, story_of, track_of

ROOT = Path(__file__).parents[2]
LIMIT = 10.0
IMPATIENT = 0.2

AWS_ID = "AKIA" + "IOSFODNN7EXAMPLE"
AWS_KEY = "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"
ANTHROPIC = "sk-ant-" + "api03-Zm9vYmFyYmF6cXV4"
GITHUB = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
SLACK = "xoxb-" + "2048-4096-abcdefghijkl"
GOOGLE = "AIza" + "SyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY"
TOKEN = "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmN"
BLOCK = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----"
RANDOM = "q9X2vT7mLp0ZrB4kWn8Y"


@tool
def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


def looking(reply: Any = None) -> Hooks:
    hooks = Hooks()

    @hooks.on(PreToolUse)
    async def look(event: PreToolUse) -> Any:
        return reply

    return hooks


STEPS = (
    think("let me see") + call("mcp__functions__add", a=2, b=3),
    calls(call("Write", file_path="a", content="1"), call("Bash", command="make")),
    say("It is 5.", chunks=3),
    say("And goodbye."),
)


@dataclass
class Ran:
    """What came of two prompts."""

    results: list[TurnResult]
    story: Story
    texts: list[str]


async def converse(
    transport: Any, prompts: tuple[str, ...] = ("2 + 3?", "bye"), **options: Any
) -> Ran:
    """Two prompts, with everything that can be asked on the way."""
    usual: dict[str, Any] = {
        "functions": [add],
        "hooks": looking(),
        "can_use_tool": lambda *_: Allow(),
    }
    agent = Agent(transport=transport, **{**usual, **options})
    async with asyncio.timeout(LIMIT), agent.session() as session:
        results, texts = list[TurnResult](), list[str]()
        for prompt in prompts:
            turn = await session.send(prompt)
            texts.append("".join([chunk async for chunk in turn.text()]))
            results.append(await turn)
            if not results[-1].is_success:
                break
    return Ran(results, await story_of(session), texts)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cassettes" / "sum.jsonl"


@pytest.fixture
async def recorded(path: Path) -> Ran:
    return await converse(Recorder(path, ScriptedCLI(Script(*STEPS, strict=True))))


def text_of(path: Path) -> str:
    return path.read_text()


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def rewrite(path: Path, *lines: bytes) -> None:
    path.write_bytes(b"".join(lines))


def without_ids(results: list[TurnResult]) -> list[tuple[Any, ...]]:
    return [
        (each.outcome, each.text, each.answer, each.cost_usd, each.usage, each.stop_reason)
        for each in results
    ]


# --- Playing ---------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["stub", "verify", "once"])
async def test_a_replay_is_the_same_conversation(mode: Any, path: Path, recorded: Ran) -> None:
    with Cassette(path, mode) as cassette:
        again = await converse(cassette)

    assert without_ids(again.results) == without_ids(recorded.results)
    assert again.texts == recorded.texts == ["It is 5.", "And goodbye."]
    assert again.story == recorded.story


async def test_stub_uses_the_recorded_answers(path: Path, recorded: Ran) -> None:
    cassette = Cassette(path, "stub")

    again = await converse(
        cassette, hooks=looking({"continue": False}), can_use_tool=lambda *_: Deny("no")
    )

    assert without_ids(again.results) == without_ids(recorded.results)
    assert cassette.drifts == ()


async def deny_commands(name: str, *_: Any) -> Allow | Deny:
    return Deny("not that") if name == "Bash" else Allow()


def adding(doc: str, sign: int = 1) -> Any:
    """Another tool of the same name."""

    def add(a: float, b: float) -> float:
        return a + sign * b

    add.__doc__ = doc
    return tool(add)


CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "permission": (
        {"can_use_tool": deny_commands},
        "the answer to the permission for Bash (toolu_",
    ),
    "hook": (
        {"hooks": looking(Reply(system_message="psst"))},
        "the answer to the PreToolUse hook hook_0 at mcp__functions__add differs",
    ),
    "tool": (
        {"functions": [adding("Add two numbers.", -1)]},
        "the answer to tools/call add of the MCP server functions differs",
    ),
    "schema": (
        {"functions": [adding("Sum up.")]},
        "the answer to tools/list of the MCP server functions differs",
    ),
    "greeting": ({"append_system_prompt": "Be brief."}, "the request initialize differs"),
    "options": ({"model": "opus"}, "the options differ"),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_verify_names_what_was_decided_otherwise(
    change: str, path: Path, recorded: Ran
) -> None:
    options, expected = CHANGES[change]
    cassette = Cassette(path, "verify")

    reason = await reason_of(converse(cassette, **options))

    assert expected in reason
    assert [drift.what.startswith(expected) for drift in cassette.drifts] == [True]


async def reason_of(conversation: Awaitable[Ran]) -> str:
    """Why it did not go as it should."""
    try:
        return (await conversation).results[-1].reason
    except StartupError as error:
        return str(error)


async def test_all_that_was_decided_otherwise_can_be_told(path: Path, recorded: Ran) -> None:
    cassette = Cassette(path, "verify", keep_going=True)

    again = await converse(cassette, can_use_tool=lambda *_: Deny("no"))

    assert without_ids(again.results) == without_ids(recorded.results)
    assert [drift.what.split(" (")[0] for drift in cassette.drifts] == [
        "the answer to the permission for Write",
        "the answer to the permission for Bash",
    ]


@pytest.mark.parametrize("mode", ["stub", "verify"])
async def test_another_prompt_fails_at_once_and_says_why(
    mode: Any, path: Path, recorded: Ran
) -> None:
    with pytest.raises(Drifted) as caught, Cassette(path, mode, patience=None) as cassette:
        again = await converse(cassette, ("2 + 3?", "good night"))

    assert [each.outcome for each in again.results] == ["completed", "failed"]
    assert isinstance(again.results[1].cause, CliExited)
    assert '"bye" became "good night"' in again.results[1].reason
    assert "prompt 2 differs from the tape" in str(caught.value)


async def test_one_shot_functions_say_it_too(path: Path, recorded: Ran) -> None:
    agent = Agent(transport=Cassette(path, "stub"), functions=[add], hooks=looking())

    with pytest.raises(TurnFailed, match="prompt 1 differs from the tape"):
        await agent.run("something else")


async def test_a_drift_is_told_before_what_it_broke(path: Path, recorded: Ran) -> None:
    with pytest.raises(Drifted) as caught, Cassette(path, "stub") as cassette:
        assert (await converse(cassette, ("something else",))).texts == ["It is 5."]

    assert isinstance(caught.value.__context__, AssertionError)


async def test_a_prompt_that_nobody_sends_is_waited_for_not_for_long(
    path: Path, recorded: Ran
) -> None:
    cassette = Cassette(path, "stub", patience=IMPATIENT)
    agent = Agent(transport=cassette, functions=[add], hooks=looking())

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("2 + 3?"))
        async for _ in session.journal():
            pass

    assert session.state == "failed"
    assert "the tape waits for prompt 2, and nothing came" in str(cassette.drifts[0])


async def test_a_session_that_ends_early_has_drifted(path: Path, recorded: Ran) -> None:
    with pytest.raises(Drifted, match="the tape waits for prompt 2"), Cassette(path) as cassette:
        await converse(cassette, ("2 + 3?",))


async def test_an_interrupt_is_played(path: Path) -> None:
    async def interrupt(transport: Any) -> Story:
        async with asyncio.timeout(LIMIT), Agent(transport=transport).session() as session:
            turn = await session.send("go")
            async for _ in turn.text():
                await turn.interrupt()
            assert (await turn).outcome == "interrupted"
            assert (await (await session.send("next"))).text == "fresh"
        return await story_of(session)

    script = Script(say("half a ") + stall() + say("thought"), say("fresh"))
    then = await interrupt(Recorder(path, ScriptedCLI(script)))

    with Cassette(path, "verify") as cassette:
        assert await interrupt(cassette) == then


async def test_a_crash_is_played(path: Path) -> None:
    async def crash(transport: Any, then: Callable[[], None]) -> TurnResult:
        agent = Agent(transport=transport, revive=False)
        async with asyncio.timeout(LIMIT), agent.session() as session:
            turn = await session.send("go")
            async for _ in turn.text():
                then()
            return await turn

    cli = ScriptedCLI(Script(say("half a ") + stall()))
    first = await crash(Recorder(path, cli), lambda: cli.exit(134, "core dumped"))

    second = await crash(Cassette(path, "verify"), lambda: None)

    assert first.outcome == second.outcome == "failed"
    assert second.cause is not None
    assert second.cause.evidence.status == 134
    assert "core dumped" in second.cause.evidence.stderr_tail


async def test_a_session_that_is_closed_in_the_middle_is_played(path: Path) -> None:
    async def leave(transport: Any) -> Story:
        agent = Agent(transport=transport, close_grace=IMPATIENT)
        async with asyncio.timeout(LIMIT), agent.session() as session:
            turn = await session.send("go")
            async for _ in turn.text():
                break
        return await story_of(session)

    then = await leave(Recorder(path, ScriptedCLI(Script(say("half a ") + stall()))))

    with Cassette(path, "verify") as cassette:
        assert await leave(cassette) == then


async def test_a_journal_plays_like_a_cassette() -> None:
    async with Agent(transport=ScriptedCLI(Script(say("hello")))).session() as session:
        await (await session.send("hi"))
    records = [Record.of(each) async for each in session.journal() if isinstance(each, Entry)]

    replay = ReplayTransport([Track(Header(), tuple(records))], "verify")
    result = await Agent(transport=replay).run("hi")

    assert result.text == "hello"
    replay.check()


async def test_each_session_is_a_track(path: Path) -> None:
    async def ask(transport: Any, word: str) -> str:
        async with Agent(transport=transport).session() as session:
            return (await (await session.send(word))).text

    async def both(transport: Any) -> list[str]:
        async with asyncio.timeout(LIMIT):
            return list(await asyncio.gather(ask(transport, "one"), ask(transport, "two")))

    then = await both(Recorder(path, ScriptedCLI()))

    with Cassette(path, "verify") as cassette:
        assert await both(cassette) == then
    assert [track.header.track for track in read_cassette(path)] == [0, 1]


# --- Recording -------------------------------------------------------------------------


async def test_a_cassette_is_recorded_if_there_is_none(path: Path) -> None:
    cli = ScriptedCLI(Script(*STEPS, strict=True))
    first = Cassette(path, inner=cli)
    then = await converse(first)

    second = Cassette(path, inner=cli)
    again = await converse(second)

    assert (first.is_recording, second.is_recording) == (True, False)
    assert len(cli.launches) == 1
    assert again.story == then.story


async def test_recording_again_replaces_the_file(path: Path, recorded: Ran) -> None:
    await converse(Cassette(path, "record", inner=ScriptedCLI()))

    (track,) = read_cassette(path)
    assert b"It is 5." not in b"".join(record.line for record in track.records)


async def test_nothing_is_on_disk_before_the_cli_is_gone(path: Path) -> None:
    async with Agent(transport=Recorder(path, ScriptedCLI())).session() as session:
        await (await session.send("hi"))

        assert not path.parent.exists()
    assert [each.name for each in path.parent.iterdir()] == [path.name]


async def test_the_header_tells_versions_and_options_and_no_path(path: Path) -> None:
    agent = Agent(
        transport=Recorder(path, ScriptedCLI()),
        model="sonnet",
        cwd="/somewhere/private",
        allowed_tools=["Read(//somewhere/private/**)"],
        add_dirs=["/somewhere/else"],
        resume="c0ffee00-0000-4000-8000-000000000000",
    )
    async with agent.session():
        pass

    header = read_cassette(path)[0].header

    assert header.cli == "2.1.325"
    assert "--model=sonnet" in header.options
    assert any(each.startswith("--allowedTools=sha256:") for each in header.options)
    assert "somewhere" not in text_of(path).splitlines()[0]
    assert "c0ffee" not in text_of(path).splitlines()[0]


async def test_a_file_that_cannot_be_written_does_not_hurt_the_session(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    path = tmp_path / "file" / "sum.jsonl"

    with caplog.at_level(logging.ERROR):
        ran = await converse(Recorder(path, ScriptedCLI(Script(*STEPS))))

    assert [each.outcome for each in ran.results] == ["completed", "completed"]
    assert "could not be written" in caplog.text


async def test_a_cli_that_its_host_kills_is_killed_by_the_host_again(path: Path) -> None:
    deaf = Receiving()
    channel = await Recorder(path, ScriptedCLI()).open(Launch(("claude",)), deaf)

    channel.kill()
    await deaf.gone

    kinds = [record.kind for record in read_cassette(path)[0].records]
    assert kinds == ["input_ended", "exited"]


class Receiving:
    """Takes what comes and keeps nothing."""

    def __init__(self) -> None:
        self.gone: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.exited = self.gone.set_result

    def data_received(self, data: bytes) -> None:
        pass

    stderr_received = data_received


class Nowhere:
    """A place where nothing runs."""

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        raise LaunchError("nothing runs here")


async def test_a_cli_that_cannot_be_run_leaves_no_cassette(path: Path) -> None:
    with pytest.raises(LaunchError, match="nothing runs here"):
        await Agent(transport=Recorder(path, Nowhere())).run("hi")

    assert not path.parent.exists()


async def test_a_torn_cassette_plays_as_far_as_it_goes(path: Path, recorded: Ran) -> None:
    lines = lines_of(path)
    begun = next(n for n, line in enumerate(lines) if b'"And goodbye."' in line)
    rewrite(path, *lines[:begun], lines[begun][:-40])

    cassette = Cassette(path, "verify", patience=IMPATIENT)
    again = await converse(cassette)

    with pytest.raises(Drifted, match="the recording ends in the middle"):
        cassette.check()
    assert [each.outcome for each in again.results] == ["completed", "failed"]
    assert again.texts[0] == "It is 5."


async def test_a_cassette_that_is_broken_inside_is_refused(path: Path, recorded: Ran) -> None:
    lines = lines_of(path)
    rewrite(path, *lines[:5], b"{broken\n", *lines[6:])

    with pytest.raises(UsageError, match="entry 5 cannot be read"):
        Cassette(path)


@pytest.mark.parametrize(
    ("deed", "argument"),
    [
        (lambda path: Cassette(path, "play"), "mode"),  # type: ignore[arg-type]
        (lambda path: Cassette(path, "stub"), "path"),
        (lambda path: Cassette(path.parent, "record"), "path"),
        (lambda path: Recorder(path.parent), "path"),
        (lint, "path"),
        (lambda _: Rule("mine", "("), "pattern"),
        (lambda _: ReplayTransport([], "once"), "mode"),  # type: ignore[arg-type]
        (lambda _: ReplayTransport([], patience=-1), "patience"),
        (lambda _: ReplayTransport([], pace=True), "pace"),
    ],
)
def test_bad_input_is_named(deed: Callable[[Path], Any], argument: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        deed(tmp_path / "missing.jsonl")

    assert caught.value.argument == argument


# --- Secrets ---------------------------------------------------------------------------

SECRETS = [AWS_ID, AWS_KEY, ANTHROPIC, GITHUB, SLACK, GOOGLE, TOKEN, "MIIEowIBAAKCAQEA", RANDOM]


async def test_secrets_do_not_reach_the_file(path: Path) -> None:
    told = f"{ANTHROPIC} {GITHUB} {TOKEN} {SLACK} {GOOGLE} {AWS_ID} {BLOCK}"
    given = {"headers": {"X-Custom": RANDOM}, "env": {"AWS_SECRET_ACCESS_KEY": AWS_KEY}}
    script = Script(call("Fetch", given), say(told, chunks=40))
    agent = Agent(transport=Recorder(path, ScriptedCLI(script)), can_use_tool=lambda *_: Allow())

    async with asyncio.timeout(LIMIT), agent.session() as session:
        result = await (await session.send(f"Authorization: Bearer {TOKEN}"))

    assert result.text == told
    written = text_of(path)
    assert [secret for secret in SECRETS if secret in written] == []
    assert lint(path) == []


async def test_what_is_left_of_a_text_is_the_same_streamed_and_whole(path: Path) -> None:
    told = f"The key is {ANTHROPIC}, and no other."
    for chunks in (1, 2, 7, 30):
        agent = Agent(transport=Recorder(path, ScriptedCLI(Script(say(told, chunks=chunks)))))
        await agent.run("hi")

        async with Agent(transport=Cassette(path)).session() as session:
            turn = await session.send("hi")
            streamed = "".join([chunk async for chunk in turn.text()])
            result = await turn

        assert streamed == result.text == result.answer == "The key is [redacted], and no other."


async def test_secrets_that_a_cli_is_started_with_are_known(path: Path) -> None:
    agent = Agent(
        transport=Recorder(path, ScriptedCLI(Script(say("it is open sesame")))),
        env={"SHOP_PASSWORD": "open sesame"},
        mcp_servers={"far": {"type": "http", "url": "http://x", "headers": {"X-A": "tell no one"}}},
    )

    await agent.run("what is the password? tell no one")

    assert "open sesame" not in text_of(path)
    assert "tell no one" not in text_of(path)


async def test_rules_of_the_caller_make_runs_alike(path: Path, tmp_path: Path) -> None:
    rules = (*RULES, Rule("folder", r"/run/\d+", "/run/N"))
    await Agent(transport=Recorder(path, ScriptedCLI(), rules=rules)).run("read /run/17/a")

    with Cassette(path, "verify", rules=rules) as cassette:
        result = await Agent(transport=cassette).run("read /run/42/a")

    assert result.text.endswith("/run/N/a")
    assert "/run/17" not in text_of(path)


CANARIES: dict[str, tuple[str, Any]] = {
    "Anthropic key": ("text", f"my key: {ANTHROPIC}"),
    "AWS access key": ("text", f"id={AWS_ID}"),
    "secret in a variable": ("command", f"export AWS_SECRET_ACCESS_KEY={AWS_KEY}"),
    "authorization header": ("command", "curl -H 'Authorization: Basic dXNlcjpwYXNz'"),
    "private key": ("content", BLOCK),
    "GitHub token": ("text", GITHUB),
    "Slack token": ("text", SLACK),
    "Google key": ("url", f"https://maps/?key={GOOGLE}"),
    "JSON web token": ("text", TOKEN),
    "password in a URL": ("url", "postgres://app:hunter2@db/shop"),
    "secret in a field": ("content", '{"client_secret": "correct-horse"}'),
    "secret by its name": ("api_key", "correct horse"),
    "random value among variables or headers": ("headers", {"X-Custom": RANDOM}),
}


@pytest.mark.parametrize("kind", CANARIES)
def test_the_linter_finds_a_canary(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, value = CANARIES[kind]
    path = cassette_of(tmp_path, {"type": "assistant", "input": {name: value}})

    assert main(["cassette", "lint", str(path)]) == 1
    found = lint(path)
    assert [(each.line, each.rule) for each in found] == [(2, kind)]
    assert capsys.readouterr().out == f"{path}:2: {kind}: {found[0].excerpt}\n"
    assert len(found[0].excerpt) == 5


def test_the_linter_finds_a_secret_that_was_cut_in_two(tmp_path: Path) -> None:
    frames = [
        {
            "type": "stream_event",
            "event": {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": text},
            },
        }
        for text in ("no harm ", ANTHROPIC[:12], ANTHROPIC[12:20], ANTHROPIC[20:])
    ]

    path = cassette_of(tmp_path, *frames)

    assert lint(path) == [Finding(str(path), 3, "Anthropic key", "sk-a…")]


def test_the_linter_looks_into_what_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "cassette.jsonl"
    noise = Record(1, 1.0, "noise", b"\xff" + ANTHROPIC.encode())
    torn = line_of(Record(2, 1.0, "noise", GITHUB.encode()))[:-2]
    path.write_bytes(line_of(Header()) + line_of(noise) + torn)

    assert [each.rule for each in lint(path)] == ["Anthropic key", "GitHub token"]


@pytest.mark.parametrize("trace", traces())
def test_the_linter_raises_no_false_alarm(trace: str, tmp_path: Path) -> None:
    track = track_of(trace)
    path = tmp_path / "cassette.jsonl"
    path.write_bytes(line_of(track.header) + b"".join(map(line_of, track.records)))

    assert lint(path) == []
    assert read_cassette(path) == [track]


def test_the_command_fails_on_what_it_cannot_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clean = cassette_of(tmp_path, {"type": "assistant"})

    assert main(["cassette", "lint", str(clean)]) == 0
    assert main(["cassette", "lint", str(clean), str(tmp_path / "missing")]) == 2
    assert "missing" in capsys.readouterr().err


def cassette_of(folder: Path, *frames: dict[str, Any]) -> Path:
    path = folder / "cassette.jsonl"
    records = [
        Record(number, float(number), "message", json.dumps(frame).encode())
        for number, frame in enumerate(frames, start=1)
    ]
    path.write_bytes(line_of(Header()) + b"".join(map(line_of, records)))
    return path


def test_the_linter_passes_no_command_to_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a\x1b[2Jb\nc.jsonl"
    secret = "\x1b[2J" + "canary-in-a-field"
    path.write_bytes(line_of(Header()) + json.dumps({"kind": "x", "password": secret}).encode())
    (broken := tmp_path / "\x1b]0;owned\x07").write_text("\x1b[31m no cassette")

    status = lint_files([str(path), str(broken)])

    shown = capsys.readouterr()
    assert status == 2
    assert "\\x1b[2J" in shown.out
    assert not any(each in shown.out + shown.err for each in "\x1b\x07")
    assert shown.out.count("\n") == 1


@pytest.mark.parametrize("depth", [500, 900, 990, 5000])
def test_a_secret_is_found_and_removed_however_deeply_it_is_nested(
    depth: int, tmp_path: Path
) -> None:
    line = b"[" * depth + b'"sk-ant-api03-' + b"AbCdEfGhIj" * 4 + b'"' + b"]" * depth
    path = tmp_path / "deep.jsonl"
    path.write_bytes(line_of(Header()) + line + b"\n")

    assert lint(path)
    assert b"AbCdEfGhIj" not in Scrubber(RULES, ()).line(line)
