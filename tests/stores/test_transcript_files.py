from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from steersman.stores import read_transcript, running_session

NAME = "12345678-1234-4234-8234-123456789abc"


def written(config: Path, name: str = NAME) -> Path:
    folder = config / "projects" / "-work-project"
    folder.mkdir(parents=True)
    path = folder / f"{name}.jsonl"
    path.write_bytes(b'{"n":1}\n{"n":2}\n')
    return path


@pytest.mark.parametrize(
    ("variable", "place"), [("CLAUDE_CONFIG_DIR", "."), ("HOME", ".claude")], ids=["named", "home"]
)
def test_a_conversation_is_found_by_its_id_where_the_cli_keeps_it(
    tmp_path: Path, variable: str, place: str
) -> None:
    written(tmp_path / place)

    assert read_transcript({variable: str(tmp_path)}, NAME) == [b'{"n":1}', b'{"n":2}']


def test_only_newlines_end_a_line(tmp_path: Path) -> None:
    line = '{"text":"a\u2028b\x85c"}'.encode()
    written(tmp_path).write_bytes(line + b"\n" + line + b"\r\n")

    found = read_transcript({"CLAUDE_CONFIG_DIR": str(tmp_path)}, NAME)

    assert found == [line, line + b"\r"]


def test_one_that_is_not_there_is_nothing(tmp_path: Path) -> None:
    written(tmp_path, "another")

    assert read_transcript({"CLAUDE_CONFIG_DIR": str(tmp_path)}, NAME) is None
    assert read_transcript({}, NAME) is None


def test_one_that_cannot_be_read_is_nothing(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.unlink()
    path.mkdir()

    assert read_transcript({"CLAUDE_CONFIG_DIR": str(tmp_path)}, NAME) is None


def test_a_running_cli_has_written_down_its_conversation(tmp_path: Path) -> None:
    written(tmp_path)
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path)}
    file = tmp_path / "sessions" / f"{os.getpid()}.json"
    file.parent.mkdir()
    started = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    other = NAME.replace("1", "9")
    found = {}
    for name, about in {
        "its own": {"sessionId": NAME, "procStart": started},
        "without a start": {"sessionId": NAME},
        "of another process": {"sessionId": NAME, "procStart": "1"},
        "not saved": {"sessionId": other, "procStart": started},
        "strange": [NAME],
    }.items():
        file.write_text(json.dumps(about))
        found[name] = running_session(env, os.getpid())
    file.write_text("{")
    found["cut off"] = running_session(env, os.getpid())

    assert {name for name, each in found.items() if each == NAME} == {"its own", "without a start"}
    assert running_session(env, 1) is None
    assert running_session({}, os.getpid()) is None
