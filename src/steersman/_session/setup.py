"""What a session is given before it starts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from steersman._background import BackgroundTasks
from steersman._launch.plan import LaunchPlan
from steersman._releases import TABLE, ReleaseTable
from steersman._session.cli import CliSlot
from steersman._session.durability import not_durable
from steersman._session.journal_writer import JournalWriter
from steersman._session.listeners import EventListeners
from steersman._session.ownership import Claim
from steersman._session.prompt_queue import PromptQueue
from steersman._session.requests.responder import Responder
from steersman.journal import Entry
from steersman.options import Options
from steersman.ports import Clock, Durability, Mirror, Sink, ToolServer, Transport
from steersman.transcripts.keys import SessionKey

if TYPE_CHECKING:
    from steersman._session.requests.policy_hook import PolicyHook
    from steersman.options.keywords import OptionKwargs

Redact = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Resumption:
    """How the next CLI resumes a conversation."""

    session_id: str
    is_new: bool = False
    """Whether the last CLI exited before it had saved anything."""
    reruns: bool = False
    """Whether the CLI must continue the turn in which the last one exited."""
    at: str | None = None
    """The uuid of the last message to keep; `None` keeps all of them."""
    path: str | None = None
    """The file of the conversation, if it was resumed by its path."""
    changed: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Options that were changed in the last CLI, and that the next one starts with."""


@dataclass(frozen=True, slots=True)
class FlightData:
    """What is saved about a session after an error."""

    error: BaseException
    session_id: str | None
    entries: Sequence[Entry]
    stderr_tail: str
    cli_version: str
    redact: Callable[[str], str] = str
    """Removes the secrets that the CLI was given."""


class NoMirror:
    """The mirror of a session without a store: nothing is copied, and nothing is found."""

    is_unused = True

    async def find(self) -> str | None:
        """Return that only the CLI can find the conversation."""
        return None

    async def restore(self, session_id: str | None) -> str | None:  # noqa: ARG002 - a port
        """Return that the choice is left to the CLI."""
        return None

    def received(self, line: bytes) -> None:
        """Ignore it; without a store the CLI sends no such lines."""

    def flush(self) -> None:
        """Do nothing."""

    def resumes(self) -> None:
        """Do nothing."""

    def lost_sight(self, *, at_once: bool = False) -> None:
        """Do nothing."""

    async def close(self) -> bool:
        """Return that nothing is missing."""
        return True


def no_mirror(*_of_the_session: object) -> Mirror:
    """Return the mirror of a session without a store."""
    return NoMirror()


OpenMirror = Callable[
    [Callable[[], bool], Callable[[str, SessionKey | None], None], BackgroundTasks], Mirror
]
"""Makes the mirror of a session.

Takes a function that returns whether no turn runs, one that reports an error, and what runs the
task of the mirror.
"""


def _as_it_is(server: Any) -> ToolServer:
    return cast("ToolServer", server)


def _unread(_session_id: str) -> None:
    return None


def _removes_nothing(_session_id: str) -> bool:
    return False


def _unknown(_of: object) -> None:
    return None


@dataclass(frozen=True, slots=True)
class SessionSetup:
    """Options, plan and transport of a session, and the functions that it is given."""

    options: Options
    plan: LaunchPlan
    transport: Transport
    servers: Mapping[str, ToolServer]
    clock: Clock = time.time
    plan_next: Callable[[Resumption], LaunchPlan] | None = None
    """Plans the next CLI; without it a lost CLI is not replaced."""
    as_tool_server: Callable[[Any], ToolServer] = _as_it_is
    """Converts an MCP server that is added while the session runs."""
    open_journal: Callable[[Redact, Callable[[str], None]], Sink] | None = None
    """Opens the journal's sinks; gets a function that removes secrets, and one that reports."""
    fork: Callable[[str, OptionKwargs], Any] | None = None
    """Creates the session that `session.fork()` returns, from a session id and overrides."""
    transcript: Callable[[str], list[bytes] | None] = _unread
    """Reads the lines of the CLI's session file by session id, or by the path of the file.

    `None` if it cannot be read.
    """
    is_saved: Callable[[str], bool | None] = _unknown
    """Whether the CLI has saved the conversation with this id, or in the file at this path.

    `None` if that is not known.
    """
    remove_unwritten: Callable[[str], bool] = _removes_nothing
    """Removes the file of a conversation of which the CLI has written no message, if there is one.

    Returns whether it has removed one.
    """
    running_session: Callable[[int], str | None] = _unknown
    """Finds the id of the conversation that the CLI of this pid has open; `None` if unknown."""
    releases: ReleaseTable = TABLE
    """Which release of the CLI keeps which promise."""
    reports_version: bool = False
    """Whether the transport runs the program with `--version` too, as those to the stock CLI do."""
    claim: Claim | None = None
    """Locks a conversation, so that it has one owner; None if it is not saved."""
    save_flight: Callable[[FlightData], None] | None = None
    """Saves what is known after an error."""
    mirror: OpenMirror = no_mirror
    """Makes the part that copies the conversation to the session store."""
    plan_from: Callable[[str], LaunchPlan] | None = None
    """Plans the first CLI from what is found in the store; None if nothing is resumed from there.
    """
    policy_hook: PolicyHook | None = None
    """The hook of the policy, which is also among the plan's hooks; `build()` connects it."""
    durable: Callable[[DurableHost], Durability] = not_durable
    """Makes what keeps the lease and the turns of the session in a store, if its inbox is in one.
    """


@dataclass(frozen=True, slots=True)
class DurableHost:
    """What `durable` knows of its session while that is built: what it is given, the parts below.

    `SessionSetup.durable` gets it.
    """

    setup: SessionSetup
    slot: CliSlot
    journal: JournalWriter
    listeners: EventListeners
    prompts: PromptQueue
    background: BackgroundTasks
    report: Callable[[str, BaseException | str], None]
    responder: Callable[[], Responder]
    """Returns the part above, which answers the CLI's requests; to be called once it is built."""

    def transcript(self) -> Sequence[bytes]:
        """Return the lines of the CLI's session file."""
        place = self.slot.place
        return (None if place is None else self.setup.transcript(place)) or ()
