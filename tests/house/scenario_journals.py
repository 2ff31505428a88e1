"""The journals of kept scenarios, with everything left out that may differ between two runs.

Ids get names in the order in which they come up. Times, amounts, paths and versions are left out,
and so is prose: a text of several words may be reworded at any time. What remains is the behaviour
of a session: which lines are sent and recorded in which order, with which fields, and which states,
decisions and outcomes they lead to.

`python -m tests.house.surface --journals NAME` prints one of them.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from steersman.journal import Entry, Kind, Lagged
from steersman.testing.stages import MemoryStage
from tests.live.staging import LIMIT, entries_of
from tests.simulation.playing import play
from tests.simulation.scenarios import draw, draw_revived
from tests.stages.scenarios import Scenario, at_rest, scenarios

KEPT = Path(__file__).parent / "journals"

# Chosen because their journals do not depend on how many rounds of the event loop a step takes:
# the host of a simulation waits for so many rounds before it does the next thing.
SEEDS: Mapping[str, str] = {
    "seed": "0 4 8 13 14 16 17 18 20 27 29 35 38 47 60 65 73 98 105 112 129 131 150 184 195",
    "restarting": "0 4 10 17 18 20 27 38 50 60 64 65 66 73 98 116 125 136 148 194 196 204 207 236",
}

AMOUNTS = re.compile(r".*(tokens|Tokens|cost|_ms|Ms|Usd|USD)(_.*)?|timestamp|pid|usage|modelUsage")
"""Fields whose values are times, or counts that change with the length of a text."""

INSTALLED = frozenset({"commands", "agents", "models", "capabilities", "tools", "skills"})
"""What the answer to `initialize` and `system/init` say about the installation."""

ID = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?:msg|req|toolu)_[0-9a-f]{24}|req_\d+_[0-9a-f]{8}"
)
PATH = re.compile(r"(?:/[\w.-]+)+/?|/")
VERSION = re.compile(r"\d+\.\d+\.\d+[\w.-]*|\d{4}-\d{2}-\d{2}")
WORDS = re.compile(r"\S\s+\S")


def journal_of(entries: Iterable[Entry | Lagged]) -> list[str]:
    """One line per entry: its kind, the turns that it belongs to, its details and its line."""
    reading = _Reading()
    return [reading.line(entry) for entry in entries]


class _Reading:
    """Names ids as they come up.

    Our own lines and details are kept in full. A line of the CLI is kept as its type and a digest.
    """

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def line(self, entry: Entry | Lagged) -> str:
        if isinstance(entry, Lagged):
            return f"lagged {entry.lost}"
        turns, frame = list(entry.turns), _frame(entry.line)
        parts = [_compact(_left(part)) for part in (turns, dict(entry.details)) if part]
        if frame and entry.kind is not Kind.SENT:
            digest = sha256(ID.sub("ID", _compact(_left(frame))).encode()).hexdigest()[:8]
            parts.append(f"{_label(frame)} {digest}")
        elif frame:
            parts.append(_compact(_left(frame)))
        return ID.sub(self._name, " ".join((entry.kind.value, *parts)))

    def _name(self, found: re.Match[str]) -> str:
        return self._names.setdefault(found[0], f"ID{len(self._names) + 1}")


def _label(frame: dict[str, Any]) -> str:
    """Which line it is: types and subtypes, and the id of a control request."""
    type_ = frame.get("type", "line")
    inner: dict[str, Any] = (
        frame.get("request") or frame.get("response") or frame.get("event") or {}
    )
    found: dict[str, tuple[Any, ...]] = {
        "control_request": (frame.get("request_id"), inner.get("subtype"), _method(inner)),
        "control_response": (inner.get("request_id"), inner.get("subtype")),
        "command_lifecycle": (frame.get("command_uuid"), frame.get("state")),
        "stream_event": (inner.get("type"),),
    }
    parts = found.get(type_, (frame.get("subtype"),))
    return " ".join(str(part) for part in (type_, *parts) if part)


def _method(request: dict[str, Any]) -> str:
    message: dict[str, Any] = request.get("message") or {}
    return str(message.get("method", ""))


def _left(value: object) -> object:
    """The value without what may differ between two runs."""
    if isinstance(value, dict):
        found = cast("dict[str, object]", value)
        return {_text(name): _field(name, found[name]) for name in sorted(found)}
    if isinstance(value, list | tuple):
        return [_left(each) for each in cast("list[object]", value)]
    if isinstance(value, str):
        return _text(value)
    return "#" if isinstance(value, float) else value


def _field(name: str, value: object) -> object:
    if AMOUNTS.fullmatch(name):
        return "#"
    return "*" if name in INSTALLED else _left(value)


def _text(text: str) -> str:
    if WORDS.search(text):
        return "~"
    if PATH.fullmatch(text):
        return "PATH"
    return "VERSION" if VERSION.fullmatch(text) else text


def _frame(line: bytes) -> dict[str, Any]:
    try:
        found: Any = json.loads(line or b"null")
    except ValueError:
        found = None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True)


def _stage(scenario: type[Scenario]) -> list[str]:
    """Play a scenario of `tests/stages` on the scripted CLI in this process."""

    async def perform(folder: Path) -> list[Entry]:
        stage, staged = MemoryStage(scenario.cli(), folder), scenario()
        agent = stage.agent(env=staged.env, **staged.options())
        async with asyncio.timeout(LIMIT):
            async with agent.session() as session:
                await staged.play(session, stage)
                if staged.comes_to_rest:
                    await at_rest(session)
            return await entries_of(session)

    with tempfile.TemporaryDirectory() as folder:
        return journal_of(asyncio.run(perform(Path(folder))))


def _seed(kind: str, seed: int) -> list[str]:
    """Play a seed of the simulation, in virtual time."""
    run = play(draw(seed) if kind == "seed" else draw_revived(seed))
    outcomes = {str(number): result.outcome for number, result in run.results.items()}
    return [*journal_of(run.entries), f"outcomes {_compact(outcomes)}"]


STAGES = {scenario.__name__: scenario for scenario in scenarios()}
PLAYS = [*STAGES, *(f"{kind} {seed}" for kind, seeds in SEEDS.items() for seed in seeds.split())]
"""The names of everything that is kept."""


def played(name: str) -> list[str]:
    """Play one of them and return its journal."""
    if name in STAGES:
        return _stage(STAGES[name])
    kind, _, seed = name.rpartition(" ")
    return _seed(kind, int(seed))


@cache
def kept() -> dict[str, list[str]]:
    """The kept journals, by name."""
    return dict(_sections(KEPT))


def _sections(folder: Path) -> Iterator[tuple[str, list[str]]]:
    for file in sorted(folder.glob("*.txt")):
        for section in file.read_text(encoding="utf-8").split("\n== ")[1:]:
            name, *lines = section.rstrip("\n").split("\n")
            yield name, lines


def keep() -> None:
    """Play all of them and write their journals down."""
    KEPT.mkdir(exist_ok=True)
    for file, names in (("stages", [*STAGES]), ("seeds", [n for n in PLAYS if n not in STAGES])):
        sections = ["\n".join((f"\n== {name}", *played(name), "")) for name in names]
        (KEPT / f"{file}.txt").write_text("".join(sections), encoding="utf-8")
