"""What the model is told about calls that waited."""

from __future__ import annotations

import pytest

from steersman._session.recovery import BEHIND, CONTINUE, again, continuation
from steersman.ports import StoredAsk

INPUT = {"command": "pay 7"}
SAME = "Make the same call again, with exactly the same input"
AGAIN = "Start the subagent again with the same task, so that it makes the same call again."
LED = "Make the call that led to it again, with exactly the same input."
ASKED = 'Bash with the input {"command":"pay 7"}'


def ask(state: str = "answered", **fields: object) -> StoredAsk:
    given: dict[str, object] = {"tool_name": "Bash", "input": INPUT, "by": "ann", **fields}
    return StoredAsk("id", str(given.pop("kind", "permission")), state, **given)  # type: ignore[arg-type]


def test_a_turn_without_asks_is_only_continued() -> None:
    assert continuation([]) == CONTINUE


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (ask(decision="allow"), f"{ASKED}: allowed by ann. {SAME}."),
        (ask(decision="allow", by=""), f"{ASKED}: allowed. {SAME}."),
        (
            ask(decision="allow", updated_input={"command": "pay 8"}),
            f'{ASKED}: allowed by ann, with the input changed to {{"command":"pay 8"}}. {SAME}.',
        ),
        (ask(decision="deny"), f"{ASKED}: denied by ann. Do not make this call again."),
        (
            ask(decision="deny", reason="too much."),
            f"{ASKED}: denied by ann: too much. Do not make this call again.",
        ),
        (
            ask("expired", decision="deny", by="expiry"),
            f"{ASKED}: denied, because no answer came in time. Do not make this call again.",
        ),
        (ask("open", by=""), f"{ASKED}: nobody has decided yet. {SAME}."),
        (
            ask(kind="question", decision="allow", updated_input={}),
            f"{ASKED}: answered by ann. {SAME}: it returns the answers.",
        ),
        (
            ask(decision="allow", agent="a1"),
            f"{ASKED}, called by a subagent: allowed by ann. {AGAIN}",
        ),
        (
            ask(kind="elicitation", tool_name=None, input={}, decision="allow"),
            f"a request of the kind elicitation: answered by ann. {LED}",
        ),
    ],
    ids=lambda given: "" if isinstance(given, str) else f"{given.state} {given.decision}",
)
def test_each_ask_is_a_line(given: StoredAsk, line: str) -> None:
    words = continuation([given]).splitlines()

    assert words[0] == CONTINUE
    assert words[-1] == f"- {line}"


def test_a_long_input_is_cut() -> None:
    words = continuation([ask(decision="allow", input={"content": "x" * 5000})])

    assert "... (5014 characters): allowed by ann." in words
    assert len(words) < 1000


@pytest.mark.parametrize(
    "prompt", ["pay 7", [{"type": "text", "text": "pay 7"}]], ids=["text", "blocks"]
)
def test_a_prompt_that_others_stand_behind_is_shown_again(prompt: object) -> None:
    words = {"type": "text", "text": f"{CONTINUE}\n\n{BEHIND}"}

    assert again(prompt, CONTINUE) == [words, {"type": "text", "text": "pay 7"}]
