"""Bash commands, read by us and by tree-sitter-bash, which knows the shell's whole grammar.

An approval must be confirmed by the parser, and a denial must not miss a command that it finds.
`test_shell_fuzz.py` compares with bash itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.permissions.rules import Match
from steersman.permissions.shell import grants_command, stops_command
from tests.permissions.oracles import oracle

Names = Callable[[str], list[str] | None]

NAMES = ("git", "ls", "rm", "echo")
PLAIN = (*NAMES, "a", "b.txt", "-x", "--all", "/tmp/f", "a=b", "*", "~", "{a,b}", "!", "$x")
QUOTED = ("a", " ", "&&", ";", "|", "#", "rm", "git", ">", "(", ")", "\n", "$x")
IN_SINGLE = (*QUOTED, "\\", "$(rm)", "`rm`", '"')
IN_DOUBLE = (*QUOTED, "'", "$(rm)", "`rm`")
JOINTS = (
    *(" && ", " || ", "; ", " | ", ";", "|", "&&", " & ", "&", "|&", "\n", " \n ", "\t", "  "),
    *(" > f ", " >/dev/null ", " 2>&1 ", " 2>&1\n", " <<< ", "<(", "(", ")", "$(", "`"),
    *("\n>/dev/null ", "\n2>&1 "),
    *(" { ", "} ", "; do ", "if ", "\r"),
)


def texts(alphabet: tuple[str, ...]) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(alphabet), max_size=4).map("".join)


def lines() -> st.SearchStrategy[str]:
    quoted = st.one_of(texts(IN_SINGLE).map("'{}'".format), texts(IN_DOUBLE).map('"{}"'.format))
    word = st.one_of(
        st.sampled_from(PLAIN), quoted, st.tuples(st.sampled_from(NAMES), quoted).map("".join)
    )
    command = st.tuples(st.sampled_from(NAMES), st.lists(word, max_size=3)).map(
        lambda parts: " ".join((parts[0], *parts[1]))
    )
    more = st.lists(st.tuples(st.sampled_from(JOINTS), command).map("".join), max_size=2)
    return st.tuples(command, more).map(lambda parts: parts[0] + "".join(parts[1]))


@pytest.fixture(scope="module")
def names_in() -> Names:
    """Give the names of all commands of a line, or None if it is not valid."""
    bash = oracle("tree_sitter_bash")
    sitter = oracle("tree_sitter")
    parser = sitter.Parser(sitter.Language(bash.language()))

    def names(line: str) -> list[str] | None:
        root = parser.parse(line.encode()).root_node
        if root.has_error:
            return None
        found = [node.child_by_field_name("name") for node in walk(root) if node.type == "command"]
        return [name.text.decode() for name in found if name is not None]

    return names


def walk(node: Any) -> Iterator[Any]:
    yield node
    for child in node.children:
        yield from walk(child)


@given(
    line=lines(),
    name=st.sampled_from(NAMES),
    form=st.sampled_from(("{}:*", "{} *")),
)
def test_what_is_granted_has_no_command_of_another_name(
    names_in: Names, line: str, name: str, form: str
) -> None:
    if grants_command(form.format(name), line) is Match.YES:
        assert set(names_in(line) or ["invalid"]) == {name}


@given(line=lines())
def test_a_denial_misses_no_command_that_the_shell_would_run(names_in: Names, line: str) -> None:
    missed = [
        name
        for name in names_in(line) or ()
        if name in NAMES and stops_command(f"{name}:*", line) is Match.NO
    ]

    assert missed == []


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("git log && ls 'a; rm b'", ["git", "ls"]),
        ('git "$(rm -r x)"', ["git", "rm"]),
        ("git log\nrm x", ["git", "rm"]),
        ("git 'log", None),
    ],
)
def test_the_parser_finds_the_commands_of_a_line(
    names_in: Names, line: str, names: list[str] | None
) -> None:
    assert names_in(line) == names
