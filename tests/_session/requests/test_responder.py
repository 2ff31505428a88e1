"""Elicitations and dialogs, which callbacks answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from steersman import _json
from steersman._protocol.events import DialogAsked, ElicitationAsked, HookAsked, Unanswerable
from steersman._session.gate import Gate
from steersman._session.requests.hooks import HookRunner
from steersman._session.requests.permissions import (
    PermissionResponder,
    RequestRejected,
    UserCallbacks,
)
from steersman._session.requests.responder import Responder
from steersman._session.requests.tool_servers import ToolServers
from steersman.errors import UsageError
from steersman.hooks import Hooks, PreToolUse
from steersman.permissions import DialogAnswer, Elicitation, ElicitationAnswer, UserDialog
from tests._session.requests.test_hooks import denied, runner_of

COLOUR = ElicitationAsked("q", Elicitation(mcp_server_name="paint", message="Which colour?"))
TRUST = DialogAsked("q", UserDialog(dialog_kind="trust", payload={"path": "/workspace"}))


def responder(faults: list[str] | None = None, **callbacks: Any) -> Responder:
    reported = [] if faults is None else faults

    def report(where: str, _: BaseException | str) -> None:
        reported.append(where)

    return Responder(
        PermissionResponder(UserCallbacks(**callbacks), report),
        HookRunner({}, report),
        ToolServers({}, {}, report),
        Gate(),
    )


async def test_an_elicitation_gets_the_answer_of_its_callback() -> None:
    async def answer(elicitation: Elicitation) -> ElicitationAnswer:
        return ElicitationAnswer("accept", {"colour": elicitation.mcp_server_name})

    answered = await responder(on_elicitation=answer).answer(COLOUR, "s")

    assert answered == ElicitationAnswer("accept", {"colour": "paint"})


async def test_an_elicitation_without_a_callback_is_declined() -> None:
    assert await responder().answer(COLOUR, "s") == ElicitationAnswer("decline")


@pytest.mark.parametrize("given", [None, {"action": "accept"}, "yes", True])
async def test_an_invalid_answer_declines(given: object) -> None:
    assert await responder(on_elicitation=lambda _: given).answer(COLOUR, "s") == ElicitationAnswer(
        "decline"
    )


async def test_a_handler_that_raises_declines_and_is_reported() -> None:
    faults: list[str] = []

    def fail(_: Elicitation) -> ElicitationAnswer:
        raise KeyError("form")

    answered = await responder(faults, on_elicitation=fail).answer(COLOUR, "s")

    assert (answered, faults) == (ElicitationAnswer("decline"), ["on_elicitation"])


async def test_a_dialog_is_shown_by_its_handler() -> None:
    shown = await responder(
        on_user_dialog=lambda dialog: DialogAnswer("ok", dialog.payload)
    ).answer(TRUST, "s")

    assert shown == DialogAnswer("ok", {"path": "/workspace"})


async def test_a_dialog_without_a_callback_is_refused_and_the_error_names_the_option() -> None:
    with pytest.raises(RequestRejected, match="on_user_dialog"):
        await responder().answer(TRUST, "s")


async def test_a_dialog_that_fails_is_refused_and_reported() -> None:
    faults: list[str] = []

    def fail(_: UserDialog) -> DialogAnswer:
        raise KeyError("screen")

    with pytest.raises(RequestRejected, match="KeyError"):
        await responder(faults, on_user_dialog=fail).answer(TRUST, "s")
    assert faults == ["on_user_dialog"]


@pytest.mark.parametrize("fields", [{"action": "maybe"}, {"action": "accept", "content": 5}])
def test_an_elicitation_answer_with_invalid_fields_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        ElicitationAnswer(**fields)


def test_a_guard_that_cannot_answer_blocks_and_another_hook_may_fail() -> None:
    hooks = Hooks()
    hooks.on(PreToolUse, kind="guard")(lambda _: None)
    hooks.on(PreToolUse, kind="observe")(lambda _: None)
    runner, _, _ = runner_of(hooks)
    found = replace(responder(), hooks=runner)

    late, unread, *others = [
        found.refusal(asked)
        for key in ("hook_0", "hook_1", "nobody")
        for asked in (HookAsked("q", key, PreToolUse(), "t"), Unanswerable("q", "?", key))
    ]

    assert _json.loads(bytes(late)) == denied("did not answer")  # type: ignore[call-overload]
    assert _json.loads(bytes(unread)) == denied("got an event that cannot be read")  # type: ignore[call-overload]
    assert others == [None] * 4
    assert found.refusal(COLOUR) is None
