from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
)

from steersman._protocol.events import MessageArrived, TurnSettled, TurnStarted
from steersman._protocol.routing import RoutingFields
from steersman._protocol.turns import TurnTracker
from tests._protocol.conversations import Dialogue, as_older_cli, heard, with_uuids
from tests.samples import dialogue, kind_of, traces

LINE = b'{"type":"result"}'
FOREIGN = {"kind": "task-notification"}


def short(uuid: str) -> str:
    """`4` for the uuids that hosts of recordings made up, `prompt-2` stays."""
    return uuid if uuid.startswith("prompt") else uuid[0]


def settled_in(said: Dialogue) -> list[tuple[str, int | str]]:
    """Each prompt that settles, in order, with the number of the result that settled it."""
    results = -1
    found: list[tuple[str, int | str]] = []
    for frame, events in heard(said):
        results += frame["type"] == "result"
        for event in events:
            if isinstance(event, TurnSettled):
                by = "cancelled" if event.was_cancelled else "idle" if not event.result else results
                found.append((short(event.uuid), by))
    return found


SETTLED: dict[str, list[tuple[str, int | str]]] = {
    # Sent at once, before the first turn: a turn each.
    "queue_two_messages": [("1", 0), ("2", 1)],
    # 2 and 3 waited for 1 and became one turn; 5 was folded into the turn of 4.
    "queue_during_turn": [("1", 0), ("2", 1), ("3", 1), ("4", 2), ("5", 2)],
    "queue_during_permission": [("1", 0), ("2", 0)],
    # 4 and 6 were taken back before they began; 1 and 3 were interrupted and have results.
    "queue_interrupt": [
        ("1", 0),
        ("2", 1),
        ("4", "cancelled"),
        ("3", 2),
        ("6", "cancelled"),
        ("5", 3),
    ],
    # The CLI drops the second prompt under one uuid, and tells only of `completed`.
    "user_duplicate_uuid": [("1", 0), ("1", "idle")],
    "replay_user_messages": [("1", 0)],
    "rewind_client_uuid": [("1", 0), ("2", 1)],
}

# What an older CLI cannot tell: prompts that were taken back, and that a uuid came twice.
SETTLED_OLDER: dict[str, list[tuple[str, int | str]]] = {
    **SETTLED,
    "queue_interrupt": [("1", 0), ("2", 1), ("3", 2), ("5", 3)],
    "user_duplicate_uuid": [("1", 0)],
    "replay_user_messages": [("1", 0), ("prompt-1", 1)],
    "queue_priority_now": [("prompt-1", 0), ("prompt-2", 1)],
    "user_should_query_false": [("prompt-1", 0), ("prompt-2", 1)],
    "interrupt_bash": [("prompt-1", 0), ("prompt-2", 1)],
    "interrupt_before_first_byte": [("prompt-1", 0)],
    "interrupt_idle": [("prompt-1", 0), ("prompt-2", 1)],
    "interrupt_mid_stream": [("prompt-1", 0), ("prompt-2", 1)],
    # The second result is that of a turn nobody asked for.
    "interrupt_with_background.afford": [("prompt-1", 0)],
    "subagent_background": [("prompt-1", 0)],
    "subagent_background_stdin_closed": [("prompt-1", 0)],
    "subagent_foreground": [("prompt-1", 0)],
    "subagent_forward_text": [("prompt-1", 0)],
    "multi_turn_tools": [("prompt-1", 0), ("prompt-2", 1), ("prompt-3", 2)],
    "max_turns": [("prompt-1", 0), ("prompt-2", 1)],
    "api_400": [("prompt-1", 0), ("prompt-2", 1)],
    "hooks_all_events": [(f"prompt-{number + 1}", number) for number in range(9)],
    "set_model": [(f"prompt-{number + 1}", number) for number in range(6)],
    "fault_kill9_mid_turn": [],
}


@pytest.mark.parametrize("trace", sorted(SETTLED))
def test_prompts_settle_by_uuid_in_recorded_order(trace: str) -> None:
    assert settled_in(dialogue(trace)) == SETTLED[trace]


@pytest.mark.parametrize("trace", sorted(SETTLED_OLDER))
def test_prompts_settle_on_older_clis_by_their_replays(trace: str) -> None:
    assert settled_in(as_older_cli(trace)) == SETTLED_OLDER[trace]


def test_every_recording_whose_prompts_have_uuids_stands_in_the_table() -> None:
    with_lifecycles = {
        trace
        for trace in traces()
        if any(frame.get("type") == "command_lifecycle" for _side, frame in dialogue(trace))
    }

    assert with_lifecycles == set(SETTLED)


@pytest.mark.parametrize("trace", sorted(SETTLED))
def test_frames_belong_to_the_prompts_that_the_cli_names_on_them(trace: str) -> None:
    said = [
        (kind_of(frame), frame["user_message_uuids"], list(events[0].turns))
        for frame, events in heard(dialogue(trace))
        if "user_message_uuids" in frame and isinstance(events[0], MessageArrived)
    ]

    assert said
    assert [belongs for _kind, _named, belongs in said] == [named for _kind, named, _turns in said]


def test_what_the_model_says_after_a_fold_belongs_to_both_prompts() -> None:
    said = [
        [short(uuid) for uuid in events[0].turns]
        for frame, events in heard(dialogue("queue_during_turn"))
        if frame["type"] == "assistant" and isinstance(events[0], MessageArrived)
    ]

    assert said == [["1"], ["2", "3"], ["4"], ["4", "5"]]


@pytest.mark.parametrize(
    "trace",
    ["subagent_background", "subagent_background_stdin_closed", "interrupt_with_background.afford"],
)
def test_a_turn_nobody_asked_for_leaks_into_no_other(trace: str) -> None:
    said = [
        (frame, events[0].turns)
        for frame, events in heard(as_older_cli(trace))
        if isinstance(events[0], MessageArrived)
        and frame["type"] in ("assistant", "user", "result")
    ]
    results = [at for at, (frame, _turns) in enumerate(said) if frame["type"] == "result"]
    behind = said[results[0] + 1 :]

    of_the_subagent = {turns for frame, turns in behind if frame.get("parent_tool_use_id")}
    of_nobody = {turns for frame, turns in behind if not frame.get("parent_tool_use_id")}

    assert of_the_subagent == {("prompt-1",)}
    assert of_nobody == {()}


def test_a_result_that_names_a_prompt_twice_settles_it_once() -> None:
    book = TurnTracker()
    book.expect("a")

    events = book.result(RoutingFields(user_message_uuids=["a", "a"]), LINE)

    assert events == [TurnSettled("a", LINE)]


def test_a_prompt_replayed_twice_settles_once() -> None:
    book = TurnTracker()
    book.expect("a")
    assert [*book.replayed("a"), *book.replayed("a")] == [TurnStarted("a")]

    events = book.result(RoutingFields(), LINE)

    assert events == [TurnSettled("a", LINE)]


def test_a_result_may_name_a_single_prompt_under_its_older_field() -> None:
    book = TurnTracker()
    book.expect("a")

    assert book.result(RoutingFields(user_message_uuid="a"), LINE) == [TurnSettled("a", LINE)]


def test_a_prompt_that_was_dropped_does_not_settle_with_a_turn_that_names_no_prompt() -> None:
    """The CLI continues a call that was deferred, and replays what it drops meanwhile."""
    book = TurnTracker()
    book.expect("a")
    book.lifecycle("own", "started")

    seen = [*book.replayed("a"), *book.lifecycle("a", "completed")]

    assert [*seen, *book.result(RoutingFields(), LINE)] == []
    assert book.idle() == [TurnSettled("a", None)]


def test_a_foreign_result_settles_nobody_and_keeps_the_replays_before_it() -> None:
    book = TurnTracker()
    book.expect("a")
    book.replayed("a")

    foreign = book.result(RoutingFields(origin=FOREIGN), LINE)
    own = book.result(RoutingFields(), LINE)

    assert foreign == []
    assert own == [TurnSettled("a", LINE)]


def test_a_bare_completed_waits_for_idle() -> None:
    book = TurnTracker()
    book.expect("a")

    assert book.lifecycle("a", "completed") == []
    assert book.idle() == [TurnSettled("a", None)]
    assert book.idle() == []


def test_what_completed_settles_at_idle_in_the_order_it_was_sent() -> None:
    book = TurnTracker()
    uuids = [f"uuid-{number}" for number in range(40)]
    for uuid in uuids:
        book.expect(uuid)
    for uuid in reversed(uuids):
        book.lifecycle(uuid, "completed")

    assert book.idle() == [TurnSettled(uuid, None) for uuid in uuids]


def test_after_a_redirect_cancelled_comes_too_late_to_matter() -> None:
    book = TurnTracker()
    book.expect("a")
    book.result(RoutingFields(user_message_uuids=["a"]), LINE)

    assert book.lifecycle("a", "cancelled") == []


def test_a_prompt_of_somebody_else_is_nothing_to_us() -> None:
    book = TurnTracker()

    events = [
        *book.lifecycle("x", "started"),
        *book.replayed("x"),
        *book.lifecycle("x", "completed"),
        *book.result(RoutingFields(user_message_uuids=["x"]), LINE),
        *book.idle(),
    ]

    assert events == []


def test_a_peer_that_tells_of_no_prompt_settles_the_oldest_with_each_result() -> None:
    book = TurnTracker()
    for uuid in ("a", "b"):
        book.expect(uuid)

    first = [*book.spoken(), *book.result(RoutingFields(), LINE)]
    foreign = book.result(RoutingFields(origin=FOREIGN), LINE)
    second = book.result(RoutingFields(), LINE)

    assert first == [TurnStarted("a"), TurnSettled("a", LINE)]
    assert foreign == []
    assert second == [TurnSettled("b", LINE)]
    assert book.result(RoutingFields(), LINE) == []


@pytest.mark.parametrize(
    "tell",
    [
        lambda book: book.lifecycle("x", "queued"),
        lambda book: book.replayed("x"),
        lambda book: book.result(RoutingFields(user_message_uuids=["x"]), LINE),
        lambda book: book.resume(()),
    ],
)
def test_a_peer_that_has_told_of_a_prompt_settles_none_by_a_bare_result(
    tell: Callable[[TurnTracker], object],
) -> None:
    book = TurnTracker()
    book.expect("a")
    tell(book)

    assert book.result(RoutingFields(), LINE) == []
    assert book.open == ("a",)


@pytest.mark.parametrize(
    ("happens", "is_refusal"),
    [
        (lambda _: RoutingFields(), True),
        (lambda _: RoutingFields(user_message_uuid="a"), False),
        (lambda _: RoutingFields(user_message_uuids=["a"]), False),
        (lambda _: RoutingFields(origin={"kind": "task-notification"}), False),
        (lambda book: book.lifecycle("a", "started") and RoutingFields(), False),
        (lambda book: (book.opened(), RoutingFields())[1], False),
    ],
)
def test_a_bare_result_before_anything_else_refuses_to_resume(
    happens: Callable[[TurnTracker], RoutingFields], *, is_refusal: bool
) -> None:
    book = TurnTracker()
    book.resume(("a",))

    assert book.is_refusal(happens(book) or RoutingFields()) is is_refusal
    assert not TurnTracker().is_refusal(RoutingFields())


def turns_of(said: Dialogue, *, is_modern: bool) -> list[object]:
    """What each line says of prompts: whose it is, and which begin or settle with it."""
    found = [event for _frame, events in heard(said, is_modern=is_modern) for event in events]
    return [
        each.turns if isinstance(each, MessageArrived) else each
        for each in found
        if isinstance(each, MessageArrived | TurnStarted | TurnSettled)
    ]


@pytest.mark.parametrize("recorded", [with_uuids, as_older_cli])
@pytest.mark.parametrize("trace", traces())
def test_no_recorded_cli_settles_as_one_that_tells_of_no_prompt(
    trace: str, recorded: Callable[[str], Dialogue]
) -> None:
    """With the rule and without it, each line of each recording says the same of prompts."""
    said = recorded(trace)

    assert turns_of(said, is_modern=False) == turns_of(said, is_modern=True)


class TurnBookMachine(RuleBasedStateMachine):
    """Whatever the CLI tells, in whatever order: a prompt settles once, and not for nothing."""

    prompts = Bundle("prompts")

    @initialize()
    def begin(self) -> None:
        self.book = TurnTracker()
        self.number = 0
        self.open: list[str] = []
        self.started: set[str] = set()
        self.completed: set[str] = set()
        self.settled: list[str] = []
        self.replayed: list[str] = []
        self.is_nameless = True

    def take(self, events: list[TurnStarted | TurnSettled]) -> list[str]:
        """Note what happened; the uuids that settled."""
        for event in events:
            if isinstance(event, TurnStarted):
                assert event.uuid in self.open
                assert event.uuid not in self.started
                self.started.add(event.uuid)
        settled = [event.uuid for event in events if isinstance(event, TurnSettled)]
        for uuid in settled:
            assert uuid in self.open
            self.open.remove(uuid)
        self.settled += settled
        return settled

    @rule(target=prompts)
    def send(self) -> str:
        self.number += 1
        uuid = f"prompt-{self.number}"
        self.book.expect(uuid)
        self.open.append(uuid)
        return uuid

    @rule(uuid=prompts, state=st.sampled_from(["queued", "started", "unheard"]))
    def tell(self, uuid: str, state: str) -> None:
        self.is_nameless = False
        assert self.take(self.book.lifecycle(uuid, state)) == []

    @rule(uuid=prompts)
    def complete(self, uuid: str) -> None:
        self.is_nameless = False
        self.completed |= {uuid} & set(self.open)
        if uuid not in self.started:
            self.replayed = [each for each in self.replayed if each != uuid]
        assert self.take(self.book.lifecycle(uuid, "completed")) == []

    @rule(uuid=consumes(prompts))
    def cancel(self, uuid: str) -> None:
        self.is_nameless = False
        was_open = uuid in self.open
        assert self.take(self.book.lifecycle(uuid, "cancelled")) == [uuid] * was_open

    @rule(uuid=prompts)
    def replay(self, uuid: str) -> None:
        self.is_nameless = False
        if uuid in self.open:
            self.replayed.append(uuid)
        assert self.take(self.book.replayed(uuid)) == []

    @rule(named=st.lists(prompts, min_size=1, max_size=4), origin=st.none() | st.just(FOREIGN))
    def end_a_turn_by_name(self, named: list[str], origin: dict[str, str] | None) -> None:
        self.is_nameless = False
        expected = [uuid for uuid in dict.fromkeys(named) if uuid in self.open]
        found = RoutingFields(user_message_uuids=named, origin=origin)
        assert self.take(self.book.result(found, LINE)) == expected
        self.replayed = []

    @rule()
    def end_a_turn_without_names(self) -> None:
        expected = [uuid for uuid in dict.fromkeys(self.replayed) if uuid in self.open]
        if self.is_nameless:
            expected = self.open[:1]
        assert self.take(self.book.result(RoutingFields(), LINE)) == expected
        self.replayed = []

    @rule()
    def speak(self) -> None:
        assert self.book.is_nameless == self.is_nameless
        if self.is_nameless:
            assert self.take(self.book.spoken()) == []
            assert self.book.current == tuple(self.open[:1])

    @rule()
    def end_a_turn_nobody_asked_for(self) -> None:
        assert self.take(self.book.result(RoutingFields(origin=FOREIGN), LINE)) == []

    @rule()
    def rest(self) -> None:
        expected = [uuid for uuid in self.open if uuid in self.completed]
        assert self.take(self.book.idle()) == expected

    @invariant()
    def each_prompt_is_open_or_settled_once(self) -> None:
        if hasattr(self, "book"):
            assert self.book.open == tuple(self.open)
            assert len(set(self.settled)) == len(self.settled)
            assert set(self.book.current) <= set(self.open)


TestTurnBook = TurnBookMachine.TestCase
