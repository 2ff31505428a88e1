"""The journal of a session and the phases of a session. Pure: no I/O, no clock, no await.

Names are loaded on first use: few programs read or write JSON themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy import by_name

if TYPE_CHECKING:
    from steersman.journal.costs import Unreported as Unreported
    from steersman.journal.ends import Outcome as Outcome
    from steersman.journal.journal import Entry as Entry
    from steersman.journal.journal import Journal as Journal
    from steersman.journal.journal import Kind as Kind
    from steersman.journal.journal import Lagged as Lagged
    from steersman.journal.json_form import from_json as from_json
    from steersman.journal.json_form import result_from_json as result_from_json
    from steersman.journal.json_form import result_to_json as result_to_json
    from steersman.journal.json_form import snapshot_from_json as snapshot_from_json
    from steersman.journal.json_form import snapshot_to_json as snapshot_to_json
    from steersman.journal.json_form import to_json as to_json
    from steersman.journal.results import TurnResult as TurnResult
    from steersman.journal.snapshot import Move as Move
    from steersman.journal.snapshot import Phase as Phase
    from steersman.journal.snapshot import step as step
else:
    __getattr__, __dir__ = by_name(
        __name__,
        {
            "costs": ("Unreported",),
            "ends": ("Outcome",),
            "journal": ("Entry", "Journal", "Kind", "Lagged"),
            "json_form": (
                "from_json",
                "result_from_json",
                "result_to_json",
                "snapshot_from_json",
                "snapshot_to_json",
                "to_json",
            ),
            "results": ("TurnResult",),
            "snapshot": ("Move", "Phase", "step"),
        },
    )

__all__ = [
    "Entry",
    "Journal",
    "Kind",
    "Lagged",
    "Move",
    "Outcome",
    "Phase",
    "TurnResult",
    "Unreported",
    "from_json",
    "result_from_json",
    "result_to_json",
    "snapshot_from_json",
    "snapshot_to_json",
    "step",
    "to_json",
]
