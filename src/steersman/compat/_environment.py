"""Environment variables, as the official SDK passes them: all that this process has, and `env`."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING

from steersman._launch.environment import MARKS, PROTOCOL
from steersman.compat._warnings import warn

if TYPE_CHECKING:
    from steersman.compat._shapes.options import ClaudeAgentOptions

logger = logging.getLogger("steersman.compat")

REPLACED = frozenset({"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"})
"""Variables of an outer Claude Code session that the official SDK does not pass on either."""

BY_OPTION = {
    "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "enable_file_checkpointing",
    "CLAUDE_AGENT_SDK_CLIENT_APP": "client_app",
}
"""Variables that an option sets, whatever `env` has."""


def variables(options: ClaudeAgentOptions) -> dict[str, str]:
    """Return the variables to set, beside those that the CLI inherits."""
    marks = {name: os.environ[name] for name in (MARKS - REPLACED) & os.environ.keys()}
    found = {**marks, **_trace(), **(options.env or {})}
    for name, value in found.items():
        if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"env[{name!r}]: pass a string, not {type(value).__name__}")
    for name in PROTOCOL.keys() & found.keys():
        if found[name] != PROTOCOL[name]:
            warn(f"env[{name!r}] has no effect: steersman needs it as {PROTOCOL[name]!r}")
            del found[name]
    for name, option in BY_OPTION.items():
        if getattr(options, option) not in (None, False):
            found.pop(name, None)
    if options.cwd:
        found["PWD"] = str(options.cwd)
    return found


def _trace() -> dict[str, str]:
    """Return the variables that make the CLI's spans children of the current OpenTelemetry span.

    Without OpenTelemetry, or without a span, those of this process are inherited.
    """
    if "opentelemetry.trace" not in sys.modules:
        return {}
    carrier: dict[str, str] = {}
    try:
        from opentelemetry import propagate  # noqa: PLC0415 - loaded already, if at all

        propagate.inject(carrier)
    except Exception:  # propagators of the program, which must not prevent the start
        logger.exception("the current span cannot be passed to the CLI")
    if "traceparent" not in carrier:
        return {}
    # The state that this process inherited belongs to another span.
    return {"TRACEPARENT": carrier["traceparent"], "TRACESTATE": carrier.get("tracestate", "")}
