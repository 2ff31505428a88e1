from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steersman._factory import (
    journal_opener,
    tool_servers,
    with_own_hook,
)
from steersman._hosts import host_of, settings_in
from steersman.agent import Agent
from steersman.errors import UsageError, WorkingDirectoryMissing
from steersman.hooks import Hooks, PreToolUse
from steersman.options import Options
from steersman.permissions import Policy, deny
from steersman.stores import JournalFile
from steersman.stores.fan_out import FanOutSink
from steersman.tools import Toolbox
from steersman.transports.command import CommandTransport
from tests.options.test_fields import KeptNowhere, approve


def unchanged(line: bytes) -> bytes:
    return line


@pytest.mark.parametrize(
    "given",
    [{"policy": Policy(deny("Bash"))}, {"ask_every_call": True, "can_use_tool": approve}],
    ids=["policy", "ask_every_call"],
)
def test_the_policy_hook_is_the_first_hook_and_is_returned(given: dict[str, Any]) -> None:
    hooks = Hooks()
    hooks.on(PreToolUse)(print)

    options, policy_hook = with_own_hook(Options(hooks=hooks, **given))

    assert policy_hook is not None
    assert [each.callback for each in options.hooks] == [policy_hook, print]


def test_without_a_policy_there_is_no_policy_hook() -> None:
    options = Options()

    assert with_own_hook(options) == (options, None)


def test_functions_get_a_server_whose_key_is_reserved() -> None:
    def shout(name: str) -> str:
        """Shout."""
        return name

    assert tool_servers(Options(functions=(shout,)))["functions"].tool_names == ("shout",)
    with pytest.raises(UsageError, match="reserved for the tools of functions="):
        tool_servers(Options(functions=(shout,), mcp_servers={"functions": Toolbox("x")}))


def test_a_journal_is_opened_with_the_session_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"

    found = {
        "nothing": journal_opener(Options()),
        "file": journal_opener(Options(journal=path)),
        "sink": journal_opener(Options(journal=KeptNowhere())),
        "both": journal_opener(Options(journal=tmp_path / "2.jsonl", sinks=(KeptNowhere(),))),
    }

    assert not path.exists()
    opened = {name: each(unchanged, print) for name, each in found.items() if each is not None}
    assert {name: type(sink) for name, sink in opened.items()} == {
        "file": JournalFile,
        "sink": FanOutSink,
        "both": FanOutSink,
    }
    for sink in opened.values():
        sink.close()


@pytest.mark.parametrize(
    "given",
    [{"cli_path": "/bin/true"}, {"cli_path": "./true"}, {"cli_path": "/bin/true", "cwd": "below"}],
    ids=["absolute", "relative", "relative cwd"],
)
def test_a_directory_that_was_removed_under_this_process_is_named_as_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    with pytest.raises(WorkingDirectoryMissing, match="No such file") as no:
        Agent(**given).session()

    assert no.value.path == given.get("cwd", ".")
    Agent(cli_path="/bin/true", cwd=tmp_path).session()


def test_a_settings_file_is_read_once_from_the_directory_of_the_cli(tmp_path: Path) -> None:
    (tmp_path / "own.json").write_bytes(b'\xef\xbb\xbf{"a": 1}')
    read = host_of(Options(cwd=tmp_path), None).read_settings
    assert read is not None

    first = read("own.json")
    (tmp_path / "own.json").unlink()

    assert first == read("own.json") == {"a": 1}
    assert first is not read("own.json")


def test_a_settings_file_that_is_missing_or_broken_is_named_without_its_content(
    tmp_path: Path,
) -> None:
    read = host_of(Options(cwd=tmp_path), None).read_settings
    assert read is not None

    with pytest.raises(UsageError, match=r"settings: got 'no.json', .*No such file"):
        read("no.json")
    for content in (b"s3cret", b'["s3cret"]', b'{"s3cret": ', b"\xff"):
        with pytest.raises(UsageError, match="settings: got 'x', allowed: a file with a JSON") as e:
            settings_in("x", content)
        assert "s3cret" not in str(e.value)


def test_a_settings_file_of_a_cli_elsewhere_is_not_read() -> None:
    assert host_of(Options(), CommandTransport(("ssh", "host"))).read_settings is None
