"""Compares the scripted CLI with recordings of the stock CLI, for the same lines of the host.

The prompts of the recordings contain the script of the model, so they can be played again.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from steersman.ports import Launch
from steersman.testing.request import ModelRequest
from steersman.testing.script import Script, Step, call, echo, fail, say, stall, step, think
from steersman.testing.scripted.cli import ScriptedCLI
from tests.samples import TRACES, Frame, dialogue

RECORDED = re.compile(r"SCRIPT:(\[.*\])", re.DOTALL)

AGREEING = [
    "api_400",
    "api_401",
    "api_404_model",
    "api_529_gives_up",
    "api_bad_tool_json",
    "api_max_tokens",
    "api_refusal",
    "control_unknown_and_malformed",
    "handshake_bare",
    "handshake_one_sdk_server",
    "hook_continue_false",
    "hook_interrupt_pending",
    "hook_pre_defer",
    "interrupt_bash",
    "interrupt_before_first_byte",
    "interrupt_idle",
    "interrupt_mid_stream",
    "max_turns",
    "multi_turn_tools",
    "partial_messages",
    "perm_allow",
    "perm_deny",
    "perm_deny_interrupt",
    "perm_no_callback",
    "perm_pending_then_interrupt",
    "queue_during_permission",
    "queue_during_turn",
    "queue_interrupt",
    "queue_priority_now",
    "queue_two_messages",
    "replay_user_messages",
    "session_resume_fork_continue.1new",
    "session_resume_fork_continue.2resume",
    "session_resume_fork_continue.4fork",
    "set_model",
    "structured_output",
    "user_duplicate_uuid",
    "user_should_query_false",
]

UNSPOKEN = frozenset({"thinking_tokens", "background_tasks_changed", "commands_changed"})
"""System frames that the scripted CLI leaves out."""


@pytest.mark.parametrize("trace", AGREEING)
async def test_it_says_what_the_stock_cli_said(trace: str) -> None:
    async with asyncio.timeout(5):
        said = await Rehearsal(trace).play()

    assert said == list(shape_of(spoken(trace)))


class Rehearsal:
    """Writes the recorded lines of the host, each after the CLI's lines that preceded it."""

    def __init__(self, trace: str) -> None:
        self.said: list[Frame] = []
        self.status: int | None = None
        self._trace = trace
        self._grew = asyncio.Event()
        self._ids: dict[str, str] = {}
        self._gate = asyncio.Event()
        self._cli = ScriptedCLI(Script(*[self._answer] * 99), tools={"Bash": self._bash})
        self._scripts: dict[int, Iterator[Step]] = {}

    async def play(self) -> list[tuple[str, ...]]:
        head = json.loads((TRACES / f"{self._trace}.jsonl").read_text().split("\n")[0])
        launch = Launch(("claude", *head["argv"]), env=head["env"], cwd="/workspace/project")
        channel = await self._cli.open(launch, self)
        heard = 0
        for direction, frame in dialogue(self._trace):
            if direction == "cli>sdk":
                heard += len(list(shape_of([frame])))
                self._learn(frame)
            elif direction == "sdk>cli":
                await self._until(heard)
                channel.write(json.dumps(self._mine(frame)).encode() + b"\n")
            elif frame.get("event") == "stdin_eof":
                await self._until(heard)
                channel.end_input()
        await self._until_gone()
        return list(shape_of(self.said))

    # From the scripted CLI

    def data_received(self, data: bytes) -> None:
        self.said += map(json.loads, data.splitlines())
        self._grew.set()

    def stderr_received(self, data: bytes) -> None:
        pass

    def exited(self, status: int) -> None:
        self.status = status
        self._grew.set()

    async def _until(self, count: int) -> None:
        await self._while(lambda: len(list(shape_of(self.said))) < count)

    async def _until_gone(self) -> None:
        await self._while(lambda: self.status is None)

    async def _while(self, is_waiting: Callable[[], bool]) -> None:
        while is_waiting():
            self._grew.clear()
            for _ in range(30):
                await asyncio.sleep(0)
            if not self._grew.is_set() and is_waiting():
                # It waits for time to pass, as the model or a tool did then.
                self._gate.set()
                self._cli._stage.release()

    # The host's lines, with the ids of today

    def _learn(self, frame: Frame) -> None:
        if frame["type"] == "control_request":
            self._ids.setdefault(frame["request_id"], str(len(self._ids)))

    def _mine(self, frame: Frame) -> Frame:
        if frame.get("type") == "control_response":
            number = int(self._ids.get(frame["response"]["request_id"], -1))
            asked = [each["request_id"] for each in self.said if each["type"] == "control_request"]
            frame["response"]["request_id"] = asked[number] if number >= 0 else "unknown"
        return frame

    # The model and the tools of the recording

    def _answer(self, request: ModelRequest) -> Step:
        found = RECORDED.search(request.last_text)
        if found is None:
            return echo(request)
        # The same prompt may come twice: then it is played from its beginning again.
        key = json.dumps(request.body["messages"]).rindex(json.dumps(found[1])[1:-1])
        steps = self._scripts.get(key)
        if steps is None:
            steps = self._scripts[key] = map(read_step, json.loads(found[1]))
        return next(steps, None) or echo(request)

    async def _bash(self, given: dict[str, Any]) -> str:
        if "sleep" in given["command"]:
            self._gate.clear()
            await self._gate.wait()
        return ""


def read_step(recorded: dict[str, Any]) -> Step:
    """One answer of the recorder's model."""
    failure = recorded.get("fail")
    if failure is not None:
        return fail(failure["status"], failure["message"], once=False)
    parts = [piece for block in recorded["blocks"] for piece in read_block(block, recorded)]
    waiting = [stall()] if "pre" in recorded else []
    return step(*waiting, *parts, stop_reason=recorded.get("stop"))


def read_block(block: dict[str, Any], recorded: dict[str, Any]) -> list[Step]:
    if block["t"] == "tool":
        return [call(block["name"], block.get("raw", block["input"]))]
    if block["t"] == "thinking":
        return [think(block["text"])]
    text = block["text"]
    if "pause" not in recorded:
        return [say(text)]
    return [say(text[:12]), stall(), say(text[12:])]


def spoken(trace: str) -> list[Frame]:
    return [frame for direction, frame in dialogue(trace) if direction == "cli>sdk"]


def shape_of(frames: list[Frame]) -> Iterator[tuple[str, ...]]:
    """What the frames are, without ids, prose and numbers that mean nothing."""
    for frame in frames:
        shape = tuple(map(str, signature(frame)))
        if shape:
            yield shape


def signature(frame: Frame) -> tuple[Any, ...]:
    kind = frame["type"]
    if kind not in SIGNATURES:
        return (kind,)
    found = SIGNATURES[kind](frame)
    return () if found is None else (kind, *found)


Signature = tuple[Any, ...] | None
"""None: the frame does not count."""


def of_partial(frame: Frame) -> Signature:
    kind = frame["event"]["type"]
    # The model decides how a text is split into chunks.
    return None if kind == "content_block_delta" else (kind, "abandoned_blocks" in frame)


def of_system(frame: Frame) -> Signature:
    told = (frame.get("state"), frame.get("status"), frame.get("attempt"))
    return None if frame["subtype"] in UNSPOKEN else (frame["subtype"], *told)


def of_assistant(frame: Frame) -> Signature:
    (block,) = frame["message"]["content"]
    marks = (frame.get("aborted"), frame.get("error"), "user_message_uuids" in frame)
    return (block["type"], *marks)


def of_user(frame: Frame) -> Signature:
    content = frame["message"]["content"]
    if isinstance(content, str):
        return ("prompt", frame.get("isReplay"))
    (block,) = content
    return (block["type"], bool(block.get("is_error")), frame.get("isSynthetic"))


def of_result(frame: Frame) -> Signature:
    named = ("subtype", "is_error", "terminal_reason", "stop_reason", "num_turns", "result_index")
    also = ("user_message_uuids", "structured_output")
    denials = len(frame["permission_denials"])
    return (*(frame.get(name) for name in (*named, *also)), denials)


def of_request(frame: Frame) -> Signature:
    match frame["request"]:
        case {"subtype": subtype, "message": {"method": method}}:
            return (subtype, method)
        case {"subtype": subtype}:
            return (subtype,)
        case _:
            return ()


def of_response(frame: Frame) -> Signature:
    response = frame["response"]
    return (response["subtype"], response.get("error_code"))


SIGNATURES: dict[str, Callable[[Frame], Signature]] = {
    "stream_event": of_partial,
    "system": of_system,
    "assistant": of_assistant,
    "user": of_user,
    "result": of_result,
    "command_lifecycle": lambda frame: (frame["command_uuid"], frame["state"]),
    "control_request": of_request,
    "control_response": of_response,
}
