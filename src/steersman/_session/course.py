"""All that a session is told before it starts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from steersman._launch.plan import LaunchPlan
from steersman.journal import Entry
from steersman.options import Options
from steersman.ports import Clock, Sink, ToolServer, Transport

if TYPE_CHECKING:
    from steersman._session.policing import Policing

__all__ = ["Continuation", "Course", "Flight"]

Redact = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Continuation:
    """How another CLI takes up a conversation."""

    session_id: str
    is_new: bool = False
    """Whether the last CLI was lost before it had written anything down."""
    reruns: bool = False
    """Whether a turn was under way that is to go on."""
    at: str | None = None
    """The message up to which the conversation counts; `None` is all of it."""


@dataclass(frozen=True, slots=True)
class Flight:
    """What a session was doing when something went wrong."""

    error: BaseException
    session_id: str | None
    entries: Sequence[Entry]
    stderr_tail: str
    cli_version: str


def _as_it_is(server: Any) -> ToolServer:
    return cast("ToolServer", server)


def _unread(_session_id: str) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Course:
    """Where a session runs and how."""

    options: Options
    plan: LaunchPlan
    transport: Transport
    servers: Mapping[str, ToolServer]
    clock: Clock = time.time
    again: Callable[[Continuation], LaunchPlan] | None = None
    """Plans the next CLI; without it there is only one."""
    adopt: Callable[[Any], ToolServer] = _as_it_is
    """Makes a tool server of what is given for one while the session runs."""
    record: Callable[[Redact, Callable[[str], None]], Sink] | None = None
    """Opens where the journal is kept beside memory; gets what takes secrets out, and reports."""
    branch: Callable[[str, Mapping[str, Any]], Any] | None = None
    """Opens another session that begins where the conversation of that id stands."""
    transcript: Callable[[str], list[bytes] | None] = _unread
    """The lines that the CLI has written down about the conversation of that id, if we can tell."""
    on_flight: Callable[[Flight], None] | None = None
    """Keeps what is known after an error."""
    policy_hook: Policing | None = None
    """The hook of the policy, which is also among the hooks of `options`."""
