from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import steersman
from steersman.skills.front_matter import FrontMatterError, split_front_matter

SOURCE = Path(steersman.__file__).parents[1]


def fields(head: str) -> dict[str, Any]:
    return split_front_matter(f"---\n{head}\n---\nbody")[0]


SIMPLE = [
    ("name: pdf", {"name": "pdf"}),
    ("name: a#b", {"name": "a#b"}),
    ("a: true\nb: False", {"a": True, "b": False}),
    ("a: 5\nb: 1.2\nc: 2001-01-01", {"a": "5", "b": "1.2", "c": "2001-01-01"}),
    ("a:\nb: null", {"a": None, "b": None}),
    ("a: Use when: always, really", {"a": "Use when: always, really"}),
    ("# only\n\na: b", {"a": "b"}),
    ("allowed-tools: Read, Bash(git log:*)", {"allowed-tools": "Read, Bash(git log:*)"}),
    ("a: 'true'\nb: \"Use it: # often\"", {"a": "true", "b": "Use it: # often"}),
]
YAML = [
    ("name:    pdf   # the usual one", {"name": "pdf"}),
    ("a: 'it''s'", {"a": "it's"}),
    (r'a: "two\nlines \u00fc"', {"a": "two\nlines ü"}),
    ('a: "x" # why', {"a": "x"}),
    ("a: ~", {"a": None}),
    ("a: yes\nb: [on, 1, 2001-01-01]", {"a": "yes", "b": ["on", "1", "2001-01-01"]}),
    ("a: [x, 'y, z']", {"a": ["x", "y, z"]}),
    ("a: []", {"a": []}),
    ("a:\n  - x\n  - 'y'\nb: z", {"a": ["x", "y"], "b": "z"}),
    ("a:\n- x\n- y\nb: z", {"a": ["x", "y"], "b": "z"}),
    ("a:\n  b: c\n  d:\n    e: true\nf: g", {"a": {"b": "c", "d": {"e": True}}, "f": "g"}),
    ("a: one\n  two\n  three\nb: c", {"a": "one two three", "b": "c"}),
    ("a: |\n  one\n    two\n\n  three\nb: c", {"a": "one\n  two\n\nthree\n", "b": "c"}),
    ("a: |2\n   one\n  two\nb: c", {"a": " one\ntwo\n", "b": "c"}),
    ("a: >-\n  one\n  two\n\n  three\nb: c", {"a": "one two\nthree", "b": "c"}),
    ("a: {b: c, 'd e': [x]}", {"a": {"b": "c", "d e": ["x"]}}),
    ("'quoted key': x\n\"k\": y", {"quoted key": "x", "k": "y"}),
    ("a: &it [x]\nb: *it", {"a": ["x"], "b": ["x"]}),
    ("a: Use when: always\nb: [x]", {"a": "Use when: always", "b": ["x"]}),
    ("argument-hint: [file] [page]", {"argument-hint": "[file] [page]"}),
    (
        "hooks:\n  Stop:\n    - matcher: x\n      hooks:\n        - type: command",
        {"hooks": {"Stop": [{"matcher": "x", "hooks": [{"type": "command"}]}]}},
    ),
]


@pytest.mark.parametrize(("head", "found"), SIMPLE + YAML)
def test_front_matter_is_read_as_yaml(head: str, found: dict[str, Any]) -> None:
    assert fields(head) == found


@pytest.mark.parametrize(
    ("head", "line", "problem"),
    [
        ("just words", 2, "not `key: value`"),
        ("- a", 2, "not `key: value`"),
        ("a: b\n\tc: d", 3, "tab"),
        ("a: b\na: c", 3, "a is there twice"),
        ("a: {b: c, b: d}", 2, "b is there twice"),
        ("a: 'open", 2, "quoted scalar"),
        ('a: "open', 2, "quoted scalar"),
        (r'a: "\q"', 2, "escape"),
        ("b: c\na: [x, y", 3, "flow sequence"),
        ("? [a]\n: b", 2, "a key that is no text"),
        ("a: !tag x", 2, "the tag !tag is not allowed"),
        ("a: !!timestamp 2001-01-01", 2, "tag"),
        ("a: !!python/object/apply:os.system [ls]", 2, "tag"),
        ("a: *nothing", 2, "has no anchor"),
        ("a: &a [*a]", 2, "has no anchor"),
        ("a: " + "[" * 2000, 2, "nested"),
        ("a:\n" + "  - x\n" * 20_000, 10_001, "more than 10000 values"),
        ("a: " + "x" * 200_000, 1, "longer than"),
        ("a: \x07", 1, "a character that YAML does not allow"),
    ],
)
def test_what_is_refused_is_named_with_its_line(head: str, line: int, problem: str) -> None:
    with pytest.raises(FrontMatterError) as caught:
        fields(head)

    assert caught.value.line == line
    assert problem in caught.value.problem
    assert str(caught.value).startswith(f"line {line}: ")


def test_aliases_are_counted_by_what_they_repeat() -> None:
    bomb = ["a0: &a0 [x, x, x, x, x, x, x, x]"]
    for level in range(1, 20):
        again = ", ".join([f"*a{level - 1}"] * 8)
        bomb.append(f"a{level}: &a{level} [{again}]")

    with pytest.raises(FrontMatterError, match="more than 10000 values"):
        fields("\n".join(bomb))


WITHOUT = """
import sys
sys.modules["yaml"] = None
from steersman.skills import split_front_matter
heads = eval(sys.argv[1])
for head in heads:
    try:
        print(split_front_matter(f"---\\n{head}\\n---\\n")[0])
    except ValueError as error:
        print(error)
"""


def without_yaml(*heads: str) -> list[str]:
    done = subprocess.run(
        (sys.executable, "-c", WITHOUT, repr(heads)),
        env={"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.splitlines()


def test_simple_front_matter_is_read_the_same_without_pyyaml() -> None:
    heads, found = zip(*SIMPLE, strict=True)

    assert without_yaml(*heads) == [str(each) for each in found]


def test_without_pyyaml_the_error_names_the_extra_and_the_line() -> None:
    assert without_yaml("a: b\nc: [d]") == [
        'line 3: a form of YAML for which PyYAML is needed; pip install "steersman[skills]"'
    ]


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
