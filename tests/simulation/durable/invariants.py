"""What must hold in every run of durable work, as docs/durable-model.md lists it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from tests.simulation.durable.outcome import Outcome

ENDED = {"interrupt", "cancel", "withdraw"}
"""What a program does to end a turn for good."""
LOSSES = {"is killed", "is stopped", "loses its CLI", "loses its store"}
"""After what a call may be asked about again."""


def no_tool_without_an_answer_of_its_own(out: Outcome) -> Iterator[str]:
    for command in out.plan.commands:
        allowed = 0 if out.plan.denies else out.count("answers", command)
        if out.count("tool begins", command) > allowed:
            yield command


def a_tool_ends_once(out: Outcome) -> Iterator[str]:
    for command in out.plan.commands:
        if out.count("tool ends", command) > 1:
            yield command


def a_turn_completes_only_with_its_result(out: Outcome) -> Iterator[str]:
    is_denied = out.plan.denies or out.count("lets expire") > 0
    texts = {"paid", "denied"} if is_denied else {"paid"}
    for host, outcome, said in out.results:
        if outcome == "completed" and said not in texts:
            yield f"{host} {said!r}"
    if is_denied:
        return
    for key, _, outcome in out.rows:
        commands = out.plan.commands_of(key)
        missing = [each for each in commands if not out.count("tool ends", each)]
        if outcome == "completed" and missing:
            yield f"row {key} without {missing}"


def only_interrupt_and_cancel_end_a_turn_for_good(out: Outcome) -> Iterator[str]:
    if any(each.what in ENDED for each in out.log):
        return
    for host, outcome, _ in out.results:
        if outcome in ("interrupted", "cancelled"):
            yield f"{host} {outcome}"
    for key, state, outcome in out.rows:
        if state == "settled" and outcome != "completed":
            yield f"row {key} settled as {outcome}"


def nobody_is_asked_again_without_a_loss(out: Outcome) -> Iterator[str]:
    """Each further ask has a loss or an interrupt before it, and shows the answer."""
    losses = sum(out.count(each) for each in (*LOSSES, *ENDED))
    for command in out.plan.commands:
        asked = [each for each in out.asks if each.command == command]
        if len(asked) > 1 + losses:
            yield f"{command}: {len(asked)} asks, {losses} losses"
        for before, ask in itertools.pairwise(asked):
            was_told = before.state == "answered" and before.was_used and before.mark
            if was_told and not ask.has_earlier and before.turn == ask.turn:
                yield f"{command}: an ask does not show what was answered before"


def a_leave_kills_no_tool_that_ends_within_the_grace(out: Outcome) -> Iterator[str]:
    for command in out.plan.commands:
        if out.count("tool killed", f"{command} by the leave"):
            yield command


def a_turn_fails_only_with_its_store_or_lease(out: Outcome) -> Iterator[str]:
    if any(each.leave in ("store away", "stop") for each in out.plan.lives):
        return
    for host, outcome, _ in out.results:
        if outcome == "failed":
            yield host


def everything_ends_once_everybody_answers(out: Outcome) -> Iterator[str]:
    for key, state, _ in out.rows:
        if state != "settled":
            yield f"row {key} {state}"
    yield from (f"job {each.about}" for each in out.log if each.what == "job is lost")


def an_open_ask_belongs_to_an_unsettled_turn(out: Outcome) -> Iterator[str]:
    yield from {each.about for each in out.log if each.what == "orphan ask"}
    yield from (f"{each.command} at the end" for each in out.asks if each.state == "open")


def a_row_is_unsettled_as_long_as_its_prompt_is_owed(out: Outcome) -> Iterator[str]:
    yield from {each.about for each in out.log if each.what == "settled row"}


INVARIANTS: dict[str, Callable[[Outcome], Iterator[str]]] = {
    "I1": no_tool_without_an_answer_of_its_own,
    "I2": a_tool_ends_once,
    "I3": a_turn_completes_only_with_its_result,
    "I4": only_interrupt_and_cancel_end_a_turn_for_good,
    "I5": nobody_is_asked_again_without_a_loss,
    "I6": a_leave_kills_no_tool_that_ends_within_the_grace,
    "I7": a_turn_fails_only_with_its_store_or_lease,
    "I8": everything_ends_once_everybody_answers,
    "I9": an_open_ask_belongs_to_an_unsettled_turn,
    "I10": a_row_is_unsettled_as_long_as_its_prompt_is_owed,
}


def broken(out: Outcome) -> list[str]:
    """Return which promises were broken, by number and name."""
    wrong = [f"harness: {out.failure}"] if out.failure else []
    for number, check in INVARIANTS.items():
        name = check.__name__.replace("_", " ")
        wrong += [f"{number} {name}: {each}" for each in check(out)]
    return wrong
