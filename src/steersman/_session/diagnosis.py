"""Why a CLI did not start, read off what it said."""

from __future__ import annotations

import re

from steersman.errors import (
    Evidence,
    NotLoggedIn,
    OptionRefused,
    ProtocolViolation,
    ResumeNotFound,
    SessionInUse,
    StartupExited,
    SteersmanError,
)

__all__ = ["startup_error"]

_CAUSES: tuple[tuple[str, type[SteersmanError], str], ...] = (
    (
        r"no conversation found|no message found|not a valid uuid|--resume",
        ResumeNotFound,
        "check the session id and the cwd: conversations are kept per directory",
    ),
    (
        r"already in use",
        SessionInUse,
        "leave session_id out, or go on with that conversation by resume=",
    ),
    (
        r"not logged in|invalid api key|/login",
        NotLoggedIn,
        "log in with `claude`, or set ANTHROPIC_API_KEY",
    ),
    (
        r"option|argument|settings|mcp config|permission-mode|sandbox|used with root|invalid",
        OptionRefused,
        "correct the option that it names; if the CLI is old, update it",
    ),
)


def startup_error(said: str, evidence: Evidence, noise: str = "") -> SteersmanError:
    """The error for a CLI that ended before it was ready; `said` is its own explanation."""
    first = next((line for line in said.splitlines() if line.strip()), "").strip()
    for pattern, error, hint in _CAUSES:
        if re.search(pattern, said, re.IGNORECASE):
            return error(f"the CLI refused to start: {said.strip()}", hint=hint, evidence=evidence)
    if evidence.status is not None and evidence.status < 0:
        what = f"the CLI was killed by signal {-evidence.status} before it was ready"
        return StartupExited(what, hint="was it out of memory?", evidence=evidence)
    if noise and not first:
        return ProtocolViolation(
            f"what runs there does not speak the protocol: on stdout it wrote {noise!r}, and ended",
            hint="check that cli_path, or STEERSMAN_CLI, names the Claude Code CLI",
            evidence=evidence,
        )
    what = f"the CLI ended before it was ready{': ' + first if first else ', without a word'}"
    return StartupExited(what, hint="run the command by hand to see more", evidence=evidence)
