"""Which conversation, and what is kept of it."""

from __future__ import annotations

from collections.abc import Mapping

from steersman._wire.draft import Row, greeting, ours, switch, value, variable

__all__ = ["CONVERSATION"]


def _when_on(is_on: bool) -> str | None:  # noqa: FBT001 - the option's value
    return "true" if is_on else None


CONVERSATION: Mapping[str, Row] = {
    # Beside the table: a new conversation is always named by us.
    "session_id": ours("`--session-id`"),
    "resume": value("--resume"),
    "continue_conversation": switch("--continue"),
    "fork_session": switch("--fork-session"),
    "resume_session_at": value("--resume-session-at"),
    "resume_drops_turn": value("--resume-drops-turn"),
    "persist_session": switch("--no-session-persistence", when=False),
    "title": greeting("title"),
    "enable_file_checkpointing": variable("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", _when_on),
}
