"""What `run` and `chat` write: every character of it, within the width, and none that acts."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from steersman.cli.call_text import Line, brief, view
from steersman.cli.chat_lines import LineStream
from steersman.cli.page import Page, console_for

TEXT = st.text(st.sampled_from("ab漢é\x1b\x9b\x07 \n"), max_size=60)
WORDS = st.text(st.sampled_from("ab漢 \n"), max_size=80)


def page(width: int) -> tuple[Page, io.StringIO]:
    out = io.StringIO()
    return Page(console_for(out, width=width)), out


@given(text=TEXT, note=TEXT, width=st.integers(30, 90))
def test_a_line_loses_nothing_and_keeps_the_width(text: str, note: str, width: int) -> None:
    writer, out = page(width)

    writer.line("tool", text, note)

    shown = out.getvalue()
    assert max(map(cell_len, shown.splitlines())) <= width
    plain = (text + note).replace("\x1b", "\\x1b").replace("\x9b", "\\x9b").replace("\x07", "\\x07")
    assert "".join(shown.split()) == "tool" + "".join(plain.split())


@given(chunks=st.lists(WORDS, max_size=6), width=st.integers(3, 20))
def test_streamed_text_becomes_lines_without_loss(chunks: list[str], width: int) -> None:
    lines: list[str] = []

    def fold(text: str) -> list[str]:
        return [text[at : at + width] for at in range(0, len(text), width)]

    stream = LineStream(lines.append, fold)
    for chunk in chunks:
        stream.feed(chunk)
    stream.end()

    assert "".join("".join(lines).split()) == "".join("".join(chunks).split())


def test_changes_of_files_are_shown_as_lines() -> None:
    edit = view("Edit", {"file_path": "a.py", "old_string": "x = 1\ny", "new_string": "x = 2\ny"})
    written = view("Write", {"file_path": "b", "content": "one\ntwo"}, lambda _: "one\n")
    several = view(
        "MultiEdit",
        {"file_path": "c", "edits": [{"old_string": "a", "new_string": "b", "replace_all": True}]},
    )

    assert (edit.title, written.title) == ("Edit a.py   +1 -1", "Write b   +1 -1")
    assert edit.lines == (
        Line("- x = 1", "removed"),
        Line("+ x = 2", "added"),
        Line("  y", "context"),
    )
    assert [line.text for line in several.lines] == ["- a", "+ b", "(everywhere in the file)"]


def test_other_calls_are_shown_whole() -> None:
    command = view("Bash", {"command": "ls\nrm x", "timeout": 5})
    other = view("mcp__box__run", {"deep": {"list": [1, 2]}, "escape": "\x1b[2J"})

    assert [line.text for line in command.lines][:2] == ["ls", "rm x"]
    assert "timeout" in "".join(line.text for line in command.lines)
    assert "\x1b" not in "".join(line.text for line in other.lines)
    assert '"list"' in "".join(line.text for line in other.lines)


def test_long_calls_begin_short_and_name_how_much_is_missing() -> None:
    long = view("Write", {"file_path": "b", "content": "\n".join("abc" * 50)}, lambda _: None)

    assert len(long.shown()) == 41
    assert long.shown()[-1].text.endswith("more lines: press ? to see them")
    assert len(brief("Bash", {"command": "x" * 1000})) < 300


def test_calls_of_strange_shapes_are_shown() -> None:
    for odd in ({}, {"file_path": 5}, {"edits": "x"}, {"edits": [1]}, {"command": None}):
        for name in ("Edit", "Write", "MultiEdit", "Bash", "\x1b"):
            assert "\x1b" not in view(name, odd, lambda _: None).title
            assert "\n" not in brief(name, odd)
