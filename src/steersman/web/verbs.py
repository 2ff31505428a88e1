"""What viewers can do, the same for HTTP and for live frames: begin, steer, answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, cast, get_args

from steersman._json import JsonDict
from steersman.agent import Turn
from steersman.errors import AskError, AskNotFound, UsageError
from steersman.options import PermissionMode
from steersman.web.asks import Continuing, OpenAsks
from steersman.web.conversation import Conversation
from steersman.web.conversations import Conversations
from steersman.web.failures import Refusal, bad_request, refusal_of
from steersman.web.fields import MOST_KEY, Fields, prompt_of
from steersman.web.limits import WebLimits, Writes
from steersman.web.viewers import Action, Viewer

MOST_ANSWERS = 100

RIGHTS: Mapping[str, tuple[Action, ...]] = {
    "begin": ("steer",),
    "send": ("steer",),
    "withdraw": ("steer",),
    "interrupt": ("steer",),
    "pause": ("steer",),
    "resume": ("steer",),
    "cancel": ("steer",),
    "set_model": ("steer",),
    # A mode answers asks.
    "set_permission_mode": ("steer", "answer"),
    "answer": ("answer",),
    "answer_many": ("answer",),
}
"""What a viewer must be allowed for each verb, beside `see`."""

T = TypeVar("T")


class Verbs:
    """Does what viewers ask for, if they may."""

    def __init__(
        self,
        conversations: Conversations,
        asks: OpenAsks,
        continuing: Continuing,
        limits: WebLimits,
        writes: Writes,
    ) -> None:
        self.conversations = conversations
        self.asks = asks
        self._continuing = continuing
        self._limits = limits
        self._writes = writes
        self._tasks: set[asyncio.Task[Any]] = set()

    async def do(self, viewer: Viewer, verb: str, session: str, fields: Fields) -> JsonDict:
        """Do `verb` and return its answer. Raises `Refusal`, or an error of the session."""
        if verb == "begin":
            return (await self.begin(viewer, fields))[0]
        if verb == "answer":
            return await self.answer(viewer, fields.text("ask"), fields)
        if verb == "answer_many":
            return await self.answer_many(viewer, fields)
        act = SESSION_VERBS.get(verb)
        if act is None:
            raise bad_request(f"there is no such verb; there are {', '.join(RIGHTS)}")
        self._writes.count(viewer.name)
        found = self.seen(viewer, session)
        _check(viewer, verb, found.id)
        on = Steered(found, viewer.name, self.conversations, self._limits)
        return await self._apart(act(on, fields))

    def seen(self, viewer: Viewer, session: str) -> Conversation:
        """Return a session that the viewer may see. Raises `Refusal`."""
        found = self.conversations.find(session)
        if not viewer.is_allowed("see", found.id):
            # A viewer does not learn which sessions of others there are.
            raise Refusal(404, "session_not_found", "there is no session with this id")
        return found

    def summary(self, conversation: Conversation) -> JsonDict:
        """Return the summary of a session."""
        return conversation.summary(self.asks.count(conversation.id))

    # Sessions

    async def begin(self, viewer: Viewer, fields: Fields) -> tuple[JsonDict, bool]:
        """Begin a session, and send its first prompt. Also returns whether it is a new one."""
        self._writes.count(viewer.name)
        _check(viewer, "begin", "")
        return await self._apart(self._begin(viewer, fields))

    async def _begin(self, viewer: Viewer, fields: Fields) -> tuple[JsonDict, bool]:
        key = fields.text_or_none("key", MOST_KEY)
        prompt, when = prompt_of(fields, self._limits), fields.when()
        title = fields.text_or_none("title") or ""
        agent = fields.text_or_none("agent")
        found, is_new = self.conversations.begin(agent, viewer, key, title)
        if not is_new:
            # The rights of a session may be others than those to begin one.
            self.seen(viewer, found.id)
            if prompt is not None:
                _check(viewer, "send", found.id)
        turn: Turn | None = None
        if prompt is not None:
            self.conversations.check_may_open(found)
            turn, _ = await found.send(prompt, when, key, viewer.name)
        answer = {"session": self.summary(found), "turn": None if turn is None else turn.uuid}
        return answer, is_new

    # Asks

    async def answer(self, viewer: Viewer, ask_id: str, fields: Fields) -> JsonDict:
        """Answer one ask."""
        self._writes.count(viewer.name)
        return await self._apart(self._answer(viewer, ask_id, fields))

    async def answer_many(self, viewer: Viewer, fields: Fields) -> JsonDict:
        """Answer several asks; an error in one does not stop the others."""
        self._writes.count(viewer.name)
        given = fields.objects("answers", MOST_ANSWERS)
        outcomes = [await self._apart(self._outcome(viewer, Fields(each))) for each in given]
        return {"outcomes": outcomes}

    async def _outcome(self, viewer: Viewer, fields: Fields) -> JsonDict:
        ask_id: str | None = None
        try:
            ask_id = fields.text("id")
            return await self._answer(viewer, ask_id, fields)
        except Exception as error:  # noqa: BLE001 - sent to the viewer; the others are answered too
            return {"id": ask_id, "error": refusal_of(error).body}

    async def _answer(self, viewer: Viewer, ask_id: str, fields: Fields) -> JsonDict:
        given, seen = fields.object("answer"), fields.text_or_none("seen")
        session = fields.text_or_none("session")
        if session is not None and not viewer.is_allowed("see", session):
            raise AskNotFound(ask_id)
        try:
            ask = await self.asks.find(ask_id, session)
        except AskError as error:
            # Only those who may see an ask learn who has answered it.
            if not viewer.is_allowed("see", error.session):
                raise AskNotFound(ask_id) from None
            raise
        except UsageError:
            # Its text names the sessions, also those of others.
            raise bad_request("several sessions have an ask with this id: give session") from None
        if not viewer.is_allowed("see", ask.session):
            raise AskNotFound(ask_id)
        _check(viewer, "answer", ask.session)
        outcome = await self.asks.answer(ask, given, viewer.name, seen)
        self._continuing.answered(ask.session)
        return {"id": ask.id, "session": ask.session, "how": outcome.how, "by": outcome.by}

    # Work that no request ends

    async def _apart(self, work: Awaitable[T]) -> T:
        """Do `work` in a task of its own: it continues if the viewer leaves."""
        task = asyncio.Task(cast("Coroutine[Any, Any, T]", work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)


def _check(viewer: Viewer, verb: str, session: str) -> None:
    """Raise `Refusal` if the viewer has not every right that the verb needs."""
    for act in RIGHTS[verb]:
        if not viewer.is_allowed(act, session):
            words = f"{viewer.name} may not {verb} here: that needs may({act!r})"
            raise Refusal(403, "not_allowed", words)


@dataclass(frozen=True, slots=True)
class Steered:
    """The session that a verb is for."""

    conversation: Conversation
    by: str
    """The name of the viewer."""
    conversations: Conversations
    limits: WebLimits


SessionVerb: TypeAlias = Callable[[Steered, Fields], Awaitable[JsonDict]]


async def _send(on: Steered, fields: Fields) -> JsonDict:
    prompt = prompt_of(fields, on.limits)
    if prompt is None:
        raise bad_request("text is missing")
    when, key = fields.when(), fields.text_or_none("key", MOST_KEY)
    on.conversations.check_may_open(on.conversation)
    turn, is_new = await on.conversation.send(prompt, when, key, on.by)
    return {"turn": turn.uuid, "is_new": is_new}


async def _withdraw(on: Steered, fields: Fields) -> JsonDict:
    turn = _turn_of(on.conversation, fields.text("turn"))
    return {"withdrawn": await turn.withdraw()}


async def _interrupt(on: Steered, fields: Fields) -> JsonDict:
    uuid, also_queued = fields.text_or_none("turn"), fields.flag("also_queued")
    session = on.conversation.session
    if session is None:
        return {"queued": []}
    turn = None if uuid is None else _turn_of(on.conversation, uuid)
    receipt = await session.interrupt(turn=turn, also_queued=also_queued)
    return {"queued": receipt.still_queued}


async def _pause(on: Steered, fields: Fields) -> JsonDict:
    hard = fields.flag("hard")
    if on.conversation.session is not None:
        await on.conversation.session.pause(hard=hard)
    return {}


async def _resume(on: Steered, _: Fields) -> JsonDict:
    if on.conversation.session is not None:
        await on.conversation.session.resume()
    return {}


async def _cancel(on: Steered, _: Fields) -> JsonDict:
    if on.conversation.session is not None:
        await on.conversation.session.cancel()
    return {}


async def _set_model(on: Steered, fields: Fields) -> JsonDict:
    model = fields.text_or_none("model")
    if not fields.has("model"):
        raise bad_request("model is missing; null is the default model")
    on.conversations.check_may_open(on.conversation)
    await (await on.conversation.open()).set_model(model)
    on.conversation.chose(model=model)
    return {}


async def _set_permission_mode(on: Steered, fields: Fields) -> JsonDict:
    mode = fields.text("mode")
    if mode not in get_args(PermissionMode):
        raise bad_request(f"mode must be one of {', '.join(get_args(PermissionMode))}")
    on.conversations.check_may_open(on.conversation)
    await (await on.conversation.open()).set_permission_mode(cast("PermissionMode", mode))
    on.conversation.chose(mode=mode)
    return {}


SESSION_VERBS: dict[str, SessionVerb] = {
    "send": _send,
    "withdraw": _withdraw,
    "interrupt": _interrupt,
    "pause": _pause,
    "resume": _resume,
    "cancel": _cancel,
    "set_model": _set_model,
    "set_permission_mode": _set_permission_mode,
}
"""By their names in routes and frames."""


def _turn_of(conversation: Conversation, uuid: str) -> Turn:
    missing = Refusal(404, "turn_not_found", "there is no such turn in this session")
    if conversation.session is None:
        raise missing
    try:
        return conversation.session.turn(uuid)
    except UsageError:
        raise missing from None
