"""How a hook is called, and what a failing one means.

A guard that raises, or answers with something else, stops the action. What went wrong is logged and
journalled; the model is told no more than the kind of error.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from steersman._protocol.events import HookAsked
from steersman.hooks import HookEvent, PreToolUse, Registered, Reply, UserPromptSubmit, deny

__all__ = ["Hooking"]


class Hooking:
    """Runs the hooks of one session."""

    def __init__(
        self,
        hooks: Mapping[str, Registered],
        report: Callable[[str, BaseException | str], None],
    ) -> None:
        self._hooks = hooks
        self._report = report

    async def answer(self, asked: HookAsked) -> Any:
        """What the hook says, or what its failure means."""
        hook = self._hooks[asked.callback_id]
        try:
            given = hook.callback(asked.event)
            reply = await given if inspect.isawaitable(given) else given
        except Exception as error:  # noqa: BLE001 - the caller's own code; a guard stops the action
            self._report(f"{hook.event_name} hook", error)
            return _failed(hook, asked.event, f"raised {type(error).__name__}")
        if _is_reply(reply):
            return {} if reply is None else reply
        self._report(f"{hook.event_name} hook", f"returned {type(reply).__name__}")
        return _failed(hook, asked.event, "did not return a reply")


def _is_reply(given: object) -> bool:
    return given is None or isinstance(given, Reply | Mapping)


def _failed(hook: Registered, event: HookEvent, how: str) -> Reply:
    reason = f"Stopped: the {hook.event_name} hook {how}."
    if isinstance(event, PreToolUse):
        return deny(reason)
    if isinstance(event, UserPromptSubmit):
        return Reply(decision="block", reason=reason)
    return Reply()
