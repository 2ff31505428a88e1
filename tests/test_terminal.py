"""Text of others on a terminal: shown, never obeyed."""

from __future__ import annotations

import unicodedata

import pyte
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from steersman._terminal import exact, one_line, printable

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


UNSEEN = (
    "\xad\u034f\u061c\u115f\u180e\u200b\u200d\u200f\u2028\u202e"
    "\u2064\u2069\u2800\u3164\ufe0f\ufeff\U000e0041"
)


@pytest.mark.parametrize("unseen", UNSEEN, ids=lambda each: f"U+{ord(each):04X}")
def test_what_has_no_width_or_orders_text_anew_is_an_escape(unseen: str) -> None:
    escape = unseen.encode("unicode_escape").decode()

    assert [show(f"a{unseen}b") for show in (printable, one_line, exact)] == [f"a{escape}b"] * 3


def test_no_character_of_a_format_is_left_that_a_terminal_draws_as_nothing() -> None:
    # These are drawn: signs before numbers of Arabic, Syriac and Kaithi, and hieroglyphs in a row.
    drawn = {0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
    drawn |= {*range(0x600, 0x606), *range(0x13430, 0x13440)}
    formats = [chr(n) for n in range(0x110000) if unicodedata.category(chr(n)) in ("Cc", "Cf")]

    left = {ord(each) for each in formats if printable(each) == each}

    assert left <= drawn | {9, 10}


def test_emoji_stay_whole_where_nothing_is_run_and_other_spaces_too() -> None:
    text = "\u26a0\ufe0f 1\ufe0f\u20e3 \U0001f469\u200d\U0001f4bb a\xa0b"

    assert printable(text) == text
    assert exact("rm\xa0-r \u26a0\ufe0f") == "rm\\xa0-r \u26a0\\ufe0f"
