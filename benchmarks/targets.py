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


_questions = Note(
    "a task and a copy of the context for each question, the entries of the journal (question, "
    "change of state, decision, answer), and a write for each answer",
    "one write for the answers of one loop iteration; the end of an answer inside its own task; "
    "the state looked at only when the first question comes or the last one goes",
)

_connecting = Note(
    "the guard between us and the CLI is a Python process of its own (about 20 ms, 3.5 MiB)",
    "it is started without site-packages; one guard for several CLIs would take both away",
)

NOTES: Mapping[str, Note] = {
    "partial": Note(
        "decoding (route, then message), the journal's entry, the calls from reader to message",
        "entries outside the garbage collector, decoded pieces dropped behind the reader, the "
        "class known by the first bytes of a line",
    ),
    "1kb": Note(
        "the books of the turn, decoding, telling each inner value where it stands",
        "the books read ids and texts off the line and decode no message that nobody reads; line "
        "and path are handed down instead of looked up; few decoded messages stay behind a reader",
    ),
    "800kb": Note(
        "the text is scanned by the router, copied by the decoder and into the turn's text",
        "large lines are decoded once for all, and not searched once they are decoded",
    ),
    "import": Note(
        "the number of our own modules, and the classes in them",
        "what only some programs need is loaded when it is first used",
    ),
    **dict.fromkeys(("permission", "hook", "tool", "permissions", "hooks", "tools"), _questions),
    "mixed": _questions,
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
    return f"- {measured.row.title}: {found} of what the TypeScript SDK needs"


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
