"""Which targets of the design a run meets, and what is known of those that it misses. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.figures import Measured, Ratio, ratio
from benchmarks.rows import OURS, TYPESCRIPT

__all__ = ["NOTES", "Note", "targets"]


@dataclass(frozen=True, slots=True)
class Note:
    """What is known of a row that may miss its target."""

    profile: str
    """Where the time goes."""
    tried: str
    """What was done about it, and what is left."""


_requests = Note(
    "one after the other: half of it is the system's (the wake-up, one read, one write), and the "
    "floor has that too; the rest are Python's own steps: a task and a context for each question, "
    "and the entries of the journal (question, change of state, decision, answer)",
    "the task takes its first step while the chunk is in hand, so a question costs one round of "
    "the loop; one wake-up of readers for a chunk; one write for answers that are ready together; "
    "a third fewer instructions than before",
)

_connecting = Note(
    "the guard between us and the CLI is a Python process of its own (about 20 ms, 3.5 MiB); "
    "the launch is put together from 60 options",
    "the host's share was halved (names of variables looked up once, defaults not checked again); "
    "one process that forks the guards would take most of the rest away",
)

NOTES: Mapping[str, Note] = {
    "partial": Note(
        "three hundred bytecodes from the pipe to the reader, most of them for the journal's "
        "entry, the owner of the piece and the reader's own steps",
        "routed by three fields instead of twenty, decoded when somebody looks, entries outside "
        "the garbage collector, readers that walk over a batch",
    ),
    "1kb": Note(
        "decoding, the books of the turn, and telling each inner value where it stands (four "
        "instance dictionaries)",
        "decoded once, for the route, the books and the reader; texts put together when somebody "
        "looks; few decoded messages stay behind a reader",
    ),
    "800kb": Note(
        "one copy out of the pipe, one into the line, one by the decoder",
        "decoded once; no text is kept twice",
    ),
    "import": Note(
        "asyncio and msgspec are most of it",
        "rooms are read by name when they are first used",
    ),
    **dict.fromkeys(("permission", "hook", "tool", "permissions", "hooks", "tools"), _requests),
    "mixed": _requests,
    **dict.fromkeys(("connect", "connect-wall", "idle", "idle-beside"), _connecting),
}
"""By the key of a row. Kept by hand, from profiles; shown where the row falls short."""


def targets(rows: Iterable[Measured]) -> str:
    """Markdown: how many targets are met, each row that falls short, and what is known of those."""
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
    # There is none where a round of theirs measured nothing.
    how = "more than the TypeScript SDK needs"
    if found is not None:
        how = f"{found} of what the TypeScript SDK needs"
    return f"- {measured.row.title}: {how}"


def _is_behind(measured: Measured) -> bool:
    ours, theirs = measured.median(OURS), measured.median(TYPESCRIPT)
    return ours is not None and theirs is not None and ours > theirs > 0


def _notes(titles: Mapping[str, str]) -> list[str]:
    """A table of what is known of these rows; rows that share a note stand together."""
    sharing: dict[Note, list[str]] = {}
    for key, title in titles.items():
        if key in NOTES:
            sharing.setdefault(NOTES[key], []).append(title)
    lines = [f"| {'; '.join(of)} | {note.profile} | {note.tried} |" for note, of in sharing.items()]
    return (
        ["| row | where the time goes | what was tried |", "|---|---|---|", *lines] if lines else []
    )
