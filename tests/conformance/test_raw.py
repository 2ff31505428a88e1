"""A wait that times out returns an empty message."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from steersman.testing.model import ScriptedModel
from steersman_conformance.checks import scene
from steersman_conformance.frames import asks, is_result
from steersman_conformance.raw import RawCli
from steersman_conformance.runner import play
from steersman_conformance.stage import Stage


class Sent:
    """A channel that remembers."""

    pid = 1

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.lines.append(data)

    def end_input(self) -> None: ...
    def suspend(self) -> None: ...
    def resume(self) -> None: ...
    def close(self, grace: float) -> None: ...
    def kill(self) -> None: ...


def raw_cli(patience: float = 5.0) -> tuple[RawCli, Sent]:
    cli, sent = RawCli(ScriptedModel(), Path(), patience), Sent()
    cli.connect(sent)
    return cli, sent


async def test_a_frame_is_found_whether_it_came_before_or_comes_after() -> None:
    cli, _ = raw_cli()
    cli.data_received(b'{"type":"result","n":1}\n{"type":"res')
    early = await cli.wait(is_result)
    late = asyncio.create_task(cli.wait(is_result, after=cli.here))
    await asyncio.sleep(0)

    cli.data_received(b'ult","n":2}\nnoise\n')

    assert (early["n"], (await late)["n"]) == (1, 2)
    assert cli.noise == ["noise"]


async def test_a_wait_in_vain_gives_nothing() -> None:
    cli, _ = raw_cli(patience=0.01)

    assert await cli.wait(is_result) == {}
    cli.exited(3)
    assert await cli.wait(is_result) == {}
    assert await cli.wait_exited() == 3


async def test_what_the_cli_asks_is_answered_and_the_unknown_refused() -> None:
    cli, sent = raw_cli()

    cli.data_received(
        b'{"type":"control_request","request_id":"a","request":{"subtype":"hook_callback"}}\n'
        b'{"type":"control_request","request_id":"b","request":{"subtype":"what"}}\n'
    )

    assert [json.loads(line)["response"] for line in sent.lines] == [
        {"subtype": "success", "response": {}, "request_id": "a"},
        {"subtype": "error", "error": "unsupported request 'what'", "request_id": "b"},
    ]
    assert [asks("what")(frame) for frame in cli.frames] == [False, True]


async def test_a_scene_that_fails_is_told_for_each_of_its_checks() -> None:
    @scene
    async def bad(_stage: Stage) -> int:
        raise LookupError("nothing there")

    @bad.must("5", sees=1)
    def one(seen: int) -> int:
        """It is one."""
        return seen

    @scene
    async def good(_stage: Stage) -> int:
        return 0

    @good.must("5", sees=1)
    def two(seen: int) -> float:
        """It is two."""
        return 1 / seen

    observed = await play([bad, good], "claude")

    assert observed == {
        "one": {"fault": "LookupError: nothing there"},
        "two": {"fault": "ZeroDivisionError: division by zero"},
    }
