"""Which task waits for the function that runs in a worker thread."""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any

WAITING_TASK: contextvars.ContextVar[asyncio.Task[Any] | None] = contextvars.ContextVar(
    "steersman_waiting_task", default=None
)
"""In a worker thread: the task that waits for the function that runs there.

A call through a portal carries it into the event loop, where a session can refuse what would make
that task wait for itself.
"""
