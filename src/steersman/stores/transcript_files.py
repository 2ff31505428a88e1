"""Reads the CLI's own session files: `<config>/projects/<directory>/<id>.jsonl`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["read_transcript"]


def read_transcript(env: Mapping[str, str], session_id: str) -> list[bytes] | None:
    """Return the lines of a session's file, for a CLI with the environment `env`.

    Returns `None` if there is no such file or it cannot be read, as when the CLI runs on another
    machine.
    """
    config = env.get("CLAUDE_CONFIG_DIR")
    if not config and not env.get("HOME"):
        return None
    home = Path(config) if config else Path(env["HOME"], ".claude")
    # The directory is named after the working directory; session ids are unique without it.
    try:
        found = list(home.glob(f"projects/*/{session_id}.jsonl"))
        return list(filter(None, found[0].read_bytes().split(b"\n"))) if found else None
    except OSError:
        return None
