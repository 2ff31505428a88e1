from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.skills.front_matter import FrontMatterError, split_front_matter


def fields(head: str) -> dict[str, Any]:
    return split_front_matter(f"---\n{head}\n---\nbody")[0]


@pytest.mark.parametrize(
    ("head", "found"),
    [
        ("name: pdf", {"name": "pdf"}),
        ("name:    pdf   # the usual one", {"name": "pdf"}),
        ("name: a#b", {"name": "a#b"}),
        ("a: 'it''s'", {"a": "it's"}),
        (r'a: "two\nlines \u00fc"', {"a": "two\nlines ü"}),
        ('a: "x" # why', {"a": "x"}),
        ("a: true\nb: False", {"a": True, "b": False}),
        ("a: 'true'", {"a": "true"}),
        ("a: 5\nb: 1.2", {"a": "5", "b": "1.2"}),
        ("a:\nb: ~", {"a": None, "b": None}),
        ("a: Use when: always, really", {"a": "Use when: always, really"}),
        ("a: [x, 'y, z', Bash(a, b)]", {"a": ["x", "y, z", "Bash(a, b)"]}),
        ("a: []", {"a": []}),
        ("a:\n  - x\n  - 'y'\nb: z", {"a": ["x", "y"], "b": "z"}),
        ("a:\n- x\n- y\nb: z", {"a": ["x", "y"], "b": "z"}),
        ("a:\n  b: c\n  d:\n    e: true\nf: g", {"a": {"b": "c", "d": {"e": True}}, "f": "g"}),
        ("a: one\n  two\n  three\nb: c", {"a": "one two three", "b": "c"}),
        ("a: |\n  one\n    two\n\n  three\nb: c", {"a": "one\n  two\n\nthree", "b": "c"}),
        ("a: >-\n  one\n  two\n\n  three\nb: c", {"a": "one two\nthree", "b": "c"}),
        ("# only\n\na: b", {"a": "b"}),
        ("allowed-tools: Read, Bash(git log:*)", {"allowed-tools": "Read, Bash(git log:*)"}),
        (
            "hooks:\n  Stop:\n    - matcher: x\n      hooks:\n        - type: command",
            {"hooks": {"Stop": [{"matcher": "x", "hooks": [{"type": "command"}]}]}},
        ),
    ],
)
def test_the_usual_forms_are_read(head: str, found: dict[str, Any]) -> None:
    assert fields(head) == found


@pytest.mark.parametrize(
    ("head", "line", "problem"),
    [
        ("just words", 2, "not `key: value`"),
        ("a: b\n\tc: d", 3, "tab"),
        ("a: b\na: c", 3, "a is there twice"),
        ("a: 'open", 2, "not closed by '"),
        ('a: "open', 2, 'not closed by "'),
        (r'a: "\q"', 2, "escape"),
        ("a: [x, y", 2, "not closed by ]"),
        ("a: {b: c}", 2, "{ is not understood"),
        ("a: &anchor x", 2, "& is not understood"),
        ("a: !tag x", 2, "! is not understood"),
        ("  a: b", 2, "indented further"),
    ],
)
def test_what_is_not_understood_is_told_with_its_line(head: str, line: int, problem: str) -> None:
    with pytest.raises(FrontMatterError) as caught:
        fields(head)

    assert caught.value.line == line
    assert problem in caught.value.problem
    assert str(caught.value).startswith(f"line {line}: ")


def test_the_body_is_what_comes_after() -> None:
    assert split_front_matter("---\na: b\n---\n# Title\n\n---\nrest") == (
        {"a": "b"},
        "# Title\n\n---\nrest",
    )


def test_a_file_without_a_head_is_all_body() -> None:
    assert split_front_matter("# Title\n---\nx") == ({}, "# Title\n---\nx")
    assert split_front_matter("") == ({}, "")


def test_a_head_that_never_ends_is_refused() -> None:
    with pytest.raises(FrontMatterError, match=r"line 1: .* not closed"):
        split_front_matter("---\na: b\n")


def test_a_byte_order_mark_and_windows_lines_do_not_matter() -> None:
    assert split_front_matter("\ufeff---\r\na: b\r\n---\r\nbody")[0] == {"a": "b"}


@given(
    st.dictionaries(
        st.from_regex(r"[a-z][a-z-]{0,8}", fullmatch=True),
        st.text(st.characters(exclude_categories=["C", "Z"]) | st.just(" "), max_size=20),
        max_size=4,
    )
)
def test_any_text_in_quotes_comes_back(texts: dict[str, str]) -> None:
    head = "\n".join("{}: '{}'".format(key, text.replace("'", "''")) for key, text in texts.items())

    assert fields(head) == texts


@given(st.text(max_size=60) | st.text("a:-'\"[]|> \n#", max_size=30))
def test_any_head_is_read_or_refused(head: str) -> None:
    found: object = {}

    with suppress(FrontMatterError):
        found, _body = split_front_matter(f"---\n{head}\n---\n")

    assert isinstance(found, dict)
