"""A prompt that an earlier process has sent: what its session file says is how it ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steersman._session.recovery import again
from steersman._uuids import uuid_of
from steersman.errors import CliExited, TurnStopped, UsageError
from tests._session.peers import (
    GREETING,
    Frame,
    FramePeer,
    answer_to,
    lifecycle,
    opened,
    result,
    state,
)
from tests.transcripts.test_lookup import asked, attached, called, filled, noted, refused, said

ID = "11111111-1111-4111-8111-111111111111"
KEYED = uuid_of(ID, "invoice 7")
FIRST, SECOND = (uuid_of(KEYED, f"continuation {number}") for number in (1, 2))
CONTINUE = "Continue from where you left off."
MODERN = {**GREETING, "capabilities": ["msg_lifecycle_v1"]}
OLDER = {"claude_code_version": "2.1.191"}

STOPPED = noted("s1", "b1", "[Request interrupted by user]")
LIMITED = [called("b1", KEYED), attached("x1", "b1", type="max_turns_reached")]
ENDINGS: dict[str, tuple[list[bytes], str, str, type[Exception] | None]] = {
    "answered": ([said("b1", KEYED, "Paid.")], "completed", "Paid.", None),
    "interrupted": ([said("b1", KEYED, "half"), STOPPED], "interrupted", "half", TurnStopped),
    "refused": ([refused("b1", KEYED, "API Error: 529")], "failed", "", TurnStopped),
    "too many turns": (LIMITED, "failed", "", TurnStopped),
}


class Remembering(FramePeer):
    """A CLI that drops prompts which it has processed, and answers the others."""

    def __init__(self, known: set[str], handshake: dict[str, Any]) -> None:
        super().__init__(greets=False)
        self.known = known
        self.handshake = handshake

    def data_received(self, data: bytes) -> None:
        before = len(self.received)
        super().data_received(data)
        for frame in self.received[before:]:
            if frame.get("request", {}).get("subtype") == "initialize":
                self.say(answer_to(frame, self.handshake))
            elif frame.get("request", {}).get("subtype") == "get_usage":
                self.say(answer_to(frame, {"session": {"total_cost_usd": 0.0}}))
            elif frame["type"] == "user":
                self._prompted(frame["uuid"])

    def _prompted(self, uuid: str) -> None:
        if uuid in self.known:
            self.say(lifecycle(uuid, "completed"), state("idle"))
        else:
            self.say(state("running"), lifecycle(uuid, "started"))
            self.say(result([uuid], "Paid."), lifecycle(uuid, "completed"), state("idle"))

    @property
    def prompts(self) -> list[Frame]:
        return self.sent("user")


def stored(folder: Path, lines: list[bytes]) -> dict[str, str]:
    """The environment of a CLI whose session file has these lines."""
    place = folder / "projects" / "-work"
    place.mkdir(parents=True)
    (place / f"{ID}.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    return {"CLAUDE_CONFIG_DIR": str(folder)}


@pytest.mark.parametrize("handshake", [MODERN, OLDER], ids=["modern", "older"])
@pytest.mark.parametrize("ending", ENDINGS)
async def test_a_turn_that_has_ended_is_told_as_it_ended(
    tmp_path: Path, ending: str, handshake: dict[str, Any]
) -> None:
    lines, outcome, text, cause = ENDINGS[ending]
    env = stored(tmp_path, [asked(KEYED, None, "pay"), *lines])
    peer = Remembering({KEYED}, handshake)

    async with opened(peer.transport, resume=ID, env=env) as session:
        turn = await session.send("pay", key="invoice 7")
        done = await turn

    assert (done.outcome, done.text, turn.delivery) == (outcome, text, "completed")
    assert cause is None if done.cause is None else type(done.cause) is cause
    assert [frame["uuid"] for frame in peer.prompts] == ([KEYED] if handshake is MODERN else [])


@pytest.mark.parametrize(
    ("lines", "known", "continued_as"),
    [
        ([], {KEYED}, FIRST),
        ([filled("f1", KEYED)], {KEYED}, FIRST),
        ([called("b1", KEYED)], {KEYED}, FIRST),
        (
            [called("b1", KEYED), filled("f1", "b1"), asked(FIRST, "f1", CONTINUE)],
            {KEYED, FIRST},
            SECOND,
        ),
    ],
    ids=["never begun", "lost twice", "in a tool", "lost when it was continued"],
)
async def test_a_turn_that_was_cut_off_goes_on_under_a_uuid_that_every_process_knows(
    tmp_path: Path, lines: list[bytes], known: set[str], continued_as: str
) -> None:
    env = stored(tmp_path, [asked(KEYED, None, "pay"), *lines])
    peer = Remembering(known, MODERN)

    async with opened(peer.transport, resume=ID, env=env) as session:
        done = await (await session.send("pay", key="invoice 7"))

    assert (done.uuid, done.outcome, done.result is not None) == (KEYED, "completed", True)
    assert [(frame["uuid"], frame["message"]["content"]) for frame in peer.prompts] == [
        (KEYED, "pay"),
        (continued_as, CONTINUE),
    ]


async def test_a_turn_that_later_prompts_stand_behind_is_continued_with_its_own_prompt(
    tmp_path: Path,
) -> None:
    lines = [asked(KEYED, None, "pay 7"), filled("f1", KEYED), asked("other", "f1", "pay 8")]
    env = stored(tmp_path, [*lines, said("b1", "other", "Paid.")])
    peer = Remembering({KEYED}, MODERN)

    async with opened(peer.transport, resume=ID, env=env) as session:
        await (await session.send("pay 7", key="invoice 7"))

    *_, last = peer.prompts
    assert (last["uuid"], last["message"]["content"]) == (FIRST, again("pay 7", CONTINUE))


async def test_a_turn_that_another_process_has_continued_is_read_to_its_end(tmp_path: Path) -> None:
    lines = [called("b1", KEYED), filled("f1", "b1"), asked(FIRST, "f1", CONTINUE)]
    lines += [asked(SECOND, FIRST, CONTINUE), said("c1", SECOND, "Paid.")]
    env = stored(tmp_path, [asked(KEYED, None, "pay"), *lines])
    peer = Remembering({KEYED, FIRST, SECOND}, MODERN)

    async with opened(peer.transport, resume=ID, env=env) as session:
        done = await (await session.send("pay", key="invoice 7"))

    assert (done.outcome, done.text) == ("completed", "Paid.")
    assert len(peer.prompts) == 1


@pytest.mark.parametrize("handshake", [MODERN, OLDER], ids=["modern", "older"])
async def test_a_turn_that_no_cli_continues_fails_and_is_not_taken_for_an_answer(
    tmp_path: Path, handshake: dict[str, Any]
) -> None:
    env = stored(tmp_path, [asked(KEYED, None, "pay"), filled("f1", KEYED)])
    peer = Remembering({KEYED, FIRST}, handshake)

    async with opened(peer.transport, resume=ID, env=env) as session:
        done = await (await session.send("pay", key="invoice 7"))

    assert (done.outcome, type(done.cause)) == ("failed", CliExited)


async def test_a_prompt_that_joined_another_turn_is_not_run_again(tmp_path: Path) -> None:
    joined = attached("q1", "b1", type="queued_command", source_uuid=KEYED)
    lines = [asked("other", None, "go"), called("b1", "other"), joined, said("b2", "q1", "Both.")]
    peer = Remembering(set(), MODERN)

    async with opened(peer.transport, resume=ID, env=stored(tmp_path, lines)) as session:
        done = await (await session.send("pay", key="invoice 7"))

    assert (done.outcome, done.text, peer.prompts) == ("completed", "Both.", [])


async def test_text_that_was_only_added_to_the_conversation_has_nothing_to_finish(
    tmp_path: Path,
) -> None:
    env = stored(tmp_path, [asked(KEYED, None, "by the way")])
    peer = Remembering({KEYED}, MODERN)

    async with opened(peer.transport, resume=ID, env=env) as session:
        done = await (await session.send("by the way", key="invoice 7", query=False))

    assert (done.outcome, len(peer.prompts)) == ("completed", 1)


async def test_a_key_needs_a_conversation_whose_id_is_known() -> None:
    peer = Remembering(set(), MODERN)

    async with opened(peer.transport, continue_conversation=True) as session:
        with pytest.raises(UsageError, match="resume=") as no:
            await session.send("pay", key="invoice 7")

    assert no.value.argument == "key"
    assert peer.prompts == []
