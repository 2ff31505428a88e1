"""Differences between a replay and its recording, with texts that show what to change."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from steersman import _json
from steersman._json import Json
from steersman.errors import SteersmanError

LONGEST_SHOWN = 400


class Absent(Enum):
    """The value of a side that has nothing."""

    NOTHING = "nothing"


NOTHING = Absent.NOTHING


@dataclass(frozen=True, slots=True)
class Drift:
    """One difference between a replay and its recording."""

    what: str
    """The prompt, request or decision that differs."""
    recorded: Json = NOTHING
    came: Json = NOTHING
    seq: int = 0
    """The number of the record on the tape; 0 if there is none."""
    track: int = 0

    def __str__(self) -> str:
        path, recorded, came = first_difference(self.recorded, self.came) or ("", NOTHING, NOTHING)
        lines = [f"{self.what} (track {self.track}, entry {self.seq})"]
        if path:
            lines.append(f"  first difference: {path}: {_shown(recorded)} became {_shown(came)}")
        lines.append(f"  recorded: {_shown(self.recorded)}")
        lines.append(f"  came:     {_shown(self.came)}")
        return "\n".join(lines)


class Drifted(SteersmanError):
    """A replay differed from its recording. `drifts` lists the differences in order."""

    code = "drifted"

    def __init__(self, drifts: Iterable[Drift]) -> None:
        self.drifts = tuple(drifts)
        super().__init__(
            "this replay differs from its recording:\n"
            + "\n".join(str(each) for each in self.drifts),
            hint="if the change is intended, record the cassette again",
        )


def first_difference(recorded: Json, came: Json, path: str = "") -> tuple[str, Json, Json] | None:
    """Return the path of the first difference and both values there, or None."""
    if _json.is_object(recorded) and _json.is_object(came):
        for name in dict.fromkeys((*recorded, *came)):
            inside = first_difference(
                recorded.get(name, NOTHING), came.get(name, NOTHING), f"{path}.{name}".lstrip(".")
            )
            if inside is not None:
                return inside
        return None
    if _json.is_array(recorded) and _json.is_array(came):
        pairs = itertools.zip_longest(recorded, came, fillvalue=NOTHING)
        for position, (one, other) in enumerate(pairs):
            inside = first_difference(one, other, f"{path}[{position}]")
            if inside is not None:
                return inside
        return None
    return None if recorded == came else (path, recorded, came)


def _shown(value: Json) -> str:
    if isinstance(value, Absent):
        return value.value
    text = str(_json.dumps(value), "utf-8", "replace")
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
