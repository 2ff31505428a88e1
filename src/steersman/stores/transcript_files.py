"""Reads the CLI's own session files: `<config>/projects/<directory>/<id>.jsonl`.

While a CLI runs, `<config>/sessions/<pid>.json` has the id of its conversation.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct, field

from steersman import _json
from steersman._process import start_time
from steersman._struct import DECODE_ERRORS

QUEUED = b'{"type":"queue-operation",'
"""Begins a line about the CLI's own queue of prompts, which is no part of the conversation."""

HEAD = 1024 * 1024
"""Bytes at the beginning of a file in which the id of its conversation must be."""


class _Named(Struct, frozen=True):
    session_id: str = field(default="", name="sessionId")


_read_id = msgspec.json.Decoder(_Named).decode


def has_transcript(env: Mapping[str, str], session_id: str) -> bool | None:
    """Whether a CLI with the environment `env` has saved this conversation; None if not known."""
    config = config_of(env)
    try:
        found = transcripts_of(env, session_id)
        return None if config is None else not all(map(_is_unwritten, found))
    except OSError:
        return None


def remove_unwritten(env: Mapping[str, str], session_id: str) -> bool:
    """Remove the file of a conversation of which the CLI has written nothing but its queue.

    A CLI that was lost early leaves one. The next one neither resumes such a conversation, nor
    begins one whose file is there. Returns whether there was such a file. Raises `OSError`.
    """
    found = [path for path in transcripts_of(env, session_id) if _is_unwritten(path)]
    for path in found:
        path.unlink(missing_ok=True)
    return bool(found)


def _is_unwritten(path: Path) -> bool:
    """Whether a file has no line, or only lines about the queue; the last one may be cut off."""
    with path.open("rb") as file:
        return all(QUEUED.startswith(line[: len(QUEUED)]) for line in file)


def read_transcript(env: Mapping[str, str], session_id: str) -> list[bytes] | None:
    """Return the lines of a session's file, for a CLI with the environment `env`.

    `session_id` may also be the path of the file. Returns `None` if there is no such file or it
    cannot be read, as when the CLI runs on another machine.
    """
    try:
        found = transcripts_of(env, session_id)
        return list(filter(None, found[0].read_bytes().split(b"\n"))) if found else None
    except OSError:
        return None


def running_session(env: Mapping[str, str], pid: int) -> str | None:
    """Return the id of the saved conversation that the CLI with this pid has open.

    Returns `None` if the CLI has not written it down, as older ones do not.
    """
    config = config_of(env)
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
        is_saved = isinstance(found, str) and bool(transcripts_of(env, found))
    except (OSError, ValueError):
        return None
    return found if is_saved else None


def conversation_in(path: str) -> str | None:
    """Return the id of the conversation that a session file holds; None if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            for line in file.readlines(HEAD):
                about = _read_id(line).session_id
                if about:
                    return about
    except (OSError, *DECODE_ERRORS):
        return None
    return None


def transcripts_of(env: Mapping[str, str], session_id: str) -> list[Path]:
    """Return the session files of a conversation, which may also be given by its path."""
    if session_id.startswith("/"):
        path = Path(session_id)
        return [path] if path.is_file() else []
    # The directory is named after the working directory; session ids are unique without it.
    config = config_of(env)
    return [] if config is None else list(config.glob(f"projects/*/{session_id}.jsonl"))


def config_of(env: Mapping[str, str]) -> Path | None:
    """Return the configuration directory of a CLI with the environment `env`, if it is known."""
    config = env.get("CLAUDE_CONFIG_DIR")
    if not config and not env.get("HOME"):
        return None
    return Path(config) if config else Path(env["HOME"], ".claude")
