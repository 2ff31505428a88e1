"""Every exception steersman raises.

SteersmanError
├── UsageError                 the caller asked for something that cannot be
├── LaunchError                the CLI could not be run at all
│   ├── CliNotFound
│   ├── CliNotExecutable
│   └── WorkingDirectoryMissing
├── StartupError               it ran, but never became ready
│   ├── CliTooOld
│   ├── McpNotReady
│   ├── OptionRefused
│   ├── ResumeNotFound
│   ├── SessionInUse
│   ├── StartupExited
│   └── StartupTimeout
├── NotLoggedIn                the CLI has no credential, or a wrong one
├── ChannelError               the pipe to a running CLI failed
│   ├── ChannelClosed
│   ├── CliExited
│   └── Stalled
├── ProtocolViolation          the CLI broke the rules of the wire
├── RequestError               a control request came back unhappy
│   ├── RequestRefused
│   ├── RequestTimeout
│   └── RequestLost
├── TurnError                  a turn did not give what was asked of it
│   ├── TurnFailed
│   ├── LimitReached
│   ├── NoOutput
│   └── BadOutput
├── ToolExecutionError         a Python tool failed
├── ForbiddenTool              the CLI offers what the policy forbids
├── AskError                   an ask cannot be answered
│   ├── AlreadyAnswered
│   ├── AskGone
│   └── AskNotFound
└── ReaderLagged               a slow reader needed entries that are gone

Each class has a stable `code`; where a process was involved, `evidence` says in which
phase, how it ended, what it wrote on stderr and how it was called (redacted).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

__all__ = [
    "AlreadyAnswered",
    "AskError",
    "AskGone",
    "AskNotFound",
    "BadOutput",
    "ChannelClosed",
    "ChannelError",
    "CliExited",
    "CliNotExecutable",
    "CliNotFound",
    "CliTooOld",
    "Evidence",
    "ForbiddenTool",
    "LaunchError",
    "LimitReached",
    "McpNotReady",
    "NoOutput",
    "NotLoggedIn",
    "OptionRefused",
    "ProtocolViolation",
    "ReaderLagged",
    "RequestError",
    "RequestLost",
    "RequestRefused",
    "RequestTimeout",
    "ResumeNotFound",
    "SessionInUse",
    "Stalled",
    "StartupError",
    "StartupExited",
    "StartupTimeout",
    "SteersmanError",
    "ToolExecutionError",
    "TurnError",
    "TurnFailed",
    "UsageError",
    "WorkingDirectoryMissing",
]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about a CLI process when something went wrong with it."""

    phase: str
    status: int | None = None
    """Exit status; negative is the number of the signal that ended it."""
    stderr_tail: str = ""
    argv: tuple[str, ...] = ()
    """The command line, with values that may be private left out."""

    def __str__(self) -> str:
        parts = [f"phase: {self.phase}"]
        if self.status is not None:
            parts.append(_describe_status(self.status))
        if self.argv:
            parts.append("command: " + " ".join(self.argv))
        if self.stderr_tail:
            parts.append("stderr: " + self.stderr_tail.strip())
        return "; ".join(parts)


NO_EVIDENCE = Evidence("unknown")


class SteersmanError(Exception):
    """Root of the tree; catch it to catch us and nobody else."""

    code: ClassVar[str] = "steersman"

    def __init__(self, what: str, *, hint: str = "", evidence: Evidence | None = None) -> None:
        lines = [what]
        if hint:
            lines.append(f"What to do: {hint}")
        if evidence is not None:
            lines.append(f"[{evidence}]")
        super().__init__("\n".join(lines))
        self.what = what
        self.hint = hint
        self.evidence = evidence or NO_EVIDENCE

    def __reduce__(self) -> tuple[object, ...]:
        # Subclasses take other arguments than `args` says; process pools must still pickle them.
        return _revive, (type(self), self.args, self.__dict__)


class UsageError(SteersmanError, ValueError):
    """The caller gave a value, or an order, that is not allowed here."""

    code = "usage"

    def __init__(self, argument: str, given: object, allowed: str, *, hint: str = "") -> None:
        super().__init__(f"{argument}: got {_shorten(given)}, allowed: {allowed}", hint=hint)
        self.argument = argument
        self.given = given
        self.allowed = allowed


class LaunchError(SteersmanError):
    """The CLI could not be run at all."""

    code = "launch"

    def __init__(self, what: str, *, hint: str = "", evidence: Evidence | None = None) -> None:
        super().__init__(what, hint=hint, evidence=evidence or Evidence("launch"))


class CliNotFound(LaunchError):
    """There is no CLI where we looked."""

    code = "cli_not_found"

    def __init__(self, looked_in: Sequence[str]) -> None:
        places = "".join(f"\n  - {place}" for place in looked_in)
        super().__init__(
            f"no Claude Code CLI found; looked in:{places}",
            hint="install the CLI, or `pip install steersman[cli]`, or pass cli_path=...,"
            " or set STEERSMAN_CLI",
        )
        self.looked_in = tuple(looked_in)


class CliNotExecutable(LaunchError):
    """The file is there, but the system will not run it."""

    code = "cli_not_executable"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path} cannot be executed: {reason}",
            hint="check its mode (chmod +x), its format and its interpreter line",
        )
        self.path = path


class WorkingDirectoryMissing(LaunchError):
    """The CLI was to run in a directory that is not there."""

    code = "cwd_missing"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"cwd: {path} cannot be entered: {reason}",
            hint="create the directory, or pass another cwd=",
        )
        self.path = path


class StartupError(SteersmanError):
    """The CLI ran, but never became ready."""

    code = "startup"


class CliTooOld(StartupError):
    """The CLI is older than the oldest one we can drive."""

    code = "cli_too_old"

    def __init__(self, found: str, required: str, *, evidence: Evidence | None = None) -> None:
        super().__init__(
            f"this Claude Code CLI is version {found}; {required} or newer is needed",
            hint="update it with `claude update`, or `pip install -U steersman[cli]`",
            evidence=evidence,
        )
        self.found = found
        self.required = required


class McpNotReady(StartupError):
    """A tool server that the session needs is not connected."""

    code = "mcp_not_ready"

    def __init__(
        self, name: str, status: str, error: str = "", *, evidence: Evidence | None = None
    ) -> None:
        super().__init__(
            f"the tool server {name!r} is not ready: {status}" + (f": {error}" if error else ""),
            hint="start it by hand to see what is wrong with it, or leave it out of require=",
            evidence=evidence,
        )
        self.name = name
        self.status = status
        """`failed`, `pending`, `needs-auth` or `disabled`, in the CLI's words."""
        self.error = error


class OptionRefused(StartupError):
    """The CLI refused an option that we passed on."""

    code = "option_refused"


class ResumeNotFound(StartupError):
    """There is no conversation with that id to go on with."""

    code = "resume_not_found"


class SessionInUse(StartupError):
    """The chosen session id belongs to an existing conversation."""

    code = "session_in_use"


class StartupExited(StartupError):
    """The CLI ended before it was ready."""

    code = "startup_exited"


class StartupTimeout(StartupError, TimeoutError):
    """The CLI was not ready in time; `evidence.phase` says what we waited for."""

    code = "startup_timeout"


class NotLoggedIn(SteersmanError):
    """The CLI has no credential that the API accepts."""

    code = "not_logged_in"


class ChannelError(SteersmanError):
    """The channel to a running CLI failed."""

    code = "channel"


class ChannelClosed(ChannelError):
    """Nothing more can be sent: this session is closed, or its CLI is gone."""

    code = "channel_closed"


class CliExited(ChannelError):
    """The CLI ended while we still needed it."""

    code = "cli_exited"


class Stalled(ChannelError):
    """The CLI said nothing for too long, and did not obey an interrupt in time either."""

    code = "stalled"

    def __init__(
        self, phase: str, since: float, last_event: str, *, evidence: Evidence | None = None
    ) -> None:
        super().__init__(
            f"the CLI was silent for {since:.1f} s in the phase {phase!r}, after {last_event!r}",
            hint=f"if it is only slow, raise watchdog=Watchdog({phase}=...)",
            evidence=evidence,
        )
        self.phase = phase
        self.since = since
        """Seconds of silence."""
        self.last_event = last_event

    @property
    def stderr_tail(self) -> str:
        """What the CLI last wrote on stderr."""
        return self.evidence.stderr_tail


class ProtocolViolation(SteersmanError):
    """The CLI sent something that the protocol does not allow."""

    code = "protocol_violation"


class RequestError(SteersmanError):
    """A control request did not succeed."""

    code = "request"

    def __init__(self, operation: str, reason: str, *, hint: str = "") -> None:
        super().__init__(f"{operation}: {reason}", hint=hint)
        self.operation = operation
        self.reason = reason


class RequestRefused(RequestError):
    """The CLI answered with an error."""

    code = "request_refused"

    def __init__(self, operation: str, reason: str, error_code: str | None = None) -> None:
        super().__init__(operation, reason)
        self.error_code = error_code


class RequestTimeout(RequestError, TimeoutError):
    """The CLI did not answer in time; the request was taken back."""

    code = "request_timeout"


class RequestLost(RequestError):
    """The CLI went away with our request unanswered."""

    code = "request_lost"


class TurnError(SteersmanError):
    """A turn did not give what was asked of it; `text` is what it said."""

    code = "turn"

    def __init__(self, what: str, *, text: str = "", hint: str = "") -> None:
        super().__init__(what, hint=hint)
        self.text = text


class TurnFailed(TurnError):
    """The turn ended in another way than completed; `__cause__` says why, where we know."""

    code = "turn_failed"

    def __init__(self, outcome: str, reason: str, *, text: str = "") -> None:
        super().__init__(f"the turn {outcome}: {reason}", text=text)
        self.outcome = outcome
        self.reason = reason


class LimitReached(TurnError):
    """A limit of ours is used up."""

    code = "limit_reached"

    def __init__(self, scope: str, name: str, used: float, limit: float) -> None:
        super().__init__(
            f"the {scope}'s limit of {limit:g} {name} is reached: {used:g}",
            hint=f"raise limits=Limits({scope}=Caps({name}=...))",
        )
        self.scope = scope
        self.name = name
        self.used = used
        self.limit = limit


class NoOutput(TurnError):
    """The turn completed, but without the structured output that was asked for."""

    code = "no_output"


class BadOutput(TurnError):
    """The structured output does not fit the type that was asked for."""

    code = "bad_output"

    def __init__(self, what: str, *, output: object, text: str = "") -> None:
        super().__init__(what, text=text)
        self.output = output


class ToolExecutionError(SteersmanError):
    """A Python tool raised; `__cause__` is what it raised."""

    code = "tool_execution"

    def __init__(self, tool_name: str, reason: str) -> None:
        super().__init__(f"tool {tool_name!r} failed: {reason}")
        self.tool_name = tool_name


class ForbiddenTool(SteersmanError):
    """The CLI offers tools to the model that the options forbid; the session was ended."""

    code = "forbidden_tool"

    def __init__(self, tools: Sequence[str]) -> None:
        super().__init__(
            f"the CLI offers tools that are forbidden: {', '.join(tools)}",
            hint="it may be an old CLI, or a settings file may bring them back",
        )
        self.tools = tuple(tools)


class AskError(SteersmanError):
    """An ask cannot be answered."""

    code = "ask"

    def __init__(self, ask_id: str, reason: str, *, hint: str = "") -> None:
        super().__init__(f"ask {ask_id}: {reason}", hint=hint)
        self.ask_id = ask_id
        self.reason = reason


class AlreadyAnswered(AskError):
    """Somebody else was first; `by` says who, `answer` what."""

    code = "already_answered"

    def __init__(self, ask_id: str, by: str, answer: object) -> None:
        super().__init__(ask_id, f"{by} has answered it already")
        self.by = by
        self.answer = answer


class AskGone(AskError):
    """Nobody waits for the answer any more: it expired, was taken back, or its session ended."""

    code = "ask_gone"


class AskNotFound(AskError):
    """There is no such ask here."""

    code = "ask_not_found"

    def __init__(self, ask_id: str) -> None:
        super().__init__(ask_id, "unknown here", hint="inbox.list() has those that are open")


class ReaderLagged(SteersmanError):
    """A reader was slower than the journal's memory; `lost` entries are gone."""

    code = "reader_lagged"

    def __init__(self, lost: int) -> None:
        super().__init__(
            f"this reader fell {lost} entries behind what the journal keeps in memory",
            hint="read faster, or raise journal_memory= (bytes)",
        )
        self.lost = lost


def _revive(
    cls: type[SteersmanError], args: tuple[object, ...], fields: dict[str, object]
) -> SteersmanError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(fields)
    return error


def _describe_status(status: int) -> str:
    return f"ended by signal {-status}" if status < 0 else f"exit status {status}"


def _shorten(given: object, limit: int = 120) -> str:
    shown = repr(given)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"
