"""The CLI's own session files: entries, conversations, summaries, forks, exports. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy import by_name

if TYPE_CHECKING:
    from steersman.transcripts.blocks import Line, Source, lines_backward, lines_forward
    from steersman.transcripts.chain import lines_source, messages
    from steersman.transcripts.entries import (
        AgentInfo,
        SessionInfo,
        StoredMessage,
        TranscriptEntry,
        entry_of,
        read_entry,
    )
    from steersman.transcripts.export import to_html, to_json, to_markdown
    from steersman.transcripts.forking import fork
    from steersman.transcripts.keys import (
        SessionKey,
        SessionListSubkeysKey,
        SessionStoreEntry,
        SessionStoreListEntry,
        SessionSummaryEntry,
        clean_title,
        is_safe_subpath,
        is_session_id,
        project_key,
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
    from steersman.transcripts.summary import Summary, fold_session_summary
else:
    __getattr__, __dir__ = by_name(
        __name__,
        {
            "blocks": ("Line", "Source", "lines_backward", "lines_forward"),
            "chain": ("lines_source", "messages"),
            "entries": (
                "AgentInfo",
                "SessionInfo",
                "StoredMessage",
                "TranscriptEntry",
                "entry_of",
                "read_entry",
            ),
            "export": ("to_html", "to_json", "to_markdown"),
            "forking": ("fork",),
            "keys": (
                "SessionKey",
                "SessionListSubkeysKey",
                "SessionStoreEntry",
                "SessionStoreListEntry",
                "SessionSummaryEntry",
                "clean_title",
                "is_safe_subpath",
                "is_session_id",
                "project_key",
            ),
            "lookup": (
                "Ending",
                "answer_to",
                "ending_of",
                "failure_of",
                "has_prompt",
                "is_unfinished",
                "was_folded",
            ),
            "summary": ("Summary", "fold_session_summary"),
        },
    )

__all__ = [
    "AgentInfo",
    "Ending",
    "Line",
    "SessionInfo",
    "SessionKey",
    "SessionListSubkeysKey",
    "SessionStoreEntry",
    "SessionStoreListEntry",
    "SessionSummaryEntry",
    "Source",
    "StoredMessage",
    "Summary",
    "TranscriptEntry",
    "answer_to",
    "clean_title",
    "ending_of",
    "entry_of",
    "failure_of",
    "fold_session_summary",
    "fork",
    "has_prompt",
    "is_safe_subpath",
    "is_session_id",
    "is_unfinished",
    "lines_backward",
    "lines_forward",
    "lines_source",
    "messages",
    "project_key",
    "read_entry",
    "to_html",
    "to_json",
    "to_markdown",
    "was_folded",
]
