from __future__ import annotations

from typing import Any

import pytest

from steersman.errors import UsageError
from steersman.hooks import PreToolUse, block_paths, deny


def using(tool: str, **given: Any) -> PreToolUse:
    return PreToolUse(tool_name=tool, tool_input=given, cwd="/srv/project")


BLOCKED: list[tuple[str, PreToolUse]] = [
    ("/etc", using("Read", file_path="/etc/passwd")),
    ("/etc", using("Read", file_path="/etc")),
    ("/etc/", using("Read", file_path="/srv/../etc/./passwd")),
    ("/etc", using("Read", file_path="../../etc/passwd")),
    ("/", using("Read", file_path="/anything")),
    ("conf/keys", using("Write", file_path="conf/keys/a.pem", content="x")),
    ("conf/keys", using("Edit", file_path="/srv/project/conf/keys")),
    ("~/.ssh", using("Read", file_path="~/.ssh/id_rsa")),
    ("~/.ssh", using("Read", file_path="/home/ada/.ssh/id_rsa")),
    ("~/.ssh", using("Bash", command="cat $HOME/.ssh/id_rsa")),
    ("/home/ada/.ssh", using("Read", file_path="~/.ssh/id_rsa")),
    (".env", using("Read", file_path="deep/inside/.env")),
    ("*.pem", using("Bash", command="cp keys/server.pem /tmp")),
    ("/etc/passwd", using("Bash", command="cat '/etc/passwd'|wc")),
    ("/etc/passwd", using("Bash", command="cat </etc/passwd;true")),
    ("/etc/passwd", using("Bash", command="x=/etc/passwd")),
    ("/etc/passwd", using("Bash", command="cat /etc/pass*")),
    ("conf", using("Bash", command="cd ./conf && ls")),
    ("/etc", using("mcp__fs__read", path="/etc/hosts")),
    ("/etc", using("mcp__fs__many", paths=["/srv/a", "/etc/hosts"])),
    ("/etc", using("mcp__fs__deep", request={"uri": "file:///etc/hosts"})),
    ("/etc", using("mcp__x__odd", thing="/etc/hosts")),
]

FREE: list[tuple[str, PreToolUse]] = [
    ("/etc", using("Read", file_path="/etcetera/x")),
    ("/etc", using("Read", file_path="/srv/etc/x")),
    ("/etc", using("Write", file_path="notes.md", content="about /etc/passwd")),
    ("/etc/passwd", using("Bash", command="ls /etc")),
    ("/etc", using("Bash", command="ls *")),
    ("~/.ssh", using("Read", file_path="/srv/.ssh/x")),
    (".env", using("Read", file_path=".envrc")),
    ("conf/keys", using("Read", file_path="/other/conf/keys")),
    ("/etc", using("Bash", timeout=5)),
]


@pytest.mark.parametrize(("path", "event"), BLOCKED)
def test_a_tool_is_kept_from_a_path_and_what_is_inside(path: str, event: PreToolUse) -> None:
    assert block_paths("/nowhere", path)(event) == deny(f"{path} is off limits.")


@pytest.mark.parametrize(("path", "event"), FREE)
def test_a_tool_is_free_elsewhere(path: str, event: PreToolUse) -> None:
    assert block_paths(path)(event) is None


def test_one_may_say_why() -> None:
    guard = block_paths("/etc", reason="ask the operator")

    assert guard(using("Read", file_path="/etc/x")) == deny("ask the operator")


@pytest.mark.parametrize("paths", [(), ("",), (".",), ("..",), (5,), ("  ",)])
def test_what_is_no_path_is_refused(paths: tuple[Any, ...]) -> None:
    with pytest.raises(UsageError, match="paths"):
        block_paths(*paths)
