"""Path patterns, read by us and by pathspec, which reads them as git does.

Rules ignore case and git does not, so pathspec is given both sides in lower case.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.errors import UsageError
from steersman.permissions import Match, Place, Policy, ToolCall, allow, ask, deny, parse_rule
from steersman.permissions.paths import matches_path, may_match_path
from steersman.permissions.updates import Behavior
from tests.permissions.oracles import oracle

Ignores = Callable[[str, str], bool]

PLACE = Place(cwd="/w", home="/h")
NAMES = ("a", "b", "src", "x.py", "ab", "bx", "cx", "A", "te st", ".env", "*", "a.b", "sub")
PARTS = (
    *NAMES[:-3],
    "*.py",
    "*",
    "?",
    "[ab]",
    "[!a]",
    "[a-c]x",
    "a*",
    "*b",
    "\\*",
    "**b",
    "a**",
    "s**c",
    "*.*",
    "?*",
    "[!a-b]*",
)
STARTS = {"": "/w/", "/": "/w/", "./": "/w/", "//": "/", "~/": "/h/"}
"""How a pattern may begin, and the directory that it begins at."""


def patterns(parts: tuple[str, ...]) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(parts), min_size=1, max_size=4).map("/".join)


files = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)
starts = st.sampled_from(sorted(STARTS))
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
def test_a_pattern_covers_what_git_covers(
    ignores: Ignores, start: str, pattern: str, end: str, file: str
) -> None:
    expected = ignores(as_line(start, pattern + end), file)

    assert matches_path(start + pattern + end, STARTS[start] + file, PLACE) is expected
    assert may_match_path(start + pattern + end, STARTS[start] + file, PLACE) is expected


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("/**a", "/w/x/a", False),
        ("/**a", "/w/xa", True),
        ("**/**/*", "/w/a", True),
        ("**/**/*", "/w/a/b/c", True),
        ("*.md", "/w-secret/a.md", False),
        ("*.md", "/w/../w-secret/a.md", False),
        ("a/b", "//w/a/b", True),
        ("//w/a", "//w//a", True),
        ("a/b", "/w/./a//b/", True),
        ("a/b", "/x/../w/a/c/../b", True),
        ("a/b", "/../../w/a/b", True),
        ("[!a]b", "/w/xb", True),
        ("k", "/w/\u212a", False),
    ],
)
def test_paths_are_compared_as_the_file_system_reads_them(
    pattern: str, path: str, *, fits: bool
) -> None:
    assert matches_path(pattern, path, PLACE) is fits


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("k", "/w/\u212a"),
        ("~/.ssh", "~/.ssh/id"),
        ("~/.ssh", "~h/.ssh/id"),
        ("~/.ssh", "~//.ssh/id"),
        ("//home/bob/x", "~bob/x"),
        ("a/b", "~+/a/b"),
        ("../x/y", "/x/y"),
        ("a/../b", "/w/b"),
        ("./../x", "/x"),
        ("/", "/w/a"),
        ("a", "/W/A"),
        ("a", "x" * 20_000),
    ],
)
def test_a_denial_covers_every_reading_of_a_path(pattern: str, path: str) -> None:
    assert may_match_path(pattern, path, PLACE)


def test_relative_paths_begin_at_the_directory_after_cd_and_patterns_at_the_first() -> None:
    place = Place("/w", "/h", now="/w/conf")

    assert matches_path("conf/keys", "keys", place)
    assert not matches_path("keys/**", "keys/a", place)
    assert may_match_path("conf/keys", "keys", place)
    assert may_match_path("conf/keys", "../conf/keys", place)
    # The tool may also have been started in the first directory.
    assert may_match_path("conf/keys", "conf/keys", place)


@pytest.mark.parametrize(
    "pattern",
    [
        "[b-a]",
        "[!]a]",
        "[]a]",
        "[]",
        "a/[z-a]/b",
        "[[:alpha:]]",
        "[a\\]",
        "a\\",
        "!a",
        "#a",
        " a",
        "a ",
    ],
)
def test_a_pattern_that_cannot_be_read_is_refused_when_the_rule_is_parsed(pattern: str) -> None:
    for tool in ("Edit", "Read"):
        with pytest.raises(UsageError):
            parse_rule(f"{tool}({pattern})")


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("**/a/**/b/**/c", "/w/" + "a/b/" * 1500 + "x"),
        ("**/a/**/b/**/c", "/w/" + "a/b/" * 4000 + "x"),
        ("*a*a*a*a*a*b", "/w/" + "a" * 16_000),
        ("**/*a*/**/*b*/**/*c*/d", "/w/" + "abc/" * 4000),
        ("a", "/w/" + "x/" * 500_000),
    ],
)
def test_a_long_path_takes_little_time(pattern: str, path: str) -> None:
    begun = time.process_time()
    found = matches_path(pattern, path, PLACE)
    may_match_path(pattern, path, PLACE)

    assert not found
    # Seconds of this process; the patterns of the past took minutes.
    assert time.process_time() - begun < 1


def covers(rule: str, tool: str, behavior: Behavior, **given_: Any) -> Match:
    return parse_rule(rule).match(ToolCall(tool, given_, place=PLACE), behavior)


def test_an_approval_covers_all_paths_of_a_call_and_a_denial_any() -> None:
    two = {"file_path": "/w/src/a", "notebook_path": "/etc/x"}

    assert covers("Edit(src/**)", "NotebookEdit", "allow", **two) is Match.NO
    assert covers("Edit(src/**)", "NotebookEdit", "deny", **two) is Match.YES


def test_a_search_that_leaves_its_directory_is_not_covered_by_an_approval_of_it() -> None:
    for pattern in ("../../etc/*", "/etc/*", "~/.ssh/*"):
        assert covers("Read(src/**)", "Glob", "allow", path="/w/src/a", pattern=pattern) is Match.NO
    assert covers("Read(//etc/**)", "Glob", "deny", path="/w", pattern="/etc/*") is Match.YES
    assert covers("Read(src/**)", "Glob", "allow", path="/w/src/a", pattern="*.py") is Match.YES


def test_a_path_beyond_the_limit_is_denied_and_not_allowed() -> None:
    path = "/w/src/" + "x" * 20_000

    assert covers("Edit(src/**)", "Write", "allow", file_path=path) is Match.NO
    assert covers("Edit(other/**)", "Write", "deny", file_path=path) is Match.YES
    assert covers("Edit(other/**)", "Write", "ask", file_path=path) is Match.YES


OF_PROCESSES = (
    *("/proc/self/cwd/conf/keys", "/proc/17/root/project/conf/keys", "/proc/thread-self/cwd/x"),
    *("/proc//self/./fd/5", "/dev/fd/3", "//proc/self/cwd/../conf/keys", "/x/../proc/self/cwd/a"),
    *("/PROC/self/cwd/a", "/proc/*/cwd/a", "/proc/$PPID/cwd/a", "/p*c/self/cwd/a"),
)


@pytest.mark.parametrize("path", OF_PROCESSES)
def test_a_path_through_a_process_is_denied_and_never_allowed(path: str) -> None:
    call = {"file_path": path}
    line = {"command": f"cat {path}"}

    allowed = Policy(allow("Read(//**)", "Read(/**)")).explain("Read", call, cwd="/project")
    denied = Policy(deny("Read(secret)")).explain("Read", call, cwd="/project")
    asked = Policy(ask("Read(secret)")).explain("Bash", line, cwd="/project")

    assert allowed.verdict == "cli"
    assert denied.verdict == "deny"
    assert asked.verdict == "ask"


@pytest.mark.parametrize(
    "line",
    [
        *(
            "cd /proc/self/cwd && cat conf/a",
            "cd /proc/self; cat cwd/a",
            "cd /proc && cat self/fd/3",
        ),
        *("cat < /proc/self/cwd/a", "cat --file=/dev/fd/3"),
    ],
)
def test_a_command_does_not_reach_a_denied_file_through_a_process(line: str) -> None:
    found = Policy(deny("Read(.env)")).explain("Bash", {"command": line}, cwd="/project")

    assert found.verdict == "deny"


@pytest.mark.parametrize(
    "path", ["/proc/cpuinfo", "/dev/null", "/project/proc/self", "/process/1/a"]
)
def test_a_path_that_only_resembles_one_is_left_alone(path: str) -> None:
    found = Policy(deny("Read(.env)")).explain("Bash", {"command": f"cat {path}"}, cwd="/project")

    assert found.verdict == "cli"
