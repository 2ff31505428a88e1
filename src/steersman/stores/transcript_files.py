"""Reads the CLI's own session files: `<config>/projects/<directory>/<id>.jsonl`.

While a CLI runs, `<config>/sessions/<pid>.json` has the id of its conversation.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from steersman import _json
from steersman._process import start_time

__all__ = ["has_transcript", "read_transcript", "running_session"]


def has_transcript(env: Mapping[str, str], session_id: str) -> bool | None:
    """Whether a CLI with the environment `env` has saved this conversation; None if not known."""
    config = _config(env)
    try:
        return None if config is None else bool(_transcripts(env, session_id))
    except OSError:
        return None


def read_transcript(env: Mapping[str, str], session_id: str) -> list[bytes] | None:
    """Return the lines of a session's file, for a CLI with the environment `env`.

    Returns `None` if there is no such file or it cannot be read, as when the CLI runs on another
    machine.
    """
    try:
        found = _transcripts(env, session_id)
        return list(filter(None, found[0].read_bytes().split(b"\n"))) if found else None
    except OSError:
        return None


def running_session(env: Mapping[str, str], pid: int) -> str | None:
    """Return the id of the saved conversation that the CLI with this pid has open.

    Returns `None` if the CLI has not written it down, as older ones do not.
    """
    config = _config(env)
    if config is None:
        return None
    try:
        about = _json.loads((config / "sessions" / f"{pid}.json").read_bytes())
        # A CLI that was killed leaves its file, and another process may get its pid.
        started = start_time(pid)
        is_its_own = _json.is_object(about) and (
            started is None or about.get("procStart") in (None, started)
        )
        found = about.get("sessionId") if is_its_own else None
        # A CLI that has not found its conversation yet may have written down another id.
        is_saved = isinstance(found, str) and bool(_transcripts(env, found))
    except (OSError, ValueError):
        return None
    return found if is_saved else None


def _transcripts(env: Mapping[str, str], session_id: str) -> list[Path]:
    # The directory is named after the working directory; session ids are unique without it.
    config = _config(env)
    return [] if config is None else list(config.glob(f"projects/*/{session_id}.jsonl"))


def _config(env: Mapping[str, str]) -> Path | None:
    config = env.get("CLAUDE_CONFIG_DIR")
    if not config and not env.get("HOME"):
        return None
    return Path(config) if config else Path(env["HOME"], ".claude")
