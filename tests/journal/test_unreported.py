"""Tokens of a lost CLI: each message counts once, for one turn, and what is not known is said."""

from __future__ import annotations

from steersman._json import JsonDict, dumps
from steersman.journal import Entry, Kind, Unreported
from steersman.journal.costs import unreported_in
from steersman.messages.usage import Usage


def assistant(name: str, used: int, wrote: int, **fields: object) -> bytes:
    usage = {"input_tokens": used, "output_tokens": wrote, "cache_read_input_tokens": 5}
    body: JsonDict = {"id": name, "model": "m", "content": [], "stop_reason": None, "usage": usage}
    return dumps({"type": "assistant", "message": body, **fields})


def event(kind: str, **fields: object) -> bytes:
    return dumps({"type": "stream_event", "event": {"type": kind, **fields}})


def begun(name: str, used: int) -> bytes:
    usage = {"input_tokens": used, "output_tokens": 1}
    return event("message_start", message={"id": name, "model": "m", "usage": usage})


def ended(wrote: int) -> bytes:
    return event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": wrote})


def said(*lines: bytes, turns: tuple[str, ...] = ("u",)) -> list[Entry]:
    found: list[Entry] = []
    for number, line in enumerate(lines, 1):
        kind = Kind.PARTIAL if b"stream_event" in line else Kind.MESSAGE
        found.append(Entry(number, 0.0, kind, line, turns))
    return found


def test_a_message_that_comes_in_blocks_counts_once() -> None:
    lines = [assistant("a", 100, 1), assistant("a", 100, 1), assistant("b", 50, 2)]

    found = unreported_in(said(*lines))["u"]

    tokens = Usage(input_tokens=150, output_tokens=3, cache_read_input_tokens=10)
    assert found == Unreported(messages=2, model_usage={"m": tokens}, is_exact=False)


def test_partial_messages_say_how_much_was_written() -> None:
    found = unreported_in(said(begun("a", 100), assistant("a", 100, 1), ended(40)))["u"]

    assert (found.messages, found.usage.output_tokens, found.is_exact) == (1, 40, True)


def test_a_message_that_was_broken_off_counts_with_what_is_known() -> None:
    found = unreported_in(said(begun("a", 100), ended(40), begun("b", 200)))["u"]

    assert (found.messages, found.usage.input_tokens) == (2, 300)
    assert (found.usage.output_tokens, found.is_exact) == (41, False)


def test_a_message_of_two_prompts_counts_for_the_first() -> None:
    found = unreported_in(said(assistant("a", 100, 1), turns=("u", "v")))

    assert list(found) == ["u"]


def test_errors_and_messages_of_no_turn_cost_nothing() -> None:
    failure = said(assistant("a", 0, 0, is_api_error_message=True))
    assert unreported_in([*failure, *said(assistant("b", 9, 9), turns=())]) == {}


def test_entries_that_are_gone_make_the_count_inexact() -> None:
    entries = said(begun("a", 100), ended(40))

    assert not unreported_in(entries, is_whole=False)["u"].is_exact


def test_the_details_of_an_entry_are_read_back() -> None:
    found = unreported_in(said(begun("a", 100), ended(40)))["u"]
    details: JsonDict = found.to_details()

    assert Unreported.from_details(details) == found
    assert not Unreported.from_details({"messages": "many"})


def test_two_counts_are_added_by_model() -> None:
    one = Unreported(messages=1, model_usage={"m": Usage(input_tokens=1)})
    other = Unreported(
        messages=2,
        model_usage={"m": Usage(input_tokens=2), "n": Usage(output_tokens=3)},
        is_exact=False,
    )

    models = {"m": Usage(input_tokens=3), "n": Usage(output_tokens=3)}
    assert one + other == Unreported(messages=3, model_usage=models, is_exact=False)
    assert (one + other).usage == Usage(input_tokens=3, output_tokens=3)
