"""Sends the prompts of a session, and keeps their turns and the checkpoints between them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from steersman._session.lifecycle import Lifecycle
from steersman._session.parts import Parts
from steersman._session.reading import SessionReaders
from steersman._session.recovery import continuation
from steersman._session.turn import SentPrompt, Turn, When
from steersman._uuids import new_uuid, uuid_of
from steersman.errors import ChannelClosed, KeyTaken, UsageError
from steersman.journal import Move
from steersman.options import checks
from steersman.permissions import CanUseTool
from steersman.ports import StoredTurn

MOST_SETTLED = 200


class PromptSender:
    """Gives each prompt a uuid and a turn. Prompts with the same key have the same."""

    def __init__(self, parts: Parts, lifecycle: Lifecycle, readers: SessionReaders) -> None:
        self._parts = parts
        self._lifecycle = lifecycle
        self._readers = readers
        self.count = PromptCount()
        self.known = KnownTurns()
        self.waiting = 0
        """How many calls of `finish()` are in progress; they end the sending of prompts."""
        self._keyed: dict[str, SentPrompt] = {}
        self._given: set[str] = set()
        """The uuids that the caller has chosen."""
        self._storing = asyncio.Lock()
        """Held while a turn is stored and its prompt is sent."""

    async def send(
        self,
        content: Any,
        fields: dict[str, Any],
        when: When,
        key: str | None,
        uuid: str | None = None,
    ) -> Turn:
        """Send a prompt, or find the turn of the same prompt with the same key.

        Waits only for a store that keeps the turns.
        """
        self.require_open()
        if not (key is None or (isinstance(key, str) and key)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("key", key, "a text that is not empty, or None")
        if uuid is not None:
            checks.uuid("uuid", uuid)
            if key is not None:
                raise UsageError("uuid", uuid, "None beside key=, which chooses the uuid")
        if not self._parts.durability.keeps_turns:
            return self._send(content, fields, when, key, uuid)
        # One at a time: rows are stored in the order of the calls, and a key once.
        async with self._storing:
            known = self._find(key, content, fields)
            if known is not None:
                return known
            self._check_new()
            stored = StoredTurn(self._uuid_of(key, uuid), key, content, fields, when)
            is_chosen = key is not None or uuid is not None
            turn = await self._send_stored(stored, is_chosen=is_chosen)
            if uuid is not None:
                self._given.add(uuid)
            return turn

    def _send(
        self,
        content: Any,
        fields: dict[str, Any],
        when: When,
        key: str | None,
        given: str | None,
    ) -> Turn:
        known = self._find(key, content, fields)
        if known is not None:
            return known
        self._check_new()
        prompt = SentPrompt(self._readers, self._uuid_of(key, given), content, fields, when)
        is_chosen = key is not None or given is not None
        prompt.may_be_processed = is_chosen and self._parts.options.goes_on
        turn = self._submit(prompt, key)
        if given is not None:
            self._given.add(given)
        return turn

    def _find(self, key: str | None, content: Any, fields: dict[str, Any]) -> Turn | None:
        known = None if key is None else self._keyed.get(key)
        if key is None or known is None:
            return None
        if (known.content, known.fields) != (content, fields):
            raise KeyTaken(key)
        return known.turn

    def _check_new(self) -> None:
        """Raise if no further prompt may be sent."""
        # `/clear` begins another conversation.
        self._parts.ownership.follow(self._parts.slot.session_id)
        self._parts.limits.refuse_more()

    def _submit(
        self, prompt: SentPrompt, key: str | None, resumed: Sequence[CanUseTool] = ()
    ) -> Turn:
        """Send the prompt, unless the CLI continues its turn by itself, with these calls."""
        if key is not None:
            self._keyed[key] = prompt
        self.count.sent(prompt.uuid)
        self.known.add(prompt.turn)
        if resumed:
            self._parts.prompts.adopt(prompt, resumed)
        else:
            self._parts.prompts.submit(prompt)
        self._parts.durability.holding.prompt_sent()
        self._parts.status.move(Move.BEGIN)
        return prompt.turn

    # Turns that a store keeps

    async def _send_stored(
        self, stored: StoredTurn, *, is_again: bool = False, is_chosen: bool = True
    ) -> Turn:
        """Store the turn, and send its prompt. A turn of an earlier session is continued."""
        durability = self._parts.durability
        when = cast("When", stored.when)
        prompt = SentPrompt(self._readers, stored.uuid, stored.content, stored.fields, when)
        prompt.may_be_processed = is_again or (is_chosen and self._parts.options.goes_on)
        if prompt.may_be_processed:
            prompt.continuation = continuation(await durability.asks_of(stored.uuid))
        # `/clear` begins another conversation.
        await self._parts.ownership.own(self._parts.slot.session_id)
        await durability.begin(stored)
        try:
            self.require_open()
            resumed = await self._resumed(prompt)
            self.require_open()
        except BaseException:
            # A turn with a key is promised with its row.
            is_promised = is_again or stored.key is not None
            durability.settled(stored.uuid, "parked" if is_promised else "cancelled")
            raise
        return self._submit(prompt, stored.key, resumed)

    async def _resumed(self, prompt: SentPrompt) -> Sequence[CanUseTool]:
        """Return the calls at which the CLI continues the turn by itself; none if it does not."""
        prompts = self._parts.prompts
        if not prompt.may_be_processed or prompts.is_busy or self.count.is_any:
            return ()
        found = await self._parts.durability.holding.resumed(prompt.uuid)
        return () if prompts.is_busy else found

    async def resume_turns(self) -> list[Turn]:
        """Send the unsettled turns of the conversation again, in their order."""
        self.require_open()
        if not self._parts.durability.keeps_turns:
            raise UsageError(
                "inbox",
                self._parts.options.inbox,
                "an inbox in a store, which keeps the turns",
                hint='pass inbox=SqliteStore("work.db").inbox()',
            )
        found: list[Turn] = []
        async with self._storing:
            for each in await self._parts.durability.unsettled():
                known = self.known.get(each.uuid)
                if known is None:
                    self._check_new()
                    # Not into the turn of another one, which `next` and `now` would do.
                    again = replace(each, when="later", state="open")
                    known = await self._send_stored(again, is_again=True)
                if not known.is_settled:
                    found.append(known)
        return found

    def require_open(self) -> None:
        """Raise if no prompt can be sent. During a restart prompts are queued."""
        self._parts.slot.home.check()
        if self._parts.prompts.is_parking:
            raise ChannelClosed("this session is parked", hint="open the conversation again")
        if self.waiting:
            raise ChannelClosed("this session takes no more prompts: `finish()` has been called")
        if not self._lifecycle.is_restarting:
            self._parts.slot.require()

    def _uuid_of(self, key: str | None, given: str | None) -> str:
        """Return the uuid of a new prompt: the caller's, that of its key, or a new one."""
        if given is None:
            return new_uuid() if key is None else self._uuid_for(key)
        if given in self._given or self.known.get(given) is not None:
            raise UsageError(
                "uuid",
                given,
                "one that no prompt of this session has: the CLI drops the second one",
                hint="pass another uuid, or none",
            )
        return given

    def _uuid_for(self, key: str) -> str:
        session_id = self._parts.slot.session_id
        if session_id is None:
            allowed = "None: with continue_conversation, this CLI reports the id in its first turn"
            raise UsageError("key", key, allowed, hint="pass resume= with the id, or send it later")
        return uuid_of(session_id, key)


class KnownTurns:
    """All turns that have not settled, and the last ones that have, in the order of their prompts.

    Older turns are not kept, so that a session of many prompts does not grow with them.
    """

    def __init__(self, most_settled: int = MOST_SETTLED) -> None:
        self._most = most_settled
        self._look_at = most_settled
        """How many turns there must be for the next look at which have settled."""
        self._turns: dict[str, Turn] = {}

    def add(self, turn: Turn) -> None:
        """Add a new turn, and drop the oldest settled ones if there are too many."""
        self._turns[turn.uuid] = turn
        if len(self._turns) > self._look_at:
            settled = [uuid for uuid, each in self._turns.items() if each.is_settled]
            for uuid in settled[: -self._most]:
                del self._turns[uuid]
            # Not with every prompt: looking takes longer than sending one.
            self._look_at = len(self._turns) + self._most // 8

    @property
    def all(self) -> tuple[Turn, ...]:
        """The turns that are known."""
        return tuple(self._turns.values())

    def get(self, uuid: str) -> Turn | None:
        """Return the turn with this uuid, if it is known."""
        return self._turns.get(uuid)

    def find(self, uuid: str) -> Turn:
        """Return the turn with this uuid. Raises `UsageError` if it is not known."""
        found = self._turns.get(uuid)
        if found is None:
            raise UsageError("uuid", uuid, "the uuid of a turn in session.turns")
        return found


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A point in a conversation. A plain value: another process can store and use it."""

    session_id: str
    message_uuid: str
    """The last message of the model."""
    prompts: int
    """How many prompts this session had sent by then."""


class PromptCount:
    """Counts prompts. Keeps the uuids only of those that were the first after a checkpoint."""

    def __init__(self) -> None:
        self._count = 0
        self._after: dict[int, str | None] = {}
        """The first prompt after each checkpoint, by the count at the checkpoint."""

    @property
    def is_any(self) -> bool:
        """Whether a prompt was sent."""
        return self._count > 0

    def sent(self, uuid: str) -> None:
        """Count a prompt."""
        if self._count in self._after and self._after[self._count] is None:
            self._after[self._count] = uuid
        self._count += 1

    def checkpoint(self) -> int:
        """Return the count, and keep the prompt that is sent next."""
        self._after.setdefault(self._count)
        return self._count

    def first_after(self, checkpoint: int) -> str | None:
        """Return the first prompt after a checkpoint of this session; `None` if there is none."""
        return self._after.get(checkpoint)

    def rewind(self, checkpoint: int) -> None:
        """Forget what was sent after a checkpoint."""
        kept = {count: uuid for count, uuid in self._after.items() if count < checkpoint}
        self._after = {**kept, checkpoint: None}
        self._count = checkpoint
