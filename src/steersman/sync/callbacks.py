"""Plain functions of the caller, run in worker threads: there they may call `steersman.sync`.

In the event loop, where the async API calls them, a function that waits for the loop would wait for
itself. Tools that are plain functions run in worker threads anyway.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from steersman.hooks.registry import Hooks, unchecked
from steersman.options.fields import Options, options_from
from steersman.sync.inbox import Inbox
from steersman.tools._threads import is_async, run_in_thread

if TYPE_CHECKING:
    from steersman.options.keywords import OptionKwargs

CALLBACKS = ("can_use_tool", "on_elicitation", "on_question", "on_user_dialog")
"""Options that are functions whose answer the CLI waits for."""


def with_threads(options: Options, given: OptionKwargs) -> OptionKwargs:
    """Return `given`, with the callbacks of both so that plain functions run in threads.

    Called for each session, because hooks may be registered after the agent was made.
    """
    words: dict[str, object] = {**given}
    for name in CALLBACKS:
        callback = words.get(name, getattr(options, name))
        if callable(callback):
            words[name] = in_thread(callback)
    hooks = options_from(None, {"hooks": words["hooks"]}).hooks if "hooks" in words else None
    words["hooks"] = _hooks_in_threads(options.hooks if hooks is None else hooks)
    inbox = words.get("inbox", options.inbox)
    if isinstance(inbox, Inbox):
        words["inbox"] = inbox.inbox
    return cast("OptionKwargs", words)


def in_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an async function that calls a plain one in a worker thread.

    Async functions, and ready-made hooks of steersman, are returned as they are.
    """
    if is_async(function) or str(getattr(function, "__module__", "")).startswith("steersman."):
        return function

    @functools.wraps(function)
    async def call(*args: Any) -> object:
        outcome = await run_in_thread(function, *args)
        return await outcome if inspect.isawaitable(outcome) else outcome

    return call


def _hooks_in_threads(hooks: Hooks) -> Hooks:
    return unchecked(replace(each, callback=in_thread(each.callback)) for each in hooks)
