"""The library without `await`: `run`, `query`, `Agent`, `Session`, `Turn`, `Sessions`, `Inbox`.

Sessions run in an event loop of their own, in a daemon thread that the first call starts. So this
works in a script, in a notebook, in several threads, and where another event loop runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy import by_name

if TYPE_CHECKING:
    from steersman.sessions import Sessions as Sessions
    from steersman.sync.agent import Agent as Agent
    from steersman.sync.agent import Query as Query
    from steersman.sync.agent import query as query
    from steersman.sync.agent import run as run
    from steersman.sync.agent import run_result as run_result
    from steersman.sync.inbox import Inbox as Inbox
    from steersman.sync.session import Session as Session
    from steersman.sync.turn import Turn as Turn
else:
    __getattr__, __dir__ = by_name(
        __name__,
        {
            "sessions": ("Sessions",),
            "sync.agent": ("Agent", "Query", "query", "run", "run_result"),
            "sync.inbox": ("Inbox",),
            "sync.session": ("Session",),
            "sync.turn": ("Turn",),
        },
        below="steersman",
    )

__all__ = [
    "Agent",
    "Inbox",
    "Query",
    "Session",
    "Sessions",
    "Turn",
    "query",
    "run",
    "run_result",
]
