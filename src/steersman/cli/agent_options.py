"""What `run` and `chat` have in common: the words that make an agent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from steersman.agent import Agent
from steersman.cli.importing import load_agent
from steersman.errors import UsageError
from steersman.options import Caps, Limits
from steersman.permissions import Policy

if TYPE_CHECKING:
    from steersman.options.keywords import OptionKwargs

F = TypeVar("F", bound=Callable[..., Any])

OPTIONS = (
    click.option(
        "--agent",
        metavar="MODULE:NAME",
        help="An Agent of your own, or a function that returns one.",
    ),
    click.option("--cwd", metavar="DIR", type=click.Path(), help="The directory to work in."),
    click.option("--model", metavar="NAME", help="The model, by alias or full name."),
    click.option(
        "--policy",
        metavar="FILE",
        type=click.Path(),
        help="Rules about tool calls, in TOML; what no rule decides is asked.",
    ),
    click.option(
        "--max-usd", metavar="USD", type=float, help="Stop when this much has been spent."
    ),
    click.option("--resume", metavar="SESSION", help="Continue this conversation."),
    click.option(
        "--journal", metavar="FILE", type=click.Path(), help="Write everything that happens here."
    ),
)


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
        base = Agent() if self.agent is None else load_agent(self.agent)
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
        return base, words


def agent_options(command: F) -> F:
    """Add the options to a command of click."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def read_file(option: str, path: str) -> str:
    """Return the text of a file that an option names. Raises `UsageError`."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(option, path, f"a file that can be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UsageError(option, path, "a file of UTF-8 text") from None
