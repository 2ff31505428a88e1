"""The verbs of one session: a function each, from the fields of a request to its answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias, cast, get_args

from steersman._json import JsonDict
from steersman.agent import Turn
from steersman.errors import UsageError
from steersman.options import PermissionMode
from steersman.web.conversation import Conversation
from steersman.web.conversations import Conversations
from steersman.web.failures import Refusal, bad_request
from steersman.web.fields import MOST_KEY, Fields, prompt_of
from steersman.web.limits import WebLimits


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
