"""The CLI's own session files, where it keeps them: `<config>/projects/<directory>/<id>.jsonl`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["read_transcript"]


def read_transcript(env: Mapping[str, str], session_id: str) -> list[bytes] | None:
    """The lines of a conversation's file, for a CLI with that environment.

    `None` if there is none, or it cannot be read: it may be on another machine.
    """
    config = env.get("CLAUDE_CONFIG_DIR")
    if not config and not env.get("HOME"):
        return None
    home = Path(config) if config else Path(env["HOME"], ".claude")
    # The directory's name is made of the one that the CLI runs in; ids are unique without it.
    try:
        found = list(home.glob(f"projects/*/{session_id}.jsonl"))
        return list(filter(None, found[0].read_bytes().split(b"\n"))) if found else None
    except OSError:
        return None
