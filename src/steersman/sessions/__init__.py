"""Stored conversations: list, read, search, rename, fork, move. Async: `steersman.sessions.aio`."""

from steersman.sessions.front import Sessions
from steersman.sessions.words import Hit
from steersman.transcripts.entries import AgentInfo, SessionInfo, StoredMessage, TranscriptEntry

__all__ = ["AgentInfo", "Hit", "SessionInfo", "Sessions", "StoredMessage", "TranscriptEntry"]
