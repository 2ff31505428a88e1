from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.cli.demo import Screen, screen_for

WORDS = st.text("abc \n", max_size=200)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_has_its_label_in_the_gutter_and_wraps_beside_it() -> None:
    out = io.StringIO()

    Screen(out, width=30).line("you", "What is nineteen plus five, please?")

    assert out.getvalue() == "    you  What is nineteen plus\n         five, please?\n"


def test_streamed_text_appears_word_by_word() -> None:
    out = io.StringIO()
    screen = Screen(out)

    screen.stream("claude", "It is tw")
    seen = out.getvalue()
    screen.stream("claude", "o.")
    screen.end()

    assert seen == " claude  It is"
    assert out.getvalue() == " claude  It is two.\n"


ESCAPES = "\x1b]0;owned\x07 \x1b[2J \x9b31m \x08 \u202e"


def test_commands_for_the_terminal_are_shown_and_not_passed_on() -> None:
    out = io.StringIO()
    screen = Screen(out)

    screen.title(ESCAPES)
    screen.line("tool", ESCAPES)
    screen.stream("claude", ESCAPES[:9])
    screen.stream("claude", ESCAPES[9:])
    screen.end()

    shown = out.getvalue()
    assert not any(each in shown for each in "\x1b\x07\x08\x9b\u202e\r")
    assert shown.count("\\x1b]0;owned\\x07") == 3


def test_another_line_closes_the_streamed_one() -> None:
    out = io.StringIO()
    screen = Screen(out)

    screen.stream("claude", "Wait ")
    screen.line("tool", "add")
    screen.stream("claude", "\n\nDone")
    screen.end()

    assert out.getvalue().splitlines() == [" claude  Wait", "   tool  add", " claude  Done"]


@given(text=WORDS, pieces=st.integers(1, 9), width=st.integers(18, 60))
def test_streamed_text_keeps_its_words_and_the_width(text: str, pieces: int, width: int) -> None:
    out = io.StringIO()
    screen = Screen(out, width=width)

    for start in range(0, len(text), pieces):
        screen.stream("claude", text[start : start + pieces])
    screen.end()

    lines = out.getvalue().splitlines()
    assert all(len(line) <= width for line in lines)
    assert all(line == line.rstrip() or not line.strip() for line in lines)
    shown = "".join(line[9:] for line in lines)
    assert "".join(shown.split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("out", "environ", "has_colour"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_colour_is_for_terminals_that_want_it(
    out: io.StringIO, environ: dict[str, str], *, has_colour: bool
) -> None:
    screen_for(out, environ).line("tool", "add")

    assert ("\x1b[" in out.getvalue()) is has_colour
