"""A replay writes each recorded line after the host has written the lines before it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman import Agent, Session
from steersman.errors import LaunchError, SteersmanError
from steersman.journal import Entry
from steersman.journal.files import EXITED, INPUT_ENDED, Header, Record, Track
from steersman.ports import Channel, Launch
from steersman.transports.replay import DRIFTED, ReplayTransport
from steersman.transports.replay_drift import Drift, Drifted, first_difference
from steersman.transports.replay_tape import LONGEST_PADDED, STDOUT
from tests.samples import Frame, dialogue, encoded, traces
from tests.testing.cassette_samples import replayed, track_of

LIMIT = 5.0
IMPATIENT = 0.2
LAUNCH = Launch(("claude",))

WAITING = "the tape waits for "
SURPRISED = "the tape has no such line: "

OTHERWISE = {
    # Contains lines that our sessions cannot write.
    "control_unknown_and_malformed": WAITING + "the request None",
    # The recorded host wrote a prompt during a turn; ours waits for the end of the turn.
    "queue_during_permission": WAITING + "prompt 2",
    "queue_during_turn": WAITING + "prompt 2",
    "queue_interrupt": WAITING + "prompt 2",
    "queue_priority_now": WAITING + "prompt 2",
    "queue_two_messages": WAITING + "prompt 2",
    # Our session ends the retries after an invalid API key.
    "api_401": SURPRISED + "the request interrupt",
}
"""Traces of hosts that do what our sessions do not do, and the drift that shows it."""


# --- The CLI's side --------------------------------------------------------------------


class Host:
    """A host that writes frames and keeps what it receives."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.stderr = b""
        self.exit_status: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.channel: Channel | None = None
        self.grew = asyncio.Event()

    @property
    def lines(self) -> list[bytes]:
        return b"".join(self.chunks).splitlines()

    def write(self, *frames: Frame) -> None:
        assert self.channel is not None
        self.channel.write(b"".join(encoded(frame) + b"\n" for frame in frames))

    async def receives(self, count: int) -> list[bytes]:
        while len(self.lines) < count:
            self.grew.clear()
            await self.grew.wait()
        return self.lines

    def data_received(self, data: bytes) -> None:
        self.chunks.append(data)
        self.grew.set()

    def stderr_received(self, data: bytes) -> None:
        self.stderr += data

    def exited(self, status: int) -> None:
        self.exit_status.set_result(status)


@asynccontextmanager
async def hosted(replay: ReplayTransport, launch: Launch = LAUNCH) -> AsyncIterator[Host]:
    host = Host()
    async with asyncio.timeout(LIMIT):
        host.channel = await replay.open(launch, host)
        yield host
        host.channel.kill()
        await host.exit_status


def sent(seq: int, frame: Frame) -> Record:
    return Record(seq, float(seq), "sent", encoded(frame))


def wrote(seq: int, frame: Frame, at: float | None = None) -> Record:
    kind = "control" if frame["type"].startswith("control") else "message"
    return Record(seq, float(seq) if at is None else at, kind, encoded(frame))


def ended(seq: int, status: int = 0) -> tuple[Record, Record]:
    exit_ = Record(seq + 1, float(seq + 1), EXITED, details={"status": status})
    return Record(seq, float(seq), INPUT_ENDED), exit_


def tape(*records: Record, number: int = 0) -> Track:
    return Track(Header(track=number), records)


def prompt(text: str, uuid: str = "u1") -> Frame:
    return {"type": "user", "message": {"role": "user", "content": text}, "uuid": uuid}


def request(subtype: str, request_id: str, **fields: Any) -> Frame:
    return {
        "type": "control_request",
        "request_id": request_id,
        "request": {"subtype": subtype, **fields},
    }


def answer(request_id: str, response: Any) -> Frame:
    inside = {"subtype": "success", "request_id": request_id, "response": response}
    return {"type": "control_response", "response": inside}


def note(text: str, **fields: Any) -> Frame:
    return {"type": "system", "subtype": "note", "text": text, **fields}


def may(tool: str, request_id: str) -> Frame:
    return request("can_use_tool", request_id, tool_name=tool, tool_use_id=f"use_{tool}", input={})


ALLOWED = {"behavior": "allow"}
DENIED = {"behavior": "deny", "message": "no"}

ASKING = tape(
    sent(1, prompt("go", "tape")),
    wrote(2, may("Bash", "q1")),
    wrote(3, may("Read", "q2")),
    sent(4, answer("q1", ALLOWED)),
    wrote(5, note("after Bash")),
    sent(6, answer("q2", DENIED)),
    wrote(7, note("after Read", of="tape")),
    *ended(8),
)


async def test_a_line_waits_for_all_that_the_host_wrote_before_it() -> None:
    async with hosted(ReplayTransport([ASKING])) as host:
        host.write(prompt("go", "live"))
        await host.receives(2)
        # The second answer comes first: the tape keeps it until the first one has come.
        host.write(answer("q2", DENIED))
        received = await settled(host)
        host.write(answer("q1", ALLOWED))
        after = await host.receives(4)

    assert [json.loads(line)["type"] for line in received] == ["control_request"] * 2
    assert [json.loads(line)["text"] for line in after[2:]] == ["after Bash", "after Read"]


async def settled(host: Host) -> list[bytes]:
    """Return the lines received once the event loop has nothing left to do."""
    for _ in range(20):
        await asyncio.sleep(0)
    return host.lines


async def test_ids_of_the_tape_are_those_of_this_run() -> None:
    session, live = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"
    track = tape(
        sent(1, request("mcp_status", "1")),
        wrote(2, note("1", session_id=session, path=f"/x/{session}.jsonl")),
        wrote(3, answer("1", {"text": "1"})),
        sent(4, prompt("go", "u-tape")),
        wrote(5, note("u-tape", uuids=["u-tape", "other"])),
        *ended(6),
    )

    launch = Launch(("claude", f"--session-id={live}"))
    async with hosted(ReplayTransport([track]), launch) as host:
        host.write(request("mcp_status", "req_1_ab"), prompt("go", "u-live"))
        received = [json.loads(line) for line in await host.receives(3)]

    assert received == [
        note("1", session_id=live, path=f"/x/{live}.jsonl"),
        answer("req_1_ab", {"text": "1"}),
        note("u-live", uuids=["u-live", "other"]),
    ]


async def test_requests_of_one_kind_find_their_own_answers() -> None:
    track = tape(
        sent(1, request("read_file", "a", path="A")),
        sent(2, request("read_file", "b", path="B")),
        wrote(3, answer("a", "of A")),
        wrote(4, answer("b", "of B")),
    )

    async with hosted(ReplayTransport([track])) as host:
        host.write(request("read_file", "x", path="B"), request("read_file", "y", path="A"))
        received = [json.loads(line) for line in await host.receives(2)]

    assert received == [answer("y", "of A"), answer("x", "of B")]


async def test_lines_that_came_at_once_come_at_once() -> None:
    track = tape(wrote(1, note("a"), 1.0), wrote(2, note("b"), 1.0), wrote(3, note("c"), 2.0))

    async with hosted(ReplayTransport([track])) as host:
        await host.receives(3)

    assert [chunk.count(b"\n") for chunk in host.chunks] == [2, 1]


async def test_what_comes_after_the_end_of_input_waits_for_it() -> None:
    track = tape(Record(1, 1.0, INPUT_ENDED), wrote(2, note("bye")), *ended(3)[1:])

    async with hosted(ReplayTransport([track], patience=IMPATIENT)) as host:
        before = await settled(host)
        assert host.channel is not None
        host.channel.end_input()
        status = await host.exit_status

    assert (before, status) == ([], 0)
    assert [json.loads(line)["text"] for line in host.lines] == ["bye"]


async def test_the_answer_to_a_cancelled_request_is_optional() -> None:
    cancel = {"type": "control_cancel_request", "request_id": "q1"}
    track = tape(
        wrote(1, may("Bash", "q1")),
        wrote(2, cancel),
        sent(3, answer("q1", ALLOWED)),
        wrote(4, note("continued")),
    )

    async with hosted(ReplayTransport([track], patience=IMPATIENT)) as host:
        received = await host.receives(3)

    assert json.loads(received[-1]) == note("continued")


async def test_the_answer_to_a_cancelled_mcp_call_is_optional() -> None:
    call = request("mcp_message", "q1", server_name="s", message={"id": 4, "method": "tools/call"})
    back = {"method": "notifications/cancelled", "params": {"requestId": 4}}
    track = tape(
        wrote(1, call),
        wrote(2, request("mcp_message", "q2", server_name="s", message=back)),
        sent(3, answer("q1", ALLOWED)),
        wrote(4, note("continued")),
    )

    async with hosted(ReplayTransport([track], patience=IMPATIENT)) as host:
        received = await host.receives(3)

    assert json.loads(received[-1]) == note("continued")


async def test_a_request_can_be_handled_before_it_is_cancelled() -> None:
    """The replay omits the minutes between the request and its cancellation."""
    track = tape(
        wrote(1, may("Bash", "q1")),
        wrote(2, {"type": "control_cancel_request", "request_id": "q1"}),
    )
    rounds: list[int] = []

    async with hosted(ReplayTransport([track], patience=None)) as host:
        await host.receives(1)
        while len(host.lines) < 2:
            rounds.append(len(host.lines))
            await asyncio.sleep(0)

    assert len(rounds) > 2


async def test_a_line_that_was_too_long_to_record_has_its_length() -> None:
    track = tape(Record(1, 1.0, "oversize", b"{head", details={"size": 1000}))

    async with hosted(ReplayTransport([track], patience=None)) as host:
        (line,) = await host.receives(1)

    assert (len(line), line.strip()) == (1000, b"{head")


@pytest.mark.parametrize("size", [10**15, 10**30, -1, "many", None, 1.5, [1]])
async def test_the_length_that_a_file_claims_is_bounded(size: Any) -> None:
    track = tape(Record(1, 1.0, "oversize", b"{head", details={"size": size}))

    async with hosted(ReplayTransport([track], patience=None)) as host:
        (line,) = await host.receives(1)

    assert len(line) <= LONGEST_PADDED
    assert line.strip() == b"{head"


async def test_only_a_line_that_was_too_long_is_padded() -> None:
    track = tape(Record(1, 1.0, "message", b'{"type":"x"}', details={"size": 1000}))

    async with hosted(ReplayTransport([track], patience=None)) as host:
        (line,) = await host.receives(1)

    assert line == b'{"type":"x"}'


async def test_recorded_pauses_are_kept_with_a_pace() -> None:
    track = tape(wrote(1, note("a"), 100.0), wrote(2, note("b"), 100.02), *ended(3)[1:])
    loop = asyncio.get_running_loop()

    async with hosted(ReplayTransport([track], pace=1.0)) as host:
        begun = loop.time()
        await host.receives(2)
        slow = loop.time() - begun

    assert slow >= 0.015


# --- Drift -----------------------------------------------------------------------------


async def test_stub_does_not_look_at_answers() -> None:
    replay = ReplayTransport([ASKING])
    async with hosted(replay) as host:
        host.write(prompt("go"), answer("q1", DENIED), answer("q2", {"strange": True}))
        await host.receives(4)

    replay.check()


@pytest.mark.parametrize("mode", ["stub", "verify"])
async def test_another_prompt_is_a_drift(mode: Any) -> None:
    replay = ReplayTransport([ASKING], mode)
    async with hosted(replay) as host:
        host.write(prompt("go away"))
        status = await host.exit_status

    with pytest.raises(Drifted, match="prompt 1 differs from the tape") as caught:
        replay.check()
    assert 'content[0].text: "go" became "go away"' in str(caught.value)
    assert status == DRIFTED
    assert b"prompt 1 differs" in host.stderr
    assert host.lines == []


async def test_verify_names_the_one_decision_that_changed() -> None:
    replay = ReplayTransport([ASKING], "verify")
    async with hosted(replay) as host:
        host.write(prompt("go"), answer("q1", ALLOWED), answer("q2", ALLOWED))
        status = await host.exit_status

    assert status == DRIFTED
    assert replay.drifts == [
        Drift(
            "the answer to the permission for Read (use_Read) differs from the tape",
            {"subtype": "success", "response": DENIED},
            {"subtype": "success", "response": ALLOWED},
            seq=6,
        )
    ]
    assert 'first difference: response.behavior: "deny" became "allow"' in str(replay.drifts[0])


async def test_all_differences_can_be_collected() -> None:
    replay = ReplayTransport([ASKING], "verify", keep_going=True)
    async with hosted(replay) as host:
        host.write(prompt("go"), answer("q1", DENIED), answer("q2", ALLOWED))
        received = await host.receives(4)

    assert [drift.seq for drift in replay.drifts] == [4, 6]
    assert json.loads(received[-1])["text"] == "after Read"


async def test_verify_compares_requests_and_stub_does_not() -> None:
    track = tape(sent(1, request("set_model", "1", model="opus", more=None)), wrote(2, note("a")))
    stub, verify = ReplayTransport([track]), ReplayTransport([track], "verify")
    for replay in (stub, verify):
        async with hosted(replay) as host:
            host.write(request("set_model", "9", model="haiku"))
            await (host.receives(1) if replay is stub else host.exit_status)

    assert stub.drifts == []
    assert [drift.what for drift in verify.drifts] == [
        "the request set_model differs from the tape"
    ]


@pytest.mark.parametrize("frame", [prompt("more"), request("interrupt", "9"), {"type": "hello"}])
async def test_a_line_that_the_tape_does_not_have_is_a_drift(frame: Frame) -> None:
    replay = ReplayTransport([tape(*ended(1))], keep_going=True)
    async with hosted(replay) as host:
        host.write(frame)
        status = await host.exit_status

    assert status == DRIFTED
    assert "the tape has no such line" in replay.drifts[0].what


@pytest.mark.parametrize("mode", ["stub", "verify"])
async def test_a_silent_host_gets_what_the_tape_waits_for_as_a_drift(mode: Any) -> None:
    replay = ReplayTransport([ASKING], mode, patience=IMPATIENT)
    async with hosted(replay) as host:
        host.write(prompt("go"), answer("q2", DENIED))
        status = await host.exit_status

    assert status == DRIFTED
    assert b"waits for the answer to the permission for Bash (use_Bash)" in host.stderr
    assert f"nothing came for {IMPATIENT:g} s" in replay.drifts[0].what


async def test_the_end_of_input_may_come_at_any_time() -> None:
    replay = ReplayTransport([tape(wrote(1, note("a")), *ended(2))], patience=0.0)
    async with hosted(replay) as host:
        await host.receives(1)
        await settled(host)

        assert not host.exit_status.done()
    assert replay.drifts == []


async def test_a_tape_that_ends_in_the_middle_is_a_drift() -> None:
    replay = ReplayTransport([tape(wrote(1, note("a")))], patience=IMPATIENT)
    async with hosted(replay) as host:
        status = await host.exit_status

    assert status == DRIFTED
    assert b"the recording ends in the middle" in host.stderr


@pytest.mark.parametrize(("mode", "drifts"), [("stub", 0), ("verify", 1)])
async def test_a_host_that_leaves_early_has_drifted_only_in_verify(mode: Any, drifts: int) -> None:
    replay = ReplayTransport([ASKING], mode)
    async with hosted(replay) as host:
        host.write(prompt("go"))
        assert host.channel is not None
        host.channel.end_input()
        status = await host.exit_status

    assert status == 0
    assert len(replay.drifts) == drifts


async def test_each_start_plays_a_track_and_one_too_many_is_refused() -> None:
    replay = ReplayTransport([tape(wrote(1, note("a"))), tape(wrote(1, note("b")), number=1)])
    received: list[str] = []
    for _ in range(2):
        async with hosted(replay) as host:
            received += [json.loads(line)["text"] for line in await host.receives(1)]

    with pytest.raises(LaunchError, match="has 2 starts"):
        await replay.open(LAUNCH, host)
    assert received == ["a", "b"]


async def test_a_replay_that_has_drifted_is_not_started_again() -> None:
    replay = ReplayTransport([tape(*ended(1)), tape(*ended(1))])
    async with hosted(replay) as host:
        host.write(prompt("surprise"))
        await host.exit_status

    with pytest.raises(LaunchError, match="has drifted: the tape has no such line: a prompt"):
        await replay.open(LAUNCH, host)


@pytest.mark.parametrize(
    ("recorded", "came", "path"),
    [
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, "a[1].b"),
        ({"a": 1}, {"a": 1, "b": 2}, "b"),
        ([1, 2], [1], "[1]"),
        ({"a": {}}, {"a": []}, "a"),
        (1, 2, ""),
    ],
)
def test_the_first_difference_is_found(recorded: Any, came: Any, path: str) -> None:
    found = first_difference(recorded, came)

    assert found is not None
    assert found[0] == path
    assert first_difference(recorded, recorded) is None


# --- Recorded traces -------------------------------------------------------------------


@pytest.mark.parametrize("trace", traces())
async def test_a_trace_plays_back_line_by_line(trace: str) -> None:
    async with hosted(ReplayTransport([track_of(trace)], "verify")) as host:
        for direction, frame in dialogue(trace):
            if direction == "sdk>cli":
                host.write(frame)
        assert host.channel is not None
        host.channel.end_input()
        status = await host.exit_status

    recorded = [frame for direction, frame in dialogue(trace) if direction == "cli>sdk"]
    assert [json.loads(line) for line in host.lines] == recorded
    assert status == dialogue(trace)[-1][1]["code"]


@given(data=st.data())
async def test_whatever_a_host_writes_first_the_tape_keeps_its_order(data: st.DataObject) -> None:
    trace = data.draw(st.sampled_from(["perm_allow", "mcp_tool_parallel_readonly"]))
    frames = [frame for direction, frame in dialogue(trace) if direction == "sdk>cli"]
    order: Sequence[Frame] = data.draw(st.permutations(frames))
    # Prompts are distinguished by their order only.
    prompts = iter([frame for frame in frames if frame["type"] == "user"])

    async with hosted(ReplayTransport([track_of(trace)])) as host:
        for frame in order:
            host.write(next(prompts) if frame["type"] == "user" else frame)
        assert host.channel is not None
        host.channel.end_input()
        await host.exit_status

    recorded = [frame for direction, frame in dialogue(trace) if direction == "cli>sdk"]
    assert [json.loads(line) for line in host.lines] == recorded


@pytest.mark.parametrize("trace", traces())
async def test_a_session_replays_a_trace_and_never_hangs(trace: str) -> None:
    expected = OTHERWISE.get(trace)
    waits = expected is not None and expected.startswith(WAITING)
    replay = ReplayTransport([replayed(trace)], patience=IMPATIENT if waits else None)
    async with asyncio.timeout(LIMIT):
        ended_well = await relive(trace, replay)

    found = [drift.what.partition(", and nothing came")[0] for drift in replay.drifts]
    assert found == ([] if expected is None else [expected])
    assert ended_well == (ends_on_request(trace) and expected is None)


async def relive(trace: str, replay: ReplayTransport) -> bool:
    """Repeat what the host of a trace did. Return whether the CLI ran to the end."""
    frames = [frame for direction, frame in dialogue(trace) if direction == "sdk>cli"]
    try:
        async with Agent(transport=replay, revive=False, **options_of(trace)).session() as session:
            for frame in frames:
                if frame.get("type") == "user":
                    await session.send(frame["message"]["content"])
            asked = [asyncio.ensure_future(each) for each in requests(session, frames)]
            await received_all(session, replay.tracks[0])
            await asyncio.gather(*asked, return_exceptions=True)
            if not ends_on_request(trace):
                # It has written all of its lines, and exits by itself.
                await until_ended(session)
            return not session.phase.is_over
    except SteersmanError:
        return False


def options_of(trace: str) -> dict[str, Any]:
    """Return options with which a CLI may report what that of the trace reports."""
    begun = next((each for _, each in dialogue(trace) if each.get("subtype") == "init"), {})
    return {"strict_mcp_config": False, "permission_mode": begun.get("permissionMode")}


def requests(session: Session, frames: list[Frame]) -> list[Any]:
    """Return the requests of the host. One that it cancelled gets a short timeout."""
    back = {frame["request_id"] for frame in frames if frame.get("type") in CANCEL}
    return [
        session.control(
            inside["subtype"],
            timeout=IMPATIENT / 2 if frame["request_id"] in back else LIMIT,
            **{name: inside[name] for name in inside if name != "subtype"},
        )
        for frame in frames
        if frame.get("type") == "control_request"
        if (inside := frame["request"]).get("subtype") not in (None, "initialize")
    ]


CANCEL = {"control_cancel_request"}


async def received_all(session: Session, track: Track) -> None:
    """Wait until the CLI has written all lines before the end of input, or has exited."""
    kinds = [record.kind for record in track.records]
    last = kinds.index(INPUT_ENDED) if INPUT_ENDED in kinds else len(kinds)
    missing = sum(kind in STDOUT for kind in kinds[:last])
    async for entry in session.journal():
        missing -= isinstance(entry, Entry) and entry.kind.value in STDOUT
        if not missing:
            return


async def until_ended(session: Session) -> None:
    """Wait until the session has ended: its journal ends with it."""
    async for _ in session.journal():
        pass


def ends_on_request(trace: str) -> bool:
    """Return whether the CLI of a trace exited because its host ended the input."""
    return any(frame.get("event") == "stdin_eof" for _, frame in dialogue(trace))
