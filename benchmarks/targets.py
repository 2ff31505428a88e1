"""Which targets of the design a run meets, with notes on those that it misses. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.figures import Measured, Ratio, ratio
from benchmarks.rows import OURS, TYPESCRIPT


@dataclass(frozen=True, slots=True)
class Note:
    """What is known about a row that may miss its target."""

    profile: str
    """Where the time goes."""
    tried: str
    """What was done about it, and what is left."""


_requests = Note(
    "one after the other: half of the time is spent in the system (a wake-up, a read, a write), as "
    "in the bare loop; the rest is Python: a task and a context for each request, and the entries "
    "of the journal (request, change of state, decision, answer)",
    "the task runs its first step while the chunk is handled, so a request costs one round of the "
    "loop; readers wake up once per chunk; answers that are ready together are one write; a third "
    "fewer instructions than before",
)

_connecting = Note(
    "the guard between the host and the CLI is two small Python processes (about 22 ms, 4 MiB); "
    "the launch is built from 60 options",
    "the host's part was halved (names of variables are looked up once, defaults are not checked "
    "again); one process that forks all guards would save most of the rest",
)

_trickling = Note(
    "cold caches: a token that comes alone costs what its different functions cost, not what their "
    "instructions do; a loop of asyncio alone is half of it",
    "a token passes through half as many functions as before, and its reader runs in the callback "
    "that received it; without `include_partial_messages` nothing of this is paid",
)

NOTES: Mapping[str, Note] = {
    "stock-run": Note(
        "the start: the launch is built from 60 options, the guard is a process of its own, and "
        "the conversation is locked; the turn itself is a few lines",
        "partial messages are not on the wire; a quarter fewer function calls than before; most of "
        "the rest is 22 wake-ups of two threads, where the official SDK has 13",
    ),
    **dict.fromkeys(
        (f"trickle-{gap}ms-{number}" for gap in (2, 12) for number in (1, 50)), _trickling
    ),
    "latency": _trickling,
    "list": Note(
        "two fifths are reading the whole file and splitting it into lines, where the official "
        "list reads both ends; a third is decoding and folding three lines",
        "only lines that can change a summary are decoded; a second list takes what an index kept",
    ),
    "newest": Note(
        "a look at each file's time, to sort them",
        "only the files that are shown are read",
    ),
    "partial": Note(
        "300 bytecodes from the pipe to the reader, most of them for the journal's entry, for "
        "finding the turn of the message, and in the reader",
        "routed by three fields instead of twenty; decoded only when read; entries that the "
        "garbage collector does not track; readers that iterate over batches",
    ),
    "1kb": Note(
        "decoding, the state of the turn, and linking each inner value to its message (four "
        "instance dictionaries)",
        "decoded once, for routing, the turn and the reader; texts are joined only when read; few "
        "decoded messages are kept for a slow reader",
    ),
    "800kb": Note(
        "one copy from the pipe, one into the line, one by the decoder",
        "decoded once; no text is stored twice",
    ),
    "import": Note(
        "mostly asyncio and msgspec",
        "packages are imported when one of their names is first used",
    ),
    **dict.fromkeys(("permission", "hook", "tool", "permissions", "hooks", "tools"), _requests),
    "mixed": _requests,
    **dict.fromkeys(("connect", "connect-wall", "idle", "idle-beside"), _connecting),
}
"""Notes by the key of a row, written by hand from profiles. Shown if the row misses its target."""


def targets(rows: Iterable[Measured]) -> str:
    """Return Markdown: how many targets are met, and the rows that miss theirs, with notes."""
    known = [(each, found) for each in rows if (found := ratio(each, OURS)) is not None]
    aimed = [(each, found, target) for each, found in known if (target := each.row.target)]
    missed = [each for each in aimed if each[1].value > each[2]]
    behind = [each for each, _ in known if _is_behind(each)]
    lines = [f"{len(aimed) - len(missed)} of {len(aimed)} targets of the design are met."]
    if missed or behind:
        lines += ["", *(_missed(*each) for each in missed), *map(_behind, behind), ""]
        lines += _notes({each.key: each.row.title for each in (*(m[0] for m in missed), *behind)})
    return "\n".join(lines).rstrip("\n") + "\n"


def _missed(measured: Measured, found: Ratio, target: float) -> str:
    might = ", within the margin" if found.value <= target * (1 + (found.margin or 0)) else ""
    return f"- {measured.row.title}: {found} where {target:g} is the target{might}"


def _behind(measured: Measured) -> str:
    found = ratio(measured, OURS, TYPESCRIPT)
    # There is no ratio if one of their rounds measured nothing.
    how = "more than the TypeScript SDK needs"
    if found is not None:
        how = f"{found} of what the TypeScript SDK needs"
    return f"- {measured.row.title}: {how}"


def _is_behind(measured: Measured) -> bool:
    ours, theirs = measured.median(OURS), measured.median(TYPESCRIPT)
    return ours is not None and theirs is not None and ours > theirs > 0


def _notes(titles: Mapping[str, str]) -> list[str]:
    """Return a table of the notes on these rows. Rows that share a note share a line."""
    sharing: dict[Note, list[str]] = {}
    for key, title in titles.items():
        if key in NOTES:
            sharing.setdefault(NOTES[key], []).append(title)
    lines = [f"| {'; '.join(of)} | {note.profile} | {note.tried} |" for note, of in sharing.items()]
    return (
        ["| row | where the time goes | what was tried |", "|---|---|---|", *lines] if lines else []
    )
