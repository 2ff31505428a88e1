"""The stock CLI on the scripted model, by hand: no part of the SDK stands between them."""

from __future__ import annotations

import json
import os
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from steersman.errors import CliNotFound
from steersman.testing.model import ScriptedModel
from steersman.testing.sandbox import CliSandbox, find_stock_cli
from steersman.testing.script import Script, call, calls, cut, fail, say, stall, think, when

pytestmark = pytest.mark.live

FLAGS = (
    *("--output-format", "stream-json", "--verbose", "--input-format", "stream-json"),
    *("--include-partial-messages", "--setting-sources=", "--allowedTools", "Bash,Write"),
)
TIMEOUT = 30.0

Frame = dict[str, Any]


LIVE_CLI = "STEERSMAN_LIVE_CLI"
"""Names another CLI for the live tests; `python -m tests.releases` runs them on many."""


def find_live_cli(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the CLI that the variable names, or else that of the official wheel."""
    named = environ.get(LIVE_CLI)
    if named is None:
        return find_stock_cli()
    if not os.access(named, os.X_OK):
        raise CliNotFound([f"{named} ({LIVE_CLI})"])
    return Path(named)


def stock_cli(
    find: Callable[[], Path] = find_live_cli, environ: Mapping[str, str] = os.environ
) -> Path:
    """Find the CLI, or skip the test; where CI runs, a test that cannot run has failed."""
    try:
        return find()
    except CliNotFound as error:
        if environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


class Conversation:
    """Lines to and from one CLI; a thread drains its output, so that nothing can block."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.frames: queue.Queue[Frame | None] = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def send(self, frame: Frame) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(frame).encode() + b"\n")
        self.process.stdin.flush()

    def prompt(self, text: str) -> list[Frame]:
        """Send a prompt and give all frames up to its result."""
        self.send({"type": "user", "message": {"role": "user", "content": text}})
        return self.frames_until(lambda frame: frame["type"] == "result")

    def frames_until(self, is_last: Callable[[Frame], bool]) -> list[Frame]:
        seen: list[Frame] = []
        while not seen or not is_last(seen[-1]):
            frame = self.frames.get(timeout=TIMEOUT)
            assert frame is not None, f"the CLI ended after {seen}"
            seen.append(frame)
        return seen

    def end(self) -> int:
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(TIMEOUT)

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.frames.put(json.loads(line))
        self.frames.put(None)


@contextmanager
def conversation(
    box: CliSandbox, model: ScriptedModel, extra: Mapping[str, str] | None = None
) -> Iterator[Conversation]:
    with subprocess.Popen(
        [stock_cli(), *FLAGS],
        env=box.env(model.url, extra),
        cwd=box.project,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        talk = Conversation(process)
        try:
            yield talk
        finally:
            process.kill()
            talk.reader.join(TIMEOUT)


def deltas(frames: list[Frame]) -> list[str]:
    events = [frame["event"] for frame in frames if frame["type"] == "stream_event"]
    return [
        event["delta"]["text"]
        for event in events
        if event["type"] == "content_block_delta" and event["delta"]["type"] == "text_delta"
    ]


def blocks(frames: list[Frame], type_: str) -> list[Frame]:
    return [
        block
        for frame in frames
        if frame["type"] in {"assistant", "user"} and isinstance(frame["message"]["content"], list)
        for block in frame["message"]["content"]
        if block["type"] == type_
    ]


def ending(frames: list[Frame]) -> tuple[Any, ...]:
    result = frames[-1]
    return result["subtype"], result["is_error"], result.get("result")


def test_text_streams_in_the_chunks_of_the_script_and_costs_something() -> None:
    script = Script(say("Hello there", chunks=["Hel", "lo ", "there"]), strict=True)
    with CliSandbox() as box, ScriptedModel(script) as model, conversation(box, model) as talk:
        frames = talk.prompt("greet me")
        status = talk.end()

    assert deltas(frames) == ["Hel", "lo ", "there"]
    assert ending(frames) == ("success", False, "Hello there")
    assert frames[-1]["total_cost_usd"] > 0
    assert status == 0
    script.assert_complete()


def test_tools_run_side_by_side_in_the_project() -> None:
    with CliSandbox() as box:
        write = call("Write", file_path=str(box.project / "a.txt"), content="written")
        script = Script(
            think("hm")
            + say("I do both")
            + calls(write, call("Bash", command="pwd", id_="bash_1")),
            lambda request: say(request.tool_results["bash_1"]),
            strict=True,
        )
        with ScriptedModel(script) as model, conversation(box, model) as talk:
            frames = talk.prompt("do it")

        assert ending(frames) == ("success", False, str(box.project))
        assert (box.project / "a.txt").read_text() == "written"
    assert [block["thinking"] for block in blocks(frames, "thinking")] == ["hm"]
    assert [block["name"] for block in blocks(frames, "tool_use")] == ["Write", "Bash"]
    script.assert_complete()


needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@needs_proc
def test_the_cli_lives_in_the_environment_of_the_sandbox_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "canary")
    monkeypatch.setenv("STEERSMAN_CANARY", "canary")
    script = Script(
        call("Bash", command="env", id_="bash_1"), lambda r: say(r.tool_results["bash_1"])
    )
    with CliSandbox() as box, ScriptedModel(script) as model, conversation(box, model) as talk:
        environ = Path(f"/proc/{talk.process.pid}/environ").read_text().rstrip("\0")
        frames = talk.prompt("show me")
        expected = box.env(model.url)

    assert dict(line.split("=", 1) for line in environ.split("\0")) == expected
    assert "canary" not in frames[-1]["result"]


@needs_proc
def test_every_connection_of_the_cli_goes_to_loopback() -> None:
    script = Script(stall())
    with CliSandbox() as box, ScriptedModel(script) as model, conversation(box, model) as talk:
        talk.send({"type": "user", "message": {"role": "user", "content": "wait"}})
        model.wait_for_request(1, TIMEOUT)

        addresses = remote_addresses(talk.process.pid)

    assert addresses == {"127.0.0.1"}


def test_nothing_is_sent_through_the_proxies() -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy, CliSandbox() as box:
        proxy.settimeout(0)
        url = "http://127.0.0.1:{1}".format(*proxy.getsockname())
        proxies = {f"{kind}_PROXY": url for kind in ("HTTP", "HTTPS", "ALL")}
        lower = {name.lower(): url for name in proxies}
        with ScriptedModel() as model, conversation(box, model, proxies | lower) as talk:
            frames = talk.prompt("hello")
            talk.end()

        assert ending(frames) == ("success", False, "Echo: hello")
        with pytest.raises(BlockingIOError):
            proxy.accept()


def target_of(link: Path) -> list[str]:
    try:
        return [str(link.readlink())]
    except FileNotFoundError:
        # Closed while we looked.
        return []


def remote_addresses(pid: int) -> set[str]:
    """The far ends of the TCP connections that a process has open."""
    links = [link for each in Path(f"/proc/{pid}/fd").iterdir() for link in target_of(each)]
    sockets = {link.removeprefix("socket:[").rstrip("]") for link in links if "socket:" in link}
    tables = [Path(f"/proc/{pid}/net/{name}").read_text() for name in ("tcp", "tcp6")]
    rows = [line.split() for table in tables for line in table.splitlines()[1:]]
    remotes = [row[2].split(":")[0] for row in rows if row[9] in sockets]
    return {readable(remote) for remote in remotes if int(remote, 16)}


def readable(address: str) -> str:
    """The kernel's spelling of an IPv4 address (also inside an IPv6 one), as people write it."""
    return ".".join(str(each) for each in reversed(bytes.fromhex(address[-8:])))


def test_scenes_answer_several_prompts_of_one_session() -> None:
    script = Script(
        when("first", say("one")),
        when(
            "second", call("Bash", command="echo two", id_="b"), lambda r: say(r.tool_results["b"])
        ),
        strict=True,
    )
    with CliSandbox() as box, ScriptedModel(script) as model, conversation(box, model) as talk:
        results = [talk.prompt(text)[-1]["result"] for text in ("the second", "the first")]

    assert results == ["two", "one"]
    script.assert_complete()


def test_a_subagent_follows_its_branch() -> None:
    task = {"description": "look", "prompt": "look around", "subagent_type": "general-purpose"}
    script = Script(call("Agent", task, run_in_background=False), say("main done"), strict=True)
    script.branch("look around", call("Bash", command="echo seen"), say("found it"))
    with CliSandbox() as box, ScriptedModel(script) as model, conversation(box, model) as talk:
        frames = talk.prompt("look around for me")
        kinds = [request.kind for request in model.requests if request.kind]

    assert ending(frames) == ("success", False, "main done")
    assert kinds == ["main", "subagent", "subagent", "main"]
    script.assert_complete()


def test_a_busy_api_and_a_cut_stream_are_tried_again() -> None:
    script = Script(fail(529, retry_after=0), say("half") + cut(), say("whole"), strict=True)
    retries = {"CLAUDE_CODE_MAX_RETRIES": "3"}
    with (
        CliSandbox() as box,
        ScriptedModel(script) as model,
        conversation(box, model, retries) as talk,
    ):
        frames = talk.prompt("go")

    assert deltas(frames) == ["half", "whole"]
    assert ending(frames) == ("success", False, "whole")
    assert [f["error_status"] for f in frames if f.get("subtype") == "api_retry"] == [529, None]
    script.assert_complete()


def test_a_refused_request_fails_its_turn_and_not_the_next() -> None:
    script = Script(fail(400, "no"), say("yes"), strict=True)
    with CliSandbox() as box, ScriptedModel(script) as model, conversation(box, model) as talk:
        endings = [ending(talk.prompt("go")), ending(talk.prompt("go"))]

    assert endings == [("success", True, "API Error: 400 no"), ("success", False, "yes")]
    script.assert_complete()


@pytest.mark.parametrize("reason", ["max_tokens", "refusal"])
def test_an_answer_that_stops_early_is_continued_in_its_scene(reason: str) -> None:
    script = Script(when("go", say("half", stop_reason=reason), say("rest")), strict=True)
    with CliSandbox() as box, ScriptedModel(script) as model, conversation(box, model) as talk:
        frames = talk.prompt("go")

    assert ending(frames) == ("success", False, "rest")
    script.assert_complete()


def test_a_stalled_answer_can_be_interrupted_and_the_session_goes_on() -> None:
    script = Script(say("half") + stall(), say("after"), strict=True)
    interrupt = {"subtype": "interrupt"}
    with CliSandbox() as box, ScriptedModel(script) as model, conversation(box, model) as talk:
        talk.send({"type": "user", "message": {"role": "user", "content": "go"}})
        talk.frames_until(lambda frame: deltas([frame]) == ["half"])
        talk.send({"type": "control_request", "request_id": "1", "request": interrupt})
        interrupted = talk.frames_until(lambda frame: frame["type"] == "result")
        after = talk.prompt("and now?")

    assert interrupted[-1]["terminal_reason"] == "aborted_streaming"
    assert ending(after) == ("success", False, "after")
    script.assert_complete()


def test_side_questions_and_compaction_take_no_step() -> None:
    script = Script(say("one"), say("two"), say("three"), strict=True)
    question = {"subtype": "side_question", "question": "why?"}
    with CliSandbox() as box, ScriptedModel(script) as model, conversation(box, model) as talk:
        before = [talk.prompt("first")[-1]["result"], talk.prompt("second")[-1]["result"]]
        talk.send({"type": "control_request", "request_id": "1", "request": question})
        answered = talk.frames_until(lambda frame: frame["type"] == "control_response")
        compacted = talk.prompt("/compact")
        after = talk.prompt("third")[-1]["result"]

    assert (*before, after) == ("one", "two", "three")
    assert answered[-1]["response"]["response"]["response"] == "Echo: why?"
    assert [f["compact_result"] for f in compacted if "compact_result" in f] == ["success"]
    script.assert_complete()


def missing() -> Path:
    raise CliNotFound(["nowhere"])


def test_a_missing_cli_fails_the_test_where_ci_runs() -> None:
    with pytest.raises(pytest.fail.Exception, match="nowhere"):
        stock_cli(missing, {"CI": "true"})


def test_a_missing_cli_skips_the_test_elsewhere() -> None:
    with pytest.raises(pytest.skip.Exception, match="nowhere"):
        stock_cli(missing, {})


def test_another_cli_can_be_named_and_is_never_replaced(tmp_path: Path) -> None:
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)

    assert find_live_cli({LIVE_CLI: str(program)}) == program
    with pytest.raises(CliNotFound, match="nowhere"):
        find_live_cli({LIVE_CLI: str(tmp_path / "nowhere")})
