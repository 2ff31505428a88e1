"""Which releases are looked at: the ends, those at which a promise changes, and some by chance.

Everything here is a function of its input; what a release does is asked through `Ask`.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

from steersman._releases import numbers

VerdictT = TypeVar("VerdictT")
Ask = Callable[[str], Awaitable[VerdictT]]
"""Returns the findings about a release."""


def ordered(versions: Iterable[str]) -> list[str]:
    """Return versions, oldest first, each one once."""
    return sorted(set(versions), key=numbers)


def since(floor: str, versions: Iterable[str]) -> list[str]:
    """Return the versions from `floor` on, oldest first."""
    return [each for each in ordered(versions) if numbers(each) >= numbers(floor)]


async def find_changes(
    versions: Sequence[str],
    points: Iterable[str],
    ask: Ask[VerdictT],
    known: Mapping[str, VerdictT] | None = None,
) -> dict[str, VerdictT]:
    """Return the verdicts on as few of the `versions` as show between which two each change lies.

    `points` are asked first; what is `known` is not asked. Between two neighbours with the same
    verdict nothing is looked for: a change that is taken back needs a point inside to be found.
    """
    seen = dict(known or {})

    async def verdict(version: str) -> VerdictT:
        if version not in seen:
            seen[version] = await ask(version)
        return seen[version]

    async def search(first: int, last: int) -> None:
        is_same = await verdict(versions[first]) == await verdict(versions[last])
        middle = (first + last) // 2
        if is_same or middle == first:
            return
        await search(first, middle)
        await search(middle, last)

    places = sorted({versions.index(each) for each in (*points, *seen)})
    for place in places:
        await verdict(versions[place])
    for first, last in pairwise(places):
        await search(first, last)
    return {version: seen[version] for version in ordered(seen)}


def changes_in(verdicts: Mapping[str, VerdictT]) -> list[str]:
    """Return the releases that do something else than the last one before them."""
    return [
        later
        for earlier, later in pairwise(ordered(verdicts))
        if verdicts[earlier] != verdicts[later]
    ]


def holds_since(verdicts: Mapping[str, VerdictT], good: VerdictT) -> str | None:
    """Return the first release from which on every one is good; None if the newest is not."""
    first = None
    for version in reversed(ordered(verdicts)):
        if verdicts[version] != good:
            break
        first = version
    return first


def runs_of(verdicts: Mapping[str, VerdictT], good: VerdictT) -> list[tuple[str, str]]:
    """Return the first and the last release of each range that is not good."""
    runs: list[tuple[str, str]] = []
    is_in_run = False
    for version in ordered(verdicts):
        is_bad = verdicts[version] != good
        if is_bad:
            runs[len(runs) - is_in_run :] = [(runs[-1][0] if is_in_run else version, version)]
        is_in_run = is_bad
    return runs


def chosen(
    versions: Sequence[str], wanted: Mapping[str, str], *, count: int, by_chance: int, day: str
) -> dict[str, str]:
    """Return at least `count` releases, oldest first, each with the reason why it was chosen.

    All of `wanted`, which has the reasons, and at least `by_chance` others, drawn by the `day`.
    """
    others = [each for each in versions if each not in wanted]
    missing = min(max(by_chance, count - len(wanted)), len(others))
    drawn = dict.fromkeys(random.Random(day).sample(others, missing), "by chance")
    both = {**wanted, **drawn}
    return {version: both[version] for version in ordered(both)}
