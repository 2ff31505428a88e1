"""Verdicts about command lines made by chance, compared with what bash starts for them.

`make test` tries a third of what `.ci/run` does, `make soak` forty times as many lines.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from steersman.permissions.shell import Match, grants_command, stops_command
from tests.permissions.command_lines import NAMES, lines, programs, started
from tests.permissions.oracles import oracle
from tests.permissions.spellings import NOT_COVERED

pytestmark = [pytest.mark.process, pytest.mark.soak, pytest.mark.timeout(600)]

IS_SOAK = bool(os.environ.get("STEERSMAN_SOAK"))
BATCHES = 400 if IS_SOAK else 10
EACH = [pytest.param(n, marks=() if n < 3 else pytest.mark.ci_only) for n in range(BATCHES)]
SIZE = 250


def granted_to(line: str) -> set[str]:
    """Return the programs to which a rule for each would restrict the line, and that grant it."""
    return {
        name
        for name in NAMES
        for form in (f"{name}:*", f"{name} *")
        if grants_command(form, line) is Match.YES
    }


def faults(line: str, names: set[str]) -> list[str]:
    """Return the faults of our verdicts about a line that started these programs."""
    found = [
        f"{name} is granted, but bash starts {sorted(names)}: {line!r}"
        for name in granted_to(line)
        if names - {name}
    ]
    found += [
        f"{name} starts, but its denial lets it: {line!r}"
        for name in sorted(names)
        if stops_command(f"{name}:*", line) is Match.NO
    ]
    return found


@pytest.mark.parametrize("batch", EACH)
def test_no_grant_and_no_gap_in_a_denial_is_contradicted_by_bash(
    tmp_path: Path, batch: int
) -> None:
    made = list(lines(SIZE, seed=batch))

    seen = started(made, tmp_path)

    wrong = [fault for line, names in zip(made, seen, strict=True) for fault in faults(line, names)]
    assert wrong == []
    # Most lines start something, and some are granted: otherwise nothing was compared.
    assert sum(map(bool, seen)) > SIZE / 3
    assert sum(bool(granted_to(line)) for line in made) > SIZE / 50


@pytest.mark.parametrize("batch", EACH)
def test_no_line_of_the_grammar_starts_a_program_that_its_denial_lets(
    tmp_path: Path, batch: int
) -> None:
    made = list(programs(SIZE, seed=batch))

    seen = started(made, tmp_path)

    wrong = [fault for line, names in zip(made, seen, strict=True) for fault in faults(line, names)]
    assert wrong == []
    assert sum(map(bool, seen)) > SIZE / 2


def test_what_the_page_names_as_not_covered_runs(tmp_path: Path) -> None:
    """If one of these is covered, the page is too modest."""
    # The copy is started under its own name.
    assert started([*NOT_COVERED], tmp_path) == [{"t"}, {"touch"}, {"touch"}]

    verdicts = [stops_command("touch:*", line) for line in NOT_COVERED]

    assert verdicts == [Match.NO] * len(NOT_COVERED)


def test_most_lines_of_the_grammar_are_valid_for_a_parser_of_bash() -> None:
    bash, sitter = oracle("tree_sitter_bash"), oracle("tree_sitter")
    parser = sitter.Parser(sitter.Language(bash.language()))
    made = list(programs(SIZE, seed=0))

    valid = [line for line in made if not parser.parse(line.encode()).root_node.has_error]

    assert len(valid) > SIZE / 2


def test_no_grant_is_contradicted_by_a_parser_of_bash() -> None:
    bash, sitter = oracle("tree_sitter_bash"), oracle("tree_sitter")
    parser = sitter.Parser(sitter.Language(bash.language()))
    wrong: list[tuple[str, list[str]]] = []
    granted = 0

    for line in (line for batch in range(BATCHES) for line in lines(SIZE, seed=batch)):
        for name in granted_to(line):
            granted += 1
            found = names_in(parser.parse(line.encode()).root_node)
            if set(found) != {name}:
                wrong.append((line, found))

    assert wrong == []
    assert granted > BATCHES * SIZE / 50


def names_in(root: Any) -> list[str]:
    """Return the names of the commands in a tree, or what does not belong to a plain line."""
    found: list[str] = ["an error"] if root.has_error else []
    nodes = [root]
    while nodes:
        node = nodes.pop()
        nodes += node.children
        if node.type == "command_name":
            found.append(node.text.decode())
        elif "substitution" in node.type or node.type in ("subshell", "heredoc_body"):
            found.append(node.type)
    return found
