"""Checks of what a caller gives to an inbox, the one in memory and the one in a store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Literal

from steersman._json import is_mapping
from steersman.errors import AskChanged, AskError, SteersmanError, UsageError
from steersman.inbox.changes import AskOutcome
from steersman.permissions import Ask


def check_name(argument: Literal["by", "to"], given: object) -> None:
    """Raise `UsageError` if `given` is not a name."""
    if not (isinstance(given, str) and given):
        raise UsageError(argument, given, "a name that is not empty")


def check_expires_after(given: object) -> None:
    """Raise `UsageError` if `given` is not a time after which asks can expire."""
    is_number = isinstance(given, int | float) and not isinstance(given, bool) and given > 0
    if not (given is None or is_number):
        raise UsageError("expires_after", given, "seconds above 0, or None")


def check_answer(ask: Ask, answer: object, seen: object) -> None:
    """Raise `UsageError` for an answer of another kind, `AskChanged` for one to another input."""
    if not (seen is None or isinstance(seen, str)):
        raise UsageError("seen", seen, "the digest of the ask that was shown, or None")
    ask.response(answer)
    if seen is not None and seen != ask.digest:
        raise AskChanged(ask.id, seen, ask.digest)


def seen_of(given: Ask | str, seen: str | None) -> str | None:
    """Return the digest of what was shown: of the ask that was given, unless `seen` names one."""
    return given.digest if seen is None and isinstance(given, Ask) else seen


async def answer_each(
    answer_one: Callable[[str, object], Awaitable[AskOutcome]],
    answers: Mapping[str, object] | Iterable[str],
    answer: object,
) -> dict[str, AskOutcome | SteersmanError]:
    """Answer each ask, and return the outcome or the error of each."""
    each: Mapping[str, object] = answers if is_mapping(answers) else dict.fromkeys(answers, answer)
    found: dict[str, AskOutcome | SteersmanError] = {}
    for ask_id, given in each.items():
        try:
            found[ask_id] = await answer_one(ask_id, given)
        except (AskError, UsageError) as error:
            found[ask_id] = error
    return found
