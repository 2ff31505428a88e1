"""All that a session is told before it starts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from steersman._wire.launch import Plan
from steersman.options import Options
from steersman.ports import Clock, Sink, ToolServer, Transport

__all__ = ["Continuation", "Course"]


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


def _as_it_is(server: Any) -> ToolServer:
    return cast("ToolServer", server)


@dataclass(frozen=True, slots=True)
class Course:
    """Where a session runs and how."""

    options: Options
    plan: Plan
    transport: Transport
    servers: Mapping[str, ToolServer]
    clock: Clock = time.time
    again: Callable[[Continuation], Plan] | None = None
    """Plans the next CLI; without it there is only one."""
    adopt: Callable[[Any], ToolServer] = _as_it_is
    """Makes a tool server of what is given for one while the session runs."""
    sink: Sink | None = None
    """Where the journal is kept beside memory."""
