"""Imports what an argument names as `module:name`. Modules of the current folder are found, too."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steersman._terminal import one_line
from steersman.errors import UsageError

if TYPE_CHECKING:
    from steersman.agent import Agent


def imported(argument: str, name: str, form: str) -> Any:
    """Return what `name` names. Raises `UsageError` if it cannot be imported.

    `form` describes what is allowed, for a name without a colon.
    """
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise UsageError(argument, name, form)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except Exception as error:
        reason = one_line(f"{type(error).__name__}: {error}")
        raise UsageError(
            argument, name, "one that can be imported", hint=f"it raised {reason}"
        ) from error
    return found


def load_agent(name: str) -> Agent:
    """Return the agent that `module:name` names, or that a function of that name returns."""
    from steersman.agent import Agent  # noqa: PLC0415 - loads all that runs a session

    found = imported("--agent", name, "a module and a name, as my_app.agents:reviewer")
    try:
        found = found if isinstance(found, Agent) or not callable(found) else found()
    except Exception as error:
        reason = one_line(f"{type(error).__name__}: {error}")
        raise UsageError(
            "--agent", name, "a function that returns an Agent", hint=f"it raised {reason}"
        ) from error
    if not isinstance(found, Agent):
        raise UsageError("--agent", name, "an Agent, or a function that returns one")
    return found
