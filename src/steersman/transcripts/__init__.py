"""The CLI's own session files: what they contain about a prompt. Pure."""

from steersman.transcripts.keys import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
)
from steersman.transcripts.lookup import (
    Ending,
    answer_to,
    ending_of,
    failure_of,
    has_prompt,
    is_unfinished,
    was_folded,
)

__all__ = [
    "Ending",
    "SessionKey",
    "SessionListSubkeysKey",
    "SessionStoreEntry",
    "SessionStoreListEntry",
    "SessionSummaryEntry",
    "answer_to",
    "ending_of",
    "failure_of",
    "has_prompt",
    "is_unfinished",
    "was_folded",
]
