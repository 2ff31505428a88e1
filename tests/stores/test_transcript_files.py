from __future__ import annotations

from pathlib import Path

import pytest

from steersman.stores import read_transcript

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
