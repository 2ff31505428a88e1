"""Flags in `extra_args` that have an option here, or that every session has."""

from __future__ import annotations

from typing import Any, TypeAlias

from steersman.errors import Described, UsageError
from steersman.options import checks

REPLAYS = "replay-user-messages"
"""Stays in `extra_args`: with it, replayed prompts are messages for the caller."""

PARTIALS = "include-partial-messages"
SESSION_ID = "session-id"
SWITCHES = frozenset({REPLAYS, PARTIALS, "print", "verbose"})

RESERVED = frozenset(
    {
        "await-initialize",
        "input-format",
        "managed-settings-in-initialize",
        "output-format",
        "permission-prompt-tool",
    }
)
"""Flags that `extra_args` may not have: steersman needs the values that it gives them."""

OptionsValue: TypeAlias = Any
"""An `Options`. Its module imports this one, so naming the class would be an import cycle."""


def adopt_flags(options: OptionsValue) -> None:
    """Set the options that flags in `extra_args` mean, and leave these flags out of it."""
    extra: dict[str, str | None] = dict(options.extra_args)
    for name in sorted(RESERVED & extra.keys()):
        raise UsageError(
            f"extra_args[{name!r}]", Described("a flag that every session sets"), "other flags"
        )
    for name in SWITCHES & extra.keys():
        if extra[name] is not None:
            raise UsageError(f"extra_args[{name!r}]", extra[name], "None: this flag has no value")
    if PARTIALS in extra:
        object.__setattr__(options, "include_partial_messages", True)
    if SESSION_ID in extra:
        _adopt_id(options, extra[SESSION_ID])
    left = {name: value for name, value in extra.items() if name not in ADOPTED}
    if len(left) < len(extra):
        object.__setattr__(options, "extra_args", left)


ADOPTED = (SWITCHES | {SESSION_ID}) - {REPLAYS}


def _adopt_id(options: OptionsValue, given: str | None) -> None:
    place = f"extra_args[{SESSION_ID!r}]"
    checks.uuid(place, given)
    if options.session_id not in (None, given):
        raise UsageError(place, given, "the same id as session_id=, or only one of them")
    object.__setattr__(options, "session_id", given)
