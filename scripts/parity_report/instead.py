"""Entries for things that are not here under their official names: a replacement, or a reason."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "BY_STORE",
    "FOLDER_NAME",
    "KINDS",
    "OUR_FORK",
    "SETTINGS",
    "TRACES",
    "WARM",
    "WHILE_IT_RUNS",
    "Elsewhere",
]

KINDS = (
    "needs login",
    "Windows",
    "hosted only",
    "JavaScript runtime",
    "not yet: ",
    "not declared: ",
    "kept as data: ",
    "done differently: ",
)
"""The beginnings of all reasons."""

SETTINGS = "done differently: the CLI reads and applies its settings; none are merged here"
WARM = "done differently: `Agent.prewarm` starts CLIs ahead, and `agent.session()` takes one"
TRACES = "not yet: traces"

STORED = "tests/live/test_stored_sessions.py"
OUR_FORK = (
    f"{STORED}::test_a_fork_that_we_made_renamed_and_tagged_is_resumed_and_the_deleted_one_is_gone"
)
WHILE_IT_RUNS = f"{STORED}::test_what_the_cli_writes_is_seen_while_it_runs"
BY_STORE = f"{STORED}::test_a_session_goes_through_stores_to_another_home_and_is_resumed_there"
FOLDER_NAME = f"{STORED}::test_the_synchronous_front_sees_the_folder_that_the_cli_was_told"


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A replacement: a dotted name of ours, and the marks that show it."""

    ours: str
    marks: tuple[str, ...] = ()
    """Marks to use instead of those of `ours`."""
    names: tuple[str, ...] = ()
    """Marks of which a test must have one too, if those of `ours` say less than the row."""
    by: str = ""
    """A dotted name of ours that returns or takes `ours`. A test of it counts too."""
