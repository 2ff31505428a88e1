"""Checkpoints: a place in a conversation that one can come back to, files included."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Checkpoint"]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a conversation stood. A plain value: it can be kept and used by another process."""

    session_id: str
    message_uuid: str
    """The last message of the model's."""
    prompts: int
    """How many prompts this session had sent by then."""
