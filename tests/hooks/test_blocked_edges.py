"""The limits and spellings of `block_paths`, each at its edge."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.hooks import PreToolUse, deny
from steersman.hooks.guards import block_paths
from steersman.hooks.matchers import matches, names_in

# As the pages and docstrings say them, not as the code has them.
LIMIT, SHORT, MOST_DIRECTORIES, LONGEST_NAME = 32_768, 4096, 32, 1000

OF_ROOT = "/root"
TOO_LONG_COMMAND = deny("Not checked for blocked paths: the command is too long.")
TOO_MANY = deny("Not checked for blocked paths: the command has too many directories.")
TOO_LONG_PATH = deny("Not checked for blocked paths: the path is too long.")


def within(**given: Any) -> PreToolUse:
    return PreToolUse(tool_name="Any", tool_input=given, cwd="/srv/project")


@pytest.mark.parametrize(
    ("given", "reply"),
    [
        ({"command": "x" * LIMIT}, None),
        ({"command": "x" * (LIMIT + 1)}, TOO_LONG_COMMAND),
        ({"file_path": "x" * LIMIT}, None),
        ({"file_path": "x" * (LIMIT + 1)}, TOO_LONG_PATH),
        ({"file_path": "/a/**" * MOST_DIRECTORIES}, None),
        ({"file_path": "/a/**" * (MOST_DIRECTORIES + 1)}, TOO_LONG_PATH),
        ({"command": "cd a;" * (MOST_DIRECTORIES - 1)}, None),
        ({"command": "cd a;" * MOST_DIRECTORIES}, TOO_MANY),
        ({"command": "ls /a/**;" * MOST_DIRECTORIES}, None),
        ({"command": "ls /a/**;" * (MOST_DIRECTORIES + 1)}, TOO_MANY),
        ({"content": "/" + "x" * LIMIT}, None),
    ],
)
def test_what_is_too_long_to_compare_is_denied_and_nothing_shorter(
    given: dict[str, str], reply: object
) -> None:
    assert block_paths("/nowhere/at/all")(within(**given)) == reply


@pytest.mark.parametrize("length", [SHORT - 1, SHORT, SHORT + 1])
@pytest.mark.parametrize("names", ["./", "a/../"])
def test_a_text_of_any_length_that_ends_at_a_blocked_path_is_denied(
    length: int, names: str
) -> None:
    dots = "/" + names * ((length - 5) // len(names))
    text = dots + "/" * (length - 4 - len(dots)) + "etc/"

    assert len(text) == length
    assert block_paths("/etc")(within(thing=text)) == deny("/etc is off limits.")


@pytest.mark.parametrize(("length", "is_path"), [(SHORT - 1, True), (SHORT, False)])
def test_a_long_text_without_dots_is_no_path(length: int, *, is_path: bool) -> None:
    text = "/etc/" + "x" * (length - 5)

    found = block_paths("/etc")(within(thing=text))

    assert found == (deny("/etc is off limits.") if is_path else None)


@pytest.mark.parametrize(
    "start", ["~/", "./../../home/a/", "../../home/a/", "file:///home/a/", "$HOME/", "${HOME}/"]
)
def test_a_text_that_begins_like_a_path_is_one_whatever_its_field(start: str) -> None:
    assert block_paths("~/.ssh")(within(thing=start + ".ssh/id")) is not None
    assert block_paths("~/.ssh")(within(thing="see " + start + ".ssh/id")) is None


@pytest.mark.parametrize("start", ["$PWD/", "${PWD}/", "./"])
def test_a_text_may_begin_at_the_current_directory(start: str) -> None:
    assert block_paths("conf/keys")(within(thing=start + "conf/keys")) is not None


@pytest.mark.parametrize(
    ("blocked", "path"),
    [
        ("conf\\keys", "conf/keys/a"),
        ("/etc", "\\etc\\hosts"),
        ("/ETC", "/etc/hosts"),
        (f"{OF_ROOT}/notes", "~/notes/a"),
        ("~/notes", f"{OF_ROOT}/notes/a"),
        ("/home/ada/notes", "~/notes/a"),
        ("~/notes", "/home/notes"),
        ("~/**", "/home/ada/x"),
        ("~", "~/x"),
        ("~", "/home/ada/x"),
        ("~", OF_ROOT),
        ("$HOME/notes", "/home/ada/notes"),
        ("/etc", "file://localhost/etc/hosts"),
        ("/etc", "file:etc/hosts"),
        ("conf/k[e]ys", "conf/keys"),
        ("conf/keys/deep", "conf/k*"),
        ("/var/x", "~/../../x"),
        ("/x", "~/../x"),
        ("conf/k*s", "conf/${X}s"),
        ("conf/keys", "conf/$X"),
        ("conf/keys", "conf/{a,keys}"),
        ("k[e]ys", "conf/k*s"),
        ("a/**/b", "a/x/y/b"),
        ("a/**/b", "a/b"),
    ],
)
def test_one_path_has_many_spellings(blocked: str, path: str) -> None:
    assert block_paths(blocked)(within(file_path=path)) is not None


@pytest.mark.parametrize(
    ("blocked", "path"),
    [
        (f"{OF_ROOT}/notes", f"/srv{OF_ROOT}/notes"),
        ("~/notes", f"/srv{OF_ROOT}/notes"),
        ("~/notes", "/srv/project/notes"),
        ("~/notes", "/home/ada/deep/notes"),
        ("a/**/b", "a/x/c"),
        ("/data/ada/notes", "~/notes"),
        ("~", "/srv/project/x"),
        ("conf/**", "/home/ada/x"),
        ("*.pem", "a.pem.txt"),
    ],
)
def test_another_path_stays_free(blocked: str, path: str) -> None:
    assert block_paths(blocked)(within(file_path=path)) is None


@pytest.mark.parametrize(
    ("command", "is_denied"),
    [
        ("pushd conf; cat keys", True),
        ("make --directory conf keys", True),
        ("env --chdir conf cat keys", True),
        ("cd -P conf; cat keys", True),
        ("cat conf; cat keys", False),
        ("scp host:/srv/project/conf/keys .", True),
        ("rsync a%conf/keys", True),
        ("tar --file=conf/keys", True),
        ("tool -o./conf/keys", True),
        ("cat ~+/conf/keys", True),
        ("cat $OLDPWD/conf/keys", True),
        ("cat ${OLDPWD}/conf/keys", True),
        ("sh -c 'cat conf/keys'", True),
        ('sh -c "cat \\"conf/keys\\""', True),
        ("cat {{conf,x},y}/keys", True),
        ("cat conf/[k]eys", True),
    ],
)
def test_a_command_is_read_as_a_shell_reads_it(command: str, *, is_denied: bool) -> None:
    reply = block_paths("conf/keys")(within(command=command))

    assert (reply is not None) is is_denied


@pytest.mark.parametrize(
    ("blocked", "command"),
    [
        ("/etc/passwd", "cd /etc && cat passwd"),
        ("/etc/passwd", "cd /etc/ssl; cd ..; cat passwd"),
        ("~/notes/a", "cd ~/notes; cat a"),
        ("~/notes/a", "cd $HOME; cd notes; cat a"),
    ],
)
def test_a_command_is_followed_to_its_directory(blocked: str, command: str) -> None:
    assert block_paths(blocked)(within(command=command)) == deny(f"{blocked} is off limits.")


def test_a_guard_forgets_the_first_directory_of_the_oldest_session_only() -> None:
    guard = block_paths("conf/keys")

    def at(cwd: str, session: str) -> object:
        given = {"file_path": "/srv/0/conf/keys"}
        return guard(PreToolUse(tool_name="Read", tool_input=given, cwd=cwd, session_id=session))

    assert at("/srv/0", "first") is not None
    for number in range(1, 1000):
        at("/elsewhere", str(number))
    assert at("/elsewhere", "first") is not None
    at("/elsewhere", "1000")
    assert at("/elsewhere", "first") is None


def test_an_expression_is_compared_with_names_up_to_a_length() -> None:
    assert not matches("^B$", "a" * LONGEST_NAME)
    assert matches("^B$", "a" * (LONGEST_NAME + 1))


@pytest.mark.parametrize("matcher", [None, "*", "", "Ba.*"])
def test_a_matcher_without_a_list_names_nothing(matcher: str | None) -> None:
    assert names_in(matcher) == frozenset()
