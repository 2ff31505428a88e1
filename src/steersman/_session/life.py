"""One life of a session: a CLI, from its start to its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from steersman._session.handlers import Handlers
from steersman._session.ledger import Ledger
from steersman._session.link import Link
from steersman._session.log import Log
from steersman.errors import LimitReached, Stalled

__all__ = ["Life", "Living"]


@dataclass(frozen=True, slots=True)
class Life:
    """The link to a CLI, and the answers that it waits for."""

    link: Link
    handlers: Handlers


class Living(Protocol):
    """What those who keep an eye on a session may know, and do to it."""

    @property
    def log(self) -> Log:
        """The journal."""
        ...

    @property
    def ledger(self) -> Ledger:
        """The prompts."""
        ...

    @property
    def life(self) -> Life | None:
        """The CLI."""
        ...

    def kill(self, why: Stalled | LimitReached) -> None:
        """End a CLI that does not obey."""
        ...
