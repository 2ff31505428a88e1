"""What a session refuses, in full, and what its methods send, on a CLI played by hand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from steersman._prompt_content import prompt_content
from steersman.control import Initialize
from steersman.errors import UsageError
from tests._session.peers import Frame, FramePeer, answer_to, opened

IMAGE = {"type": "image"}


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda s: s.send("x", query=1), "query: got 1, allowed: True or False"),
        (lambda s: s.send("x", when="soon"), "when: got 'soon', allowed: one of later, next, now"),
        (lambda s: s.send("x", key=""), "key: got '', allowed: a text that is not empty, or None"),
        (lambda s: s.send("x", key=5), "key: got 5, allowed: a text that is not empty, or None"),
        (
            lambda s: s.send([IMAGE, 5]),
            "prompt[1]: got 5, allowed: a mapping with a type",
        ),
        (
            lambda s: s.send([{"text": "x"}]),
            "prompt[0]: got {'text': 'x'}, allowed: a mapping with a type",
        ),
        (lambda s: s.interrupt(turn=5), "turn: got 5, allowed: a Turn of this session"),
        (lambda s: s.withdraw(5), "turn: got 5, allowed: a Turn of this session"),
        (lambda s: s.interrupt(also_queued=1), "also_queued: got 1, allowed: True or False"),
        (lambda s: s.pause(hard=1), "hard: got 1, allowed: True or False"),
        (lambda s: s.finish(timeout=0), "timeout: got 0, allowed: seconds above 0, or None"),
        (lambda s: s.finish(timeout=True), "timeout: got True, allowed: seconds above 0, or None"),
    ],
)
async def test_a_refusal_names_the_argument_and_what_is_allowed(
    call: Callable[[Any], Awaitable[Any]], text: str
) -> None:
    peer = FramePeer()

    async with opened(peer.transport) as session:
        with pytest.raises(UsageError) as refused:
            await call(session)

    assert str(refused.value) == text
    assert peer.sent("user") == []


async def test_a_checkpoint_needs_a_turn_and_a_session_starts_once() -> None:
    peer = FramePeer()

    async with opened(peer.transport) as session:
        with pytest.raises(UsageError, match="checkpoint: got no turn yet, allowed: a session"):
            session.checkpoint()
        with pytest.raises(UsageError, match=r"session: got .* a session that was not started"):
            await session.start()


LARGEST = 32 * 1024 * 1024


@pytest.mark.parametrize(
    "prompt", ["x" * LARGEST, [{"type": "text", "text": "x"}]], ids=["text", "list"]
)
def test_a_prompt_up_to_the_limit_of_the_api_is_sent_unchanged(prompt: Any) -> None:
    assert prompt_content(prompt) == prompt


@pytest.mark.parametrize(
    "prompt", ["x" * (LARGEST + 1), [{"type": "text", "text": "x" * LARGEST}]], ids=["text", "list"]
)
def test_a_prompt_above_the_limit_of_the_api_is_refused(prompt: Any) -> None:
    with pytest.raises(
        UsageError,
        match=r"^prompt: got \d+ bytes, allowed: at most 33554432 bytes: the API's own limit",
    ):
        prompt_content(prompt)


@pytest.mark.parametrize("prompt", ["", "  ", [], 5, None, {}])
def test_a_prompt_has_content(prompt: Any) -> None:
    with pytest.raises(UsageError, match=r"prompt: got .* allowed: a non-empty text") as refused:
        prompt_content(prompt)

    assert refused.value.given is prompt


async def test_hooks_cannot_be_replaced_by_another_initialize() -> None:
    verb = Initialize(hooks={})

    async with opened(FramePeer().transport) as session:
        with pytest.raises(UsageError, match="they would replace ours") as refused:
            await session.call(verb)

    assert (refused.value.argument, refused.value.given) == ("verb", verb)


async def test_a_turn_of_another_session_is_refused() -> None:
    async with opened(FramePeer().transport) as one, opened(FramePeer().transport) as other:
        turn = await one.send("x")

        with pytest.raises(UsageError, match="a Turn of this session"):
            await other.withdraw(turn)
        with pytest.raises(UsageError, match="a Turn of this session"):
            await other.interrupt(turn=turn)


@pytest.mark.parametrize(
    ("call", "request_fields"),
    [
        (lambda s: s.set_model("m"), {"subtype": "set_model", "model": "m"}),
        (
            lambda s: s.set_permission_mode("plan"),
            {"subtype": "set_permission_mode", "mode": "plan"},
        ),
        (
            lambda s: s.rewind_files("u", dry_run=True),
            {"subtype": "rewind_files", "user_message_id": "u", "dry_run": True},
        ),
        (lambda s: s.stop_task("t"), {"subtype": "stop_task", "task_id": "t"}),
        (lambda s: s.context_usage(), {"subtype": "get_context_usage"}),
        (lambda s: s.control("brand_new", a=1), {"subtype": "brand_new", "a": 1}),
    ],
)
async def test_a_method_sends_its_request(
    call: Callable[[Any], Awaitable[Any]], request_fields: dict[str, Any]
) -> None:
    def answering(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "control_request" and frame["request"]["subtype"] != "initialize":
            peer.say(answer_to(frame, {"ok": 1}))

    peer = FramePeer(answering)

    async with opened(peer.transport) as session:
        await call(session)

    sent = [frame["request"] for frame in peer.sent("control_request")]
    assert sent[1] == request_fields


async def test_an_answer_that_has_no_class_comes_as_it_was_sent() -> None:
    def answering(peer: FramePeer, frame: Frame) -> None:
        if frame.get("request", {}).get("subtype") == "brand_new":
            peer.say(answer_to(frame, {"ok": 1}))

    async with opened(FramePeer(answering).transport) as session:
        assert await session.control("brand_new") == {"ok": 1}
