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
    from steersman._session.requests.policy_hook import PolicyHook

__all__ = ["FlightData", "Resumption", "SessionSetup"]

Redact = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Resumption:
    """How another CLI takes up a conversation."""

    session_id: str
    is_new: bool = False
    """Whether the last CLI was lost before it had written anything down."""
    reruns: bool = False
    """Whether a turn was under way that is to go on."""
    at: str | None = None
    """The message up to which the conversation counts; `None` is all of it."""


@dataclass(frozen=True, slots=True)
class FlightData:
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
class SessionSetup:
    """Where a session runs and how."""

    options: Options
    plan: LaunchPlan
    transport: Transport
    servers: Mapping[str, ToolServer]
    clock: Clock = time.time
    plan_next: Callable[[Resumption], LaunchPlan] | None = None
    """Plans the next CLI; without it there is only one."""
    as_tool_server: Callable[[Any], ToolServer] = _as_it_is
    """Makes a tool server of what is given for one while the session runs."""
    open_journal: Callable[[Redact, Callable[[str], None]], Sink] | None = None
    """Opens where the journal is kept beside memory; gets what takes secrets out, and reports."""
    fork: Callable[[str, Mapping[str, Any]], Any] | None = None
    """Opens another session that begins where the conversation of that id stands."""
    transcript: Callable[[str], list[bytes] | None] = _unread
    """The lines that the CLI has written down about the conversation of that id, if we can tell."""
    save_flight: Callable[[FlightData], None] | None = None
    """Keeps what is known after an error."""
    policy_hook: PolicyHook | None = None
    """The policy's own hook, one of the plan's; `build()` connects it to the session's parts."""
