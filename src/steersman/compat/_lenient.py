"""Options and agent definitions that the CLI checks, and steersman does not."""

from __future__ import annotations

from dataclasses import dataclass, field

from steersman._json import JsonDict
from steersman.options.agents import AgentDefinition
from steersman.options.checks import plain
from steersman.options.fields import Options


@dataclass(frozen=True, slots=True, kw_only=True)
class LenientOptions(Options):
    """Options whose values and combinations are not checked: `translate` has made them."""

    @property
    def is_checked(self) -> bool:
        """False."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenAgent(AgentDefinition):
    """A subagent in the CLI's own form."""

    form: JsonDict = field(repr=False)

    def __post_init__(self) -> None:
        """Check nothing."""

    def written(self, place: str = "agent") -> JsonDict:
        """Return the form. Raises `UsageError` for a value that is not JSON."""
        written: JsonDict = plain(place, self.form)
        return written
