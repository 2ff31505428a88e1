"""After an error there is one file with what happened before it, and no secret."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from steersman.errors import CliExited, Evidence
from steersman.journal import Entry, Kind
from steersman.journal.redaction import Redactor
from steersman.journal.replaying import replay
from steersman.journal.state import StateChange
from steersman.observe import FlightRecord, record
from steersman.observe.flight_recorder import KEPT_FILES, LAST_FRAMES
from tests.journal.recordings import hold

KEY = "sk-ant-" + "api03-" + "x" * 40


def written(directory: Path, flight: FlightRecord, **more: Any) -> dict[str, Any]:
    path = record(directory, flight, **more)
    assert path is not None
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found


def line(seq: int, kind: Kind = Kind.MESSAGE, **fields: Any) -> Entry:
    return Entry(seq, float(seq), kind, json.dumps({"type": "x", **fields}).encode())


async def test_a_session_that_failed_is_told_from_its_journal(tmp_path: Path) -> None:
    held = await hold("fault_kill9_mid_turn")
    cause = held.results.popitem()[1].cause
    assert isinstance(cause, CliExited)

    found = written(
        tmp_path,
        FlightRecord(
            error=cause,
            session_id=held.session.id,
            entries=held.entries,
            states=replay(held.entries).states,
            stderr_tail="Killed\n",
            options=["model", "cwd"],
            versions={"steersman": "1.0", "cli": "2.1.325"},
        ),
    )

    assert found["error"] == {"type": "CliExited", "code": cause.code, "text": str(cause)}
    assert found["session_id"] == held.session.id
    assert [each["after"] for each in found["states"]][-1] == "failed"
    assert found["stderr_tail"] == "Killed\n"
    assert found["options"] == ["cwd", "model"]
    assert {"steersman", "cli", "python", "platform"} == set(found["versions"])
    assert found["sent"][-1]["frame"]["type"] == "user"
    assert any(each["frame"].get("subtype") == "init" for each in found["received"])
    assert found["pieces"]
    assert {"phase", "settled"} == {each["kind"] for each in found["events"]}


def test_only_the_last_lines_of_both_directions_are_kept(tmp_path: Path) -> None:
    entries = [line(n, Kind.SENT if n % 2 else Kind.MESSAGE) for n in range(1, 1001)]

    found = written(tmp_path, FlightRecord(entries=entries))

    assert [len(found["sent"]), len(found["received"])] == [LAST_FRAMES, LAST_FRAMES]
    assert [found["sent"][-1]["seq"], found["received"][-1]["seq"]] == [999, 1000]


def test_of_a_long_line_its_head_and_size_are_kept(tmp_path: Path) -> None:
    found = written(
        tmp_path,
        FlightRecord(entries=[line(1, text="x" * 100_000), Entry(2, 2.0, Kind.NOISE, b"\xffhm")]),
    )

    long, noise = found["received"]
    assert long["size"] > 100_000
    assert len(long["head"]) < 5_000
    assert noise["head"] == "\ufffdhm"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("{}", KEY),
        ("{}", "ghp_" + "a1" * 20),
        ("{}", "AKIA" + "ABCDEFGHIJKLMNOP"),
        ("Authorization: Bearer {}", "abcdef0123456789abcdef"),
        ("MY_API_KEY={}", "correcthorsebattery"),
        ("https://user:{}@example.org/", "pa55word"),
        ("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----", "MIIEabc"),
    ],
)
def test_what_looks_like_a_secret_is_nowhere_in_it(tmp_path: Path, text: str, secret: str) -> None:
    told = text.format(secret)
    flight = FlightRecord(
        error=RuntimeError(f"refused {told}"),
        entries=[line(1, text=f"it is {told}"), line(2, Kind.SENT, inside=[{"deep": told}])],
        stderr_tail=f"warning: {told}",
        notes={"why": told},
    )

    path = record(tmp_path, flight)

    assert path is not None
    assert secret not in path.read_text()
    assert json.loads(path.read_bytes())["redacted"] == 5


def test_a_secret_that_was_streamed_in_pieces_is_not_told_in_pieces(tmp_path: Path) -> None:
    pieces = [line(n, Kind.PARTIAL, text=KEY[at : at + 8]) for n, at in enumerate(range(0, 48, 8))]

    found = written(tmp_path, FlightRecord(entries=pieces))

    assert len(found["pieces"]) == len(pieces)
    assert found["received"] == []
    assert KEY[:8] not in json.dumps(found)


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    path = record(tmp_path / "new" / "folder", FlightRecord())

    assert path is not None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_crash_loop_does_not_fill_the_disk(tmp_path: Path) -> None:
    other = tmp_path / "mine.json"
    other.write_text("{}")

    paths = [record(tmp_path, FlightRecord(), now=1e9 + n) for n in range(KEPT_FILES + 5)]

    assert set(tmp_path.iterdir()) == {other, *paths[5:]}


def test_it_is_never_a_second_failure(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert record(tmp_path / "file", FlightRecord()) is None
    assert record(tmp_path, FlightRecord(notes={"odd": object()})) is None
    assert record(tmp_path, FlightRecord(states=[StateChange(1.0, "idle", "failed")])) is not None


def test_the_reason_behind_an_error_is_told_too(tmp_path: Path) -> None:
    error = CliExited("it left", evidence=Evidence("turn", -9))
    error.__cause__ = OSError("no such pipe")

    found = written(tmp_path, FlightRecord(error=error))

    assert found["error"]["cause"] == {"type": "OSError", "text": "no such pipe"}


def test_every_text_of_a_record_goes_through_the_redactor_of_known_secrets(tmp_path: Path) -> None:
    error = CliExited("the server refused canary-42")
    error.__cause__ = ValueError("canary-42")
    flight = FlightRecord(
        error=error,
        entries=[Entry(1, 1.0, Kind.PHASE, b"", details={"why": "canary-42"})],
        stderr_tail="canary-42",
        notes={"canary-42": ["canary-42"]},
        redact=Redactor(["canary-42"]).text,
    )

    found = written(tmp_path, flight)

    assert "canary" not in json.dumps(found)
    assert found["error"]["text"].startswith("the server refused [redacted]")


def test_a_deeply_nested_line_is_kept_by_its_beginning(tmp_path: Path) -> None:
    deep = b"[" * 500 + b"]" * 500

    found = written(tmp_path, FlightRecord(entries=[Entry(1, 1.0, Kind.MESSAGE, deep)]))

    assert found["received"][0]["size"] == 1000
