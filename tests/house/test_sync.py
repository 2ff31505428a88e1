"""`steersman.sync` has the names, the parameters and the docstrings of the async API."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

import pytest

import steersman
import steersman.agent
import steersman.inbox
import steersman.sync

TWINS: Mapping[str, tuple[type, type]] = {
    "Agent": (steersman.agent.Agent, steersman.sync.Agent),
    "Session": (steersman.agent.Session, steersman.sync.Session),
    "Turn": (steersman.agent.Turn, steersman.sync.Turn),
    "Query": (steersman.agent.Query, steersman.sync.Query),
    "Inbox": (steersman.inbox.Inbox, steersman.sync.Inbox),
}
FUNCTIONS = ("query", "run", "run_result")

RENAMED = {
    "aclose": "close",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "__anext__": "__next__",
}
"""Names of the async API that say that they are async."""

NOT_HERE: Mapping[str, str] = {
    "Turn.__await__": "turn.result()",
    "Query.__iter__": "an Iterator has it",
    "Inbox.close_ask": "only sessions call it, and they use the inbox inside",
}
"""What has no counterpart, and what does instead."""

ONLY_HERE: Mapping[str, str] = {
    "Session.__del__": "a session that is no longer referenced is closed",
    "Turn.result(timeout)": "asyncio.timeout() does it in async code",
    "Inbox.inbox": "the inbox inside",
}

MADE_OTHERWISE = {
    *(f"{name}.__init__" for name in TWINS if name != "Agent"),
    "Session.__enter__",
    "Agent.open",
}
"""Made from their counterpart, or returned as themselves."""

SAID_OTHERWISE = {
    "Session": "says in which event loop it runs, and that it closes itself",
    "Turn": "has no await, and says what ctrl-c does",
    "Inbox": "says what it is made from",
    "Agent.open": "returns a session, where the async one returns an awaitable",
    "Session.close": "cannot be awaited later",
    "Turn.result": "has a timeout, and any thread may call it",
    "Inbox.close": "passes may_return on",
}

SAME_IN_SYNC = (
    (r"\basync (with|for)\b", r"\1"),
    (r"\baclose\b", "close"),
    (r"an async iterator", "an iterator"),
)

ANNOTATIONS = (
    (r"Coroutine\[Any, Any, (.*)\]", r"\1"),
    (r"\bAsyncItera(tor|ble)\b", r"Iterator"),
    (r"\bWatch\b", "Iterator[Change]"),
)


def members(kind: type) -> dict[str, Any]:
    """Return the names that a class defines: public ones, and those that `with` and `for` call."""
    special = {"__init__", "__del__", "__await__", "__iter__", *RENAMED, *RENAMED.values()}
    return {
        name: each
        for name, each in vars(kind).items()
        if (not name.startswith("_") or name in special) and callable(_function(each))
    }


def _function(member: Any) -> Any:
    return member.fget if isinstance(member, property) else member


def in_sync(text: str, changes: tuple[tuple[str, str], ...]) -> str:
    for pattern, replacement in changes:
        text = re.sub(pattern, replacement, text)
    return text


def pairs() -> dict[str, tuple[Any, Any]]:
    """Return each member of the async classes with its counterpart, None where there is none."""
    found: dict[str, tuple[Any, Any]] = {
        name: (getattr(steersman.agent, name), getattr(steersman.sync, name)) for name in FUNCTIONS
    }
    for name, (ours, theirs) in TWINS.items():
        here = members(theirs)
        for member, each in members(ours).items():
            called = RENAMED.get(member, member)
            found[f"{name}.{called}"] = each, here.pop(called, None)
        for member, each in here.items():
            found.setdefault(f"{name}.{member}", (None, each))
    return found


def parameters(function: Any) -> list[str]:
    signature = inspect.signature(_function(function))
    return [
        in_sync(str(each), ANNOTATIONS)
        for each in (*signature.parameters.values(), signature.return_annotation)
    ]


def test_every_name_of_the_async_api_is_there_and_no_other() -> None:
    alone = {name for name, pair in pairs().items() if None in pair}

    assert alone == {*NOT_HERE, *(name for name in ONLY_HERE if "(" not in name)} - {"Inbox.inbox"}


@pytest.mark.parametrize("name", sorted(set(pairs()) - MADE_OTHERWISE))
def test_parameters_and_results_are_the_same(name: str) -> None:
    ours, theirs = pairs()[name]
    if ours is None or theirs is None:
        return
    here = parameters(theirs)
    if name == "Turn.result":
        here.remove("timeout: 'float | None' = None")

    assert here == parameters(ours)
    assert not inspect.iscoroutinefunction(_function(theirs))


@pytest.mark.parametrize("name", sorted((set(pairs()) | set(TWINS)) - set(SAID_OTHERWISE)))
def test_docstrings_are_the_same_but_for_async_and_await(name: str) -> None:
    ours, theirs = {**pairs(), **TWINS}[name]
    if ours is None or theirs is None or name in MADE_OTHERWISE:
        return

    assert theirs.__doc__ == (ours.__doc__ and in_sync(ours.__doc__, SAME_IN_SYNC))


@pytest.mark.parametrize("name", sorted(SAID_OTHERWISE))
def test_a_docstring_that_differs_is_there_and_really_differs(name: str) -> None:
    ours, theirs = {**pairs(), **TWINS}[name]

    assert theirs.__doc__
    assert theirs.__doc__ != in_sync(str(ours.__doc__), SAME_IN_SYNC)


def test_stored_sessions_are_those_of_synchronous_code() -> None:
    from steersman.sessions import Sessions  # noqa: PLC0415 - next to what it is compared with

    assert steersman.sync.Sessions is Sessions
