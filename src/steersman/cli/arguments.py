"""Makes values of arguments: an agent, a file's text, what is named as `module:name`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steersman._terminal import one_line
from steersman.errors import UsageError
from steersman.options import Caps, Limits
from steersman.permissions import Policy

if TYPE_CHECKING:
    from steersman.agent import Agent
    from steersman.options.keywords import OptionKwargs


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentWords:
    """The words of the command line that make an agent."""

    agent: str | None = None
    cwd: str | None = None
    model: str | None = None
    policy: str | None = None
    max_usd: float | None = None
    resume: str | None = None
    journal: str | None = None

    def make(self) -> tuple[Agent, OptionKwargs]:
        """Return the agent, and the options of its session. Raises `UsageError`."""
        words: OptionKwargs = {}
        if self.cwd is not None:
            words["cwd"] = self.cwd
        if self.model is not None:
            words["model"] = self.model
        if self.policy is not None:
            words["policy"] = Policy.from_toml(read_file("--policy", self.policy))
        if self.max_usd is not None:
            # The CLI ends the turn that passes it; ours refuses further prompts.
            words["max_budget_usd"] = self.max_usd
            words["limits"] = Limits(session=Caps(usd=self.max_usd))
        if self.resume is not None:
            words["resume"] = self.resume
        if self.journal is not None:
            words["journal"] = self.journal
        return load_agent(self.agent), words


def read_file(option: str, path: str) -> str:
    """Return the text of a file that an option names. Raises `UsageError`."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(option, path, f"a file that can be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UsageError(option, path, "a file of UTF-8 text") from None


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


def load_agent(name: str | None) -> Agent:
    """Return the agent that `module:name` names, or that a function of that name returns.

    Without a name, an agent that is configured in no way.
    """
    from steersman.agent import Agent  # noqa: PLC0415 - loads all that runs a session

    if name is None:
        return Agent()
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
