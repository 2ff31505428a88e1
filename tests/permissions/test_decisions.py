from __future__ import annotations

from typing import Any

import msgspec
import pytest

from steersman import _json
from steersman.errors import UsageError
from steersman.permissions import Allow, CanUseTool, Decision, Deny, PermissionContext, SetMode


@pytest.mark.parametrize(
    ("decision", "wire"),
    [
        # The CLI refuses the tool when `updatedInput` is null, so it is left out.
        (Allow(), {"behavior": "allow"}),
        (Allow({}), {"behavior": "allow", "updatedInput": {}}),
        (Allow({"a": None}), {"behavior": "allow", "updatedInput": {"a": None}}),
        (
            Allow(updated_permissions=[{"type": "setMode", "mode": "plan"}]),
            {
                "behavior": "allow",
                "updatedPermissions": [{"type": "setMode", "mode": "plan"}],
            },
        ),
        (Deny("no"), {"behavior": "deny", "message": "no"}),
        (Deny(""), {"behavior": "deny", "message": ""}),
        (
            Deny("stop", interrupt=True),
            {"behavior": "deny", "message": "stop", "interrupt": True},
        ),
    ],
)
def test_a_decision_is_written_as_the_cli_reads_it(
    decision: Decision, wire: dict[str, Any]
) -> None:
    assert _json.loads(_json.dumps(decision)) == wire


def test_a_denial_always_has_a_message() -> None:
    make: Any = Deny

    with pytest.raises(TypeError, match="message"):
        make()


def test_the_context_reads_the_question_it_is_about() -> None:
    question = CanUseTool(
        tool_name="Bash",
        input={"command": "ls"},
        tool_use_id="toolu_1",
        permission_suggestions=[{"type": "setMode", "mode": "plan", "destination": "session"}],
        agent_id="a1",
    )

    context = PermissionContext("q", "s", question)

    assert (context.tool_use_id, context.suggestions, context.agent_id) == (
        "toolu_1",
        [SetMode(mode="plan")],
        "a1",
    )


@pytest.mark.parametrize("decision", [Allow, lambda **more: Deny("no", **more)])
def test_a_classification_is_sent_and_only_as_the_cli_names_it(decision: Any) -> None:
    sent = msgspec.to_builtins(decision(decision_classification="user_permanent"))

    assert sent["decisionClassification"] == "user_permanent"
    with pytest.raises(UsageError, match="decision_classification"):
        decision(decision_classification="perhaps")
