"""Prompts with a uuid and fields of the caller's, on a CLI played by hand."""

from __future__ import annotations

from typing import Any

import pytest

from steersman._session.sent_prompts import MOST_SETTLED
from steersman.errors import UsageError
from tests._session.peers import Frame, FramePeer, lifecycle, opened, result

UUID = "11111111-2222-4333-8444-555555555555"


def answering(peer: FramePeer, frame: Frame) -> None:
    if frame["type"] == "user":
        peer.say(lifecycle(frame["uuid"], "started"), result([frame["uuid"]], "done"))


async def test_the_line_has_the_callers_uuid_and_fields() -> None:
    peer = FramePeer(answering)

    async with opened(peer.transport) as session:
        turn = await session.send(
            "one", uuid=UUID, fields={"session_id": "default", "parent_tool_use_id": "toolu_1"}
        )
        found = await turn

    assert (turn.uuid, found.answer) == (UUID, "done")
    assert session.turn(UUID) is turn
    assert peer.sent("user") == [
        {
            "type": "user",
            "message": {"role": "user", "content": "one"},
            "parent_tool_use_id": "toolu_1",
            "uuid": UUID,
            "session_id": "default",
            "client_composed": True,
        }
    ]


@pytest.mark.parametrize("content", ["", "  \n", [], [{"type": "text", "text": ""}]])
async def test_content_is_sent_as_it_is_also_if_it_is_empty(content: Any) -> None:
    peer = FramePeer(answering)

    async with opened(peer.transport) as session:
        await (await session.send(content))

    assert peer.sent("user")[0]["message"]["content"] == content


async def test_a_second_prompt_with_a_uuid_is_refused() -> None:
    peer = FramePeer(answering)

    async with opened(peer.transport) as session:
        ours = await session.send("zero")
        with pytest.raises(UsageError, match=r"^uuid: got .* the CLI drops the second one"):
            await session.send("zero", uuid=ours.uuid)
        await (await session.send("one", uuid=UUID))
        for number in range(MOST_SETTLED):
            await (await session.send(f"more {number}"))
        with pytest.raises(UsageError, match=r"^uuid: got .* the CLI drops the second one"):
            await session.send("one", uuid=UUID)

    assert len(peer.sent("user")) == MOST_SETTLED + 2


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"uuid": "mine"}, "uuid: got 'mine', allowed: a UUID, such as str(uuid.uuid4())"),
        ({"uuid": 5}, "uuid: got 5, allowed: a UUID, such as str(uuid.uuid4())"),
        (
            {"uuid": UUID, "key": "k"},
            f"uuid: got '{UUID}', allowed: None beside key=, which chooses the uuid",
        ),
        (
            {"fields": [("a", 1)]},
            "fields: got [('a', 1)], allowed: a mapping of further fields of the user message",
        ),
        (
            {"fields": {"a": object}},
            (
                "fields['a']: got a type, allowed: a mapping, list, string, number, True, False"
                " or None"
            ),
        ),
    ],
)
async def test_nonsense_is_refused_and_nothing_is_sent(words: dict[str, Any], text: str) -> None:
    peer = FramePeer()

    async with opened(peer.transport) as session:
        with pytest.raises(UsageError) as refused:
            await session.send("x", **words)

    assert str(refused.value) == text
    assert peer.sent("user") == []


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("type", "nothing"),
        ("message", "prompt"),
        ("uuid", "uuid="),
        ("priority", "when="),
        ("shouldQuery", "query="),
        ("client_composed", "verbatim_prompts="),
    ],
)
async def test_a_field_that_we_write_is_refused_with_what_sets_it(name: str, instead: str) -> None:
    async with opened(FramePeer().transport) as session:
        with pytest.raises(UsageError) as refused:
            await session.send("x", fields={name: "y"})

    assert refused.value.argument == f"fields['{name}']"
    assert instead in refused.value.hint


async def test_a_prompt_that_could_not_be_sent_leaves_its_uuid_free() -> None:
    peer = FramePeer(answering)

    async with opened(peer.transport) as session:
        with pytest.raises(UsageError):
            await session.send("x", uuid=UUID, fields={"uuid": UUID})
        found = await (await session.send("x", uuid=UUID))

    assert found.answer == "done"
