"""Holds tool calls that will be asked about, so that a session can be parked exactly.

A `PreToolUse` hook of sessions with a durable inbox. It opens the ask itself, and replies when the
ask has an answer; the CLI then requests the permission, and the answer is used there. Until then
the call can be deferred: the turn ends, the CLI may exit, and the next CLI of the conversation asks
about the same call. A request for a permission could not be answered so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Literal

from steersman._json import JsonObject, is_mapping
from steersman._session.prompt_queue import continuations
from steersman._session.requests.ask_details import ask_details, without_secrets
from steersman._session.requests.policy_hook import PolicyHook
from steersman._session.setup import DurableHost
from steersman.durable.hook_watch import HookWatch
from steersman.hooks.events import PreToolUse
from steersman.hooks.registry import Registered
from steersman.journal import Kind
from steersman.options import Options
from steersman.permissions import ASK_USER_QUESTION, Ask, CanUseTool, Payload
from steersman.ports import SupportsAwaitAnswer
from steersman.transcripts.lookup import deferred_tool, has_prompt

EXIT_PLAN_MODE = "ExitPlanMode"
MATCHER = f"{ASK_USER_QUESTION}|{EXIT_PLAN_MODE}"
"""The tools that the CLI always asks about."""

LONGEST_HOLD = 30 * 24 * 3600.0
"""Seconds until the hook lets go of a call; the CLI then requests the permission."""

RESUMING = 5.0
"""Seconds in which a CLI asks about a call that was deferred; it does so at its start."""

NO_OPINION: JsonObject = {}
DEFER: JsonObject = {
    "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "defer",
        "permissionDecisionReason": "parked until it is answered",
    }
}

Release = Literal["answered", "deferred", "let go", "prompted"]


def no_opinion(_event: PreToolUse) -> JsonObject:
    """Leave the call to the CLI: registers the hook, which `HoldingHook.hooks` replaces."""
    return NO_OPINION


class HoldingHook:
    """The hook, and the calls that it holds: the port `HeldCalls`. Applies the policy, if any."""

    def __init__(
        self,
        options: Options,
        policy: PolicyHook | None,
        inbox: SupportsAwaitAnswer,
        host: DurableHost,
    ) -> None:
        self._watch = HookWatch()
        self._policy = policy
        self._host = host
        self._asks_user = options.on_question is None
        remembers = options.policy is not None and options.policy.remember is not None
        self._asks_permission = options.can_use_tool is None and not remembers
        self._inbox = _HeldAsks(inbox, host)
        self._held: dict[str, _Held] = {}
        self.has_prompt = not options.goes_on
        """Whether a prompt was sent. Before, only a call that was deferred can come."""
        self._news = asyncio.Event()
        self._answered: dict[str, _Held] = {}
        """Calls that were let go with an answer, and whose permission was not requested yet."""

    def hooks(self, given: Iterable[Registered]) -> list[Registered]:
        """Return the hooks, with this one as the first; decisions of the others are known here."""
        first, *others = given
        return [replace(first, callback=self), *self._watch.watching(others)]

    # The seam for parking

    @property
    def held(self) -> tuple[Ask, ...]:
        """The asks of the calls that are held now."""
        return tuple(each.ask for each in self._held.values() if each.ask is not None)

    @property
    def calls(self) -> tuple[str, ...]:
        """The ids of the calls that are held now, also of one that waits for a prompt."""
        return tuple(self._held)

    def let_go(self) -> None:
        """Use no more answers: the asks stay for the next process. The calls stay held."""
        for each in self._held.values():
            each.is_left = True
            self._leave(each)

    def defer_one(self) -> bool:
        """Defer the held call, if exactly one is held: the CLI then ends its turn.

        Returns whether the hook will reply so. The caller makes sure that the CLI waits for
        nothing else, and that the call is the only one of its message that has no result.
        """
        if len(self._held) != 1:
            return False
        (held,) = self._held.values()
        return held.release("deferred")

    # A call that was deferred, and that the CLI of the next session asks about at its start

    async def resumed(self, uuid: str) -> Sequence[CanUseTool]:
        """Return the calls at which a turn was left, and that the CLI asks about at its start."""
        lines = self._host.transcript()
        # A turn that was continued before is continued under the uuids of its continuations.
        stored = takewhile(lambda each: has_prompt(lines, each), continuations(uuid))
        tool = deferred_tool(lines, uuid, *stored)
        if tool is None or not self._applies_to(tool):
            return ()
        with suppress(TimeoutError):
            async with asyncio.timeout(RESUMING):
                while not self._held and not self.has_prompt:
                    self._news.clear()
                    await self._news.wait()
        return () if self.has_prompt else tuple(each.request for each in self._held.values())

    def _applies_to(self, tool_name: str) -> bool:
        """Whether the CLI calls the hook for this tool."""
        return self._policy is not None or tool_name in (ASK_USER_QUESTION, EXIT_PLAN_MODE)

    def prompt_sent(self) -> None:
        """Release a call that was deferred: a prompt is sent, or its turn is continued."""
        if not self.has_prompt:
            self.has_prompt = True
            for each in self._held.values():
                each.release("prompted")

    # The hook

    def __call__(self, event: PreToolUse) -> JsonObject | Coroutine[Any, Any, JsonObject]:
        """Return the policy's decision, at once or, if the call will be asked about, later."""
        if not self.has_prompt:
            return self._hold_resumed(event)
        if event.agent_id is None:
            self._host.prompts.called(_request(event, NO_OPINION))
        reply = self._reply(event)
        return self._hold(event, reply) if self._will_be_asked(event, reply) else reply

    def _reply(self, event: PreToolUse) -> JsonObject:
        return NO_OPINION if self._policy is None else self._policy(event)

    def _will_be_asked(self, event: PreToolUse, reply: JsonObject) -> bool:
        if event.agent_id is not None or event.tool_name.startswith("mcp__"):
            # Deferred, such a call would be lost.
            return False
        decision = _decision_of(reply)
        if decision not in (None, "ask") or not self._may_hold():
            return False
        if event.tool_name == ASK_USER_QUESTION:
            return self._asks_user
        if event.tool_name == EXIT_PLAN_MODE:
            return self._asks_permission and event.permission_mode == "plan"
        return self._asks_permission and decision == "ask"

    def _may_hold(self) -> bool:
        return self._host.slot.is_modern and not self._host.responder().hooks.decides_permissions

    async def _hold(self, event: PreToolUse, reply: JsonObject) -> JsonObject:
        if await self._watch.is_decided(event.tool_name, event.tool_use_id):
            return reply
        held = _Held(_request(event, reply))
        held.ask = self._inbox.open(held.request, held.answer)
        self._held[event.tool_use_id] = held
        assert self._host.slot.running is not None
        uncount = self._host.slot.running.tasks.hold()
        how: Release = "let go"
        try:
            async with asyncio.timeout(LONGEST_HOLD):
                how = await held.released
        except TimeoutError:
            pass
        finally:
            del self._held[event.tool_use_id]
            uncount()
            if how == "answered":
                self._answered[event.tool_use_id] = held
            elif held.why_withdrawn:
                self._inbox.close(held.ask, held.why_withdrawn)
            else:
                self._leave(held)
        return DEFER if how == "deferred" else reply

    async def _hold_resumed(self, event: PreToolUse) -> JsonObject:
        """Hold a call that was deferred until a prompt is sent; then treat it as any other."""
        held = self._held[event.tool_use_id] = _Held(_request(event, NO_OPINION))
        self._news.set()
        try:
            how = await held.released
        finally:
            del self._held[event.tool_use_id]
        if how == "deferred":
            return DEFER
        self._host.prompts.called(held.request)
        reply = self._reply(event)
        return await self._hold(event, reply) if self._will_be_asked(event, reply) else reply

    def _leave(self, held: _Held) -> None:
        if held.ask is not None:
            self._inbox.leave(held.ask)

    # What becomes of the asks

    def was_shown(self, payload: Payload) -> bool:
        """Whether the ask about this request of the CLI was opened here."""
        return isinstance(payload, CanUseTool) and payload.tool_use_id in self._answered

    def requested(self, payload: Payload) -> bool:
        """Leave an ask to the request of the CLI; returns whether that is about the same input."""
        if not isinstance(payload, CanUseTool):
            return False
        held = self._answered.pop(payload.tool_use_id, None)
        if held is None or held.ask is None:
            return False
        is_same = held.request.input == payload.input
        if is_same:
            self._inbox.leave(held.ask)
        else:
            self._inbox.close(held.ask, "the CLI requests the permission for another input")
        return is_same

    def withdrawn(self, tool_use_id: str, reason: str) -> None:
        """Close the ask of a call that the CLI has given up; the hook is cancelled next."""
        held = self._held.get(tool_use_id)
        if held is not None:
            held.why_withdrawn = reason

    def turn_settled(self) -> None:
        """Close asks whose answer was not requested: the CLI has denied the call by itself."""
        answered, self._answered = self._answered, {}
        for held in answered.values():
            if held.ask is not None:
                self._inbox.close(held.ask, "the CLI did not request the permission")


@dataclass(frozen=True, slots=True)
class _HeldAsks:
    """Opens the asks of held calls in a durable inbox."""

    inbox: SupportsAwaitAnswer
    host: DurableHost

    def open(self, payload: CanUseTool, answered: Callable[[], None]) -> Ask:
        """Put the ask into the inbox, without known secrets; `answered` is called in this loop.

        That is when it has an answer, or has expired.
        """
        loop, host = asyncio.get_running_loop(), self.host
        ask = Ask(
            id=payload.tool_use_id,
            session=host.slot.session_id or "",
            payload=payload,
            created=host.journal.clock(),
            turn=host.prompts.current_uuid,
            is_repeatable=host.responder().is_repeatable(payload),
        )
        host.journal.note(Kind.ASKED, **ask_details(ask, host.slot.redact))
        if host.listeners.has("ask"):
            host.listeners.emit("ask", ask)
        kept = without_secrets(ask, host.slot.redact)
        self.inbox.await_answer(
            kept,
            lambda: _in(loop, answered),
            lambda error: _in(loop, lambda: host.report("inbox", error)),
        )
        return kept

    def leave(self, ask: Ask) -> None:
        """Stop waiting: the ask stays as it is, for the request or the process that follows."""
        self.inbox.close_ask(ask, "its request follows", may_return=True)

    def close(self, ask: Ask, reason: str) -> None:
        """Close the ask for good; an answer that it has is not used any more."""
        self.inbox.close_ask(ask, reason)


def _in(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    """Call the function in the session's event loop, which may be closed."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(function)


class _Held:
    """A call that is held."""

    def __init__(self, request: CanUseTool) -> None:
        self.request = request
        self.ask: Ask | None = None
        """As it is stored, without known secrets; None for a call that waits for a prompt."""
        self.is_left = False
        """Whether an answer is left to the next process."""
        self.released: asyncio.Future[Release] = asyncio.get_running_loop().create_future()
        self.why_withdrawn = ""

    def answer(self) -> None:
        if not self.is_left:
            self.release("answered")

    def release(self, how: Release) -> bool:
        if self.released.done():
            return False
        self.released.set_result(how)
        return True


def _decision_of(reply: JsonObject) -> object:
    specific = reply.get("hookSpecificOutput")
    return specific.get("permissionDecision") if is_mapping(specific) else None


def _request(event: PreToolUse, reply: JsonObject) -> CanUseTool:
    """Return the permission request that the CLI will send, as far as it is known."""
    specific = reply.get("hookSpecificOutput")
    reason = specific.get("permissionDecisionReason") if is_mapping(specific) else None
    is_asking_user = event.tool_name in (ASK_USER_QUESTION, EXIT_PLAN_MODE)
    return CanUseTool(
        tool_name=event.tool_name,
        input=event.tool_input,
        tool_use_id=event.tool_use_id,
        decision_reason=reason,
        decision_reason_type=None if reason is None else "hook",
        requires_user_interaction=is_asking_user,
    )
