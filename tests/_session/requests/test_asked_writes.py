"""A hook's `ask` about a write is a denial in the mode in which the CLI would not ask."""

from __future__ import annotations

from typing import Any

import pytest

from steersman import _json
from steersman._protocol.events import HookAsked
from steersman._session.requests.hooks import HookRunner
from steersman.hooks import Hooks, PreToolUse, ask, hooks_from

MAPPING = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask"}}


async def reply_to(reply: Any, mode: str, tool: str, **given: Any) -> tuple[str, list[str]]:
    hooks, faults = Hooks(), list[str]()
    hooks.on(PreToolUse)(lambda _: reply)
    (hook,) = hooks_from("hooks", hooks)
    runner = HookRunner({"h": hook}, lambda _, error: faults.append(str(error)))
    event = PreToolUse(tool_name=tool, tool_input=given, permission_mode=mode)
    sent: Any = _json.loads(bytes(await runner.answer(HookAsked("r", "h", event, "t"))))
    return sent["hookSpecificOutput"]["permissionDecision"], faults


@pytest.mark.parametrize("reply", [ask("really?"), MAPPING])
@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Write", {"file_path": "/w/.git/hooks/x"}),
        ("Write", {"file_path": "/w/g/hooks/x"}),
        ("Bash", {"command": "echo a >> .bashrc"}),
    ],
)
async def test_an_asked_write_is_denied_and_reported(
    reply: Any, tool: str, given: dict[str, Any]
) -> None:
    decision, faults = await reply_to(reply, "bypassPermissions", tool, **given)

    assert decision == "deny"
    assert "does not ask about writes" in faults[0]
    assert await reply_to(reply, "default", tool, **given) == ("ask", [])


async def test_reading_is_asked_about_in_every_mode() -> None:
    assert await reply_to(ask("really?"), "bypassPermissions", "Read", file_path="/w/a") == (
        "ask",
        [],
    )
