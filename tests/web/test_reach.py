"""What a bridge keeps is not where its agents read without asking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from steersman import Agent
from steersman.errors import UsageError
from steersman.journal import Entry
from steersman.stores import DirectoryStore, SqliteStore
from steersman.web import Bridge

Given = dict[str, Any]


class FileSink:
    """A sink that says where it keeps its entries."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def write(self, entries: Sequence[Entry]) -> None:
        """Take entries."""

    def close(self) -> None:
        """End."""


CASES: dict[str, tuple[str, Callable[[Path, Path, Path], Given]]] = {
    "below": (
        "journals",
        lambda work, _other, _link: {"agents": Agent(cwd=work), "journals": work / "a/sessions"},
    ),
    "the same": (
        "journals",
        lambda work, _other, _link: {"agents": Agent(cwd=work), "journals": work},
    ),
    "added": (
        "journals",
        lambda work, other, _link: {
            "agents": Agent(cwd=other, add_dirs=[work]),
            "journals": work / "sessions",
        },
    ),
    "added by a relative path": (
        "journals",
        lambda work, other, _link: {
            "agents": Agent(cwd=other, add_dirs=[f"../{work.name}"]),
            "journals": work / "sessions",
        },
    ),
    "under another name": (
        "journals",
        lambda work, _other, link: {"agents": Agent(cwd=work), "journals": link / "sessions"},
    ),
    "of one of two agents": (
        "journals",
        lambda work, other, _link: {
            "agents": {"a": Agent(cwd=other), "b": Agent(cwd=work)},
            "journals": work / "sessions",
        },
    ),
    "the store of the asks": (
        "inbox",
        lambda work, _other, _link: {
            "agents": Agent(cwd=work),
            "inbox": SqliteStore(work / "asks.db").inbox(),
        },
    ),
    "transcripts in a directory": (
        "session_store",
        lambda work, _other, _link: {
            "agents": Agent(cwd=work, session_store=DirectoryStore(work / "kept"))
        },
    ),
    "a sink": (
        "sinks",
        lambda work, other, _link: {
            "agents": {
                "a": Agent(cwd=work),
                "b": Agent(cwd=other, sinks=[FileSink(work / "b")]),
            }
        },
    ),
    "transcripts of another agent": (
        "session_store",
        lambda work, other, _link: {
            "agents": {
                "a": Agent(cwd=work),
                "b": Agent(cwd=other, session_store=SqliteStore(work / "b.db")),
            }
        },
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_bridge_keeps_lies_outside_of_the_directories_of_its_agents(
    tmp_path: Path, case: str
) -> None:
    work, other, link = tmp_path / "work", tmp_path / "other", tmp_path / "link"
    work.mkdir()
    other.mkdir()
    link.symlink_to(work)
    argument, given_for = CASES[case]
    given = given_for(work, other, link)

    with pytest.raises(UsageError, match=r"which agent .* reads without asking") as refused:
        Bridge(given.pop("agents"), **given)

    assert refused.value.argument == argument
    assert str(work) in str(refused.value)
    assert "Agent(cwd=...)" in refused.value.hint


def test_an_agent_may_work_beside_and_inside_of_the_journals(tmp_path: Path) -> None:
    for work in (tmp_path / "beside", tmp_path / "kept" / "inside", tmp_path / "kept-too"):
        work.mkdir(parents=True)
        Bridge(
            Agent(cwd=work, session_store=SqliteStore(tmp_path / "kept" / "store.db")),
            inbox=SqliteStore(tmp_path / "kept" / "asks.db").inbox(),
            journals=tmp_path / "kept",
        )
