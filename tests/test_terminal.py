"""Text of others on a terminal: shown, never obeyed."""

from __future__ import annotations

import pyte
from hypothesis import example, given
from hypothesis import strategies as st

from steersman._terminal import one_line, printable

ESCAPES = st.sampled_from(
    ["\x1b[2J", "\x1b]0;title\x07", "\x1b[10A", "\x9b2J", "\r", "\b" * 5, "\x1bc", "\u202e", "\x7f"]
)
HOSTILE = st.lists(ESCAPES | st.text(max_size=5), max_size=10).map("".join)
WIDTH, HEIGHT = 200, 40


@given(HOSTILE)
@example("\x1b]0;owned\x07\x1b[2J\x1b[31m")
def test_no_control_character_is_sent(text: str) -> None:
    assert all(each in "\n\t" or each.isprintable() or ord(each) > 0x9F for each in printable(text))
    assert "\n" not in one_line(text)
    assert not set(printable(text)) & set("\x1b\x07\x9b\x7f\r\b\u202e\u2066\ud800")


@given(HOSTILE)
def test_a_terminal_keeps_its_title_its_cursor_and_what_it_shows(text: str) -> None:
    screen = pyte.Screen(WIDTH, HEIGHT)
    stream = pyte.Stream(screen)
    stream.feed("before ")

    stream.feed(one_line(text))

    assert screen.title == ""
    assert screen.display[0].startswith("before ")
    assert (screen.cursor.y, screen.cursor.x) >= (0, len("before "))


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126) | st.just("\n")))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert printable(text) == text
