"""Path patterns, read by us and by pathspec, which reads them as git does.

Rules ignore case and git does not, so pathspec is given both sides in lower case.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.permissions import Place
from steersman.permissions.paths import matches_path
from tests.permissions.oracles import oracle

Ignores = Callable[[str, str], bool]

PLACE = Place(cwd="/w", home="/h")
NAMES = ("a", "b", "src", "x.py", "ab", "bx", "cx", "A", "te st", ".env", "*", "a.b", "sub")
PARTS = (*NAMES[:-3], "*.py", "*", "?", "[ab]", "[!a]", "[a-c]x", "a*", "*b", "\\*")
STARTS = {"": "/w/", "/": "/w/", "./": "/w/", "//": "/", "~/": "/h/"}
"""How a pattern may begin, and the directory that it begins at."""


def patterns(parts: tuple[str, ...]) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(parts), min_size=1, max_size=4).map("/".join)


files = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)
starts = st.sampled_from(sorted(STARTS))
# `**` twice in a row, and `**/` at the end, cover less with us than with git.
deep = st.tuples(patterns(PARTS), patterns(PARTS)).map("/**/".join)
ends = st.sampled_from(("", "/", "/**"))


@pytest.fixture(scope="module")
def ignores() -> Ignores:
    """Return a function: does a line of a .gitignore cover a file."""
    pathspec = oracle("pathspec")

    def covers(line: str, file: str) -> bool:
        spec = pathspec.GitIgnoreSpec.from_lines([line.lower()])
        return bool(spec.match_file(file.lower()))

    return covers


def as_line(start: str, pattern: str) -> str:
    """Give the line of a .gitignore, in the directory that the pattern begins at."""
    return pattern if start in ("", "./") else f"/{pattern}"


@given(start=starts, pattern=patterns((*PARTS, "**")), end=ends, file=files)
def test_what_a_pattern_covers_git_covers_too(
    ignores: Ignores, start: str, pattern: str, end: str, file: str
) -> None:
    if matches_path(start + pattern + end, STARTS[start] + file, PLACE):
        assert ignores(as_line(start, pattern + end), file)


@given(start=starts, pattern=st.one_of(patterns(PARTS), deep), end=ends, file=files)
def test_a_pattern_covers_all_that_git_covers(
    ignores: Ignores, start: str, pattern: str, end: str, file: str
) -> None:
    found = matches_path(start + pattern + end, STARTS[start] + file, PLACE)

    assert found is ignores(as_line(start, pattern + end), file)
