"""Calls on their way to a remote server, and who may look at them."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from steersman import _json
from steersman.options import checks
from steersman.ports import Caller, JsonObject
from steersman.tools.results import ToolError, error_result, wire_result

__all__ = ["OnCall", "OnResult", "Onlookers", "RemoteCall", "describe"]

logger = logging.getLogger("steersman.tools")


@dataclass(frozen=True, slots=True)
class RemoteCall:
    """A call that is about to go to the remote."""

    tool: str
    """As the model knows it."""
    remote_tool: str
    """As the remote knows it."""
    arguments: JsonObject
    server: str
    """The key in `mcp_servers`."""
    session_id: str
    tool_use_id: str


OnCall = Callable[[RemoteCall], Awaitable[None] | None]
OnResult = Callable[[RemoteCall, JsonObject], Awaitable[None] | None]


def describe(params: JsonObject, remote_name: str, caller: Caller) -> RemoteCall:
    """The call that stands in the parameters of a `tools/call`."""
    meta, arguments = params.get("_meta"), params.get("arguments")
    return RemoteCall(
        tool=params["name"],
        remote_tool=remote_name,
        arguments=arguments if _json.is_object(arguments) else {},
        server=caller.server,
        session_id=caller.session_id,
        tool_use_id=meta.get("claudecode/toolUseId", "") if _json.is_object(meta) else "",
    )


class Onlookers:
    """The program's own callbacks. The one before a call can refuse it."""

    def __init__(self, on_call: OnCall | None, on_result: OnResult | None) -> None:
        checks.optional(checks.callable_)("on_call", on_call)
        checks.optional(checks.callable_)("on_result", on_result)
        self._on_call = on_call
        self._on_result = on_result

    async def refusal(self, call: RemoteCall, caller: Caller) -> JsonObject | None:
        """What the model reads if the call must not be made. A callback that fails refuses too."""
        if self._on_call is None:
            return None
        try:
            seen = self._on_call(call)
            if inspect.isawaitable(seen):
                await seen
        except ToolError as refused:
            return wire_result(error_result(str(refused)))
        except Exception as error:
            logger.exception("on_call failed for %r", call.tool)
            caller.report(call.tool, error)
            return wire_result(error_result(f"not run: on_call raised {type(error).__name__}"))
        return None

    async def saw(self, call: RemoteCall, answer: JsonObject, caller: Caller) -> None:
        """Show what came back: a result, or an error in the words of JSON-RPC."""
        if self._on_result is None:
            return
        try:
            seen = self._on_result(call, answer.get("result") or answer.get("error") or {})
            if inspect.isawaitable(seen):
                await seen
        except Exception as error:
            logger.exception("on_result failed for %r", call.tool)
            caller.report(call.tool, error)
