"""Every exception steersman raises.

SteersmanError
├── UsageError                 an argument or a call is not allowed
│   └── KeyTaken
├── LaunchError                the CLI could not be started
│   ├── CliNotFound
│   ├── CliNotExecutable
│   └── WorkingDirectoryMissing
├── StartupError               the CLI started, but did not become ready
│   ├── CliTooOld
│   ├── McpNotReady
│   ├── OptionRefused
│   ├── ResumeNotFound
│   ├── SessionInUse
│   ├── StartupExited
│   ├── StartupTimeout
│   └── UnsafeCli
├── NotLoggedIn                the CLI has no credential that the API accepts
├── ChannelError               the connection to a running CLI failed
│   ├── ChannelClosed
│   ├── CliExited
│   └── Stalled
├── ProtocolViolation          the CLI sent what the protocol does not allow
├── RequestError               a control request did not succeed
│   ├── RequestRefused
│   ├── RequestTimeout
│   └── RequestLost
├── TurnError                  a turn did not produce what was asked for
│   ├── TurnFailed
│   ├── TurnStopped
│   ├── ApiFailed
│   ├── LimitReached
│   ├── PoisonedJob
│   ├── NoOutput
│   └── BadOutput
├── ToolExecutionError         a Python tool failed
├── CliMisbehaves              the CLI reports another setting than it was given
├── ForbiddenTool              the CLI offers tools that are forbidden
├── LeaseLost                  another process may have the conversation now
├── SessionNotFound            no stored session has that id
├── AskError                   an ask cannot be answered
│   ├── AlreadyAnswered
│   ├── AskChanged
│   ├── AskGone
│   └── AskNotFound
├── StoreError                 a store of sessions cannot be read or written
│   └── StoreTooNew
├── ReaderLagged               a slow reader needs entries that were dropped
└── WebError                   a bridge of `steersman.web` refuses a request

Each class has a stable `code`. Where a process was involved, `evidence` has the phase, the exit
status, the end of stderr and the redacted command line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import ClassVar, Protocol

__all__ = [
    "AlreadyAnswered",
    "ApiFailed",
    "AskChanged",
    "AskError",
    "AskGone",
    "AskNotFound",
    "BadOutput",
    "ChannelClosed",
    "ChannelError",
    "CliExited",
    "CliMisbehaves",
    "CliNotExecutable",
    "CliNotFound",
    "CliTooOld",
    "Described",
    "Evidence",
    "ForbiddenTool",
    "KeyTaken",
    "LaunchError",
    "LeaseLost",
    "LimitReached",
    "McpNotReady",
    "NoOutput",
    "NotLoggedIn",
    "OptionRefused",
    "PoisonedJob",
    "ProtocolViolation",
    "ReaderLagged",
    "RequestError",
    "RequestLost",
    "RequestRefused",
    "RequestTimeout",
    "ResumeNotFound",
    "SessionInUse",
    "SessionNotFound",
    "Stalled",
    "StartupError",
    "StartupExited",
    "StartupTimeout",
    "SteersmanError",
    "StoreError",
    "StoreTooNew",
    "ToolExecutionError",
    "TurnError",
    "TurnFailed",
    "TurnStopped",
    "UnsafeCli",
    "UsageError",
    "WebError",
    "WorkingDirectoryMissing",
]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about a CLI process that an error is about."""

    phase: str
    status: int | None = None
    """The exit status. A negative one is the number of the signal that ended the process."""
    stderr_tail: str = ""
    argv: tuple[str, ...] = ()
    """The command line, without values that may be private."""

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
    """The root of the tree: catches every error of steersman, and no other."""

    code: ClassVar[str] = "steersman"
    advice: ClassVar[str] = "look at the log of `steersman` for what came before"
    """The `hint` of an error that is raised without one; not part of the text."""

    def __init__(self, what: str, *, hint: str = "", evidence: Evidence | None = None) -> None:
        lines = [what]
        if hint and hint not in what:
            lines.append(f"What to do: {hint}")
        if evidence is not None:
            lines.append(f"[{evidence}]")
        super().__init__("\n".join(lines))
        self.what = what
        self.hint = hint or self.advice
        self.evidence = evidence or NO_EVIDENCE

    def __reduce__(self) -> tuple[object, ...]:
        # Subclasses have other parameters than `args`, and process pools must still pickle them.
        return _unpickled, (type(self), self.args, self.__dict__)


class Described(str):
    """Words that `UsageError` shows in place of the value, which may be private or unclear."""

    __slots__ = ()

    @classmethod
    def kind_of(cls, given: object) -> Described:
        """Return the type of `given` with its article, such as `a list`; `None` is `None`."""
        name = type(given).__name__
        if given is None:
            return cls("None")
        return cls(f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}")

    def __repr__(self) -> str:
        return str(self)


class UsageError(SteersmanError, ValueError):
    """An argument has a value that is not allowed, or a call is not allowed at this point."""

    code = "usage"

    def __init__(
        self, argument: str, given: object, allowed: str, *, hint: str = "", what: str = ""
    ) -> None:
        """State what was given and what is allowed, or `what` if that does not fit the mistake."""
        what = what or f"got {_shorten(given)}, allowed: {allowed}"
        usual = f"pass {allowed}"
        super().__init__(f"{argument}: {what}", hint="" if hint == usual else hint)
        self.hint = hint or usual
        self.argument = argument
        self.given = given
        self.allowed = allowed


class KeyTaken(UsageError):
    """Another prompt of this session was sent with the same `key`."""

    code = "key_taken"

    def __init__(self, key: str) -> None:
        super().__init__(
            "key",
            key,
            "a key for each prompt: another prompt of this session has this one",
            hint="pass another key, or send the same prompt in the same way",
        )


class LaunchError(SteersmanError):
    """The CLI could not be started."""

    code = "launch"
    advice = "run the command by hand to see more"

    def __init__(self, what: str, *, hint: str = "", evidence: Evidence | None = None) -> None:
        super().__init__(what, hint=hint, evidence=evidence or Evidence("launch"))


class CliNotFound(LaunchError):
    """No Claude Code CLI was found in any of the places in `looked_in`."""

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
    """The file exists, but the operating system refuses to run it."""

    code = "cli_not_executable"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path} cannot be executed: {reason}",
            hint="check the mode of the file (chmod +x), its format and its interpreter line",
        )
        self.path = path


class WorkingDirectoryMissing(LaunchError):
    """The working directory of the CLI does not exist or cannot be entered."""

    code = "cwd_missing"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"cwd: {path} cannot be entered: {reason}",
            hint="create the directory, or pass another cwd=",
        )
        self.path = path


class StartupError(SteersmanError):
    """The CLI started, but did not become ready."""

    code = "startup"
    advice = "run `steersman doctor`, which starts the CLI step by step"


class CliTooOld(StartupError):
    """The CLI is older than the oldest supported version."""

    code = "cli_too_old"

    def __init__(self, found: str, required: str, *, evidence: Evidence | None = None) -> None:
        super().__init__(
            f"this Claude Code CLI is version {found}; {required} or newer is needed",
            hint="update the CLI with `claude update` or `pip install -U steersman[cli]`; to try"
            " this one, pass allow_old_cli=True: what does not hold is logged",
            evidence=evidence,
        )
        self.found = found
        self.required = required


class McpNotReady(StartupError):
    """An MCP server that the session requires is not connected."""

    code = "mcp_not_ready"

    def __init__(
        self, name: str, status: str, error: str = "", *, evidence: Evidence | None = None
    ) -> None:
        super().__init__(
            f"the MCP server {name!r} is not ready: {status}" + (f": {error}" if error else ""),
            hint="start the server by hand to see why, or remove it from require=",
            evidence=evidence,
        )
        self.name = name
        self.status = status
        """The status that the CLI reports: `failed`, `pending`, `needs-auth` or `disabled`."""
        self.error = error


class OptionRefused(StartupError):
    """The CLI refused an option: a flag, a settings file or a permission mode."""

    code = "option_refused"
    advice = "correct or leave out the option that the text names, or update the CLI"


class ResumeNotFound(StartupError):
    """There is no conversation with that id to resume."""

    code = "resume_not_found"
    advice = "check the id and cwd=: the CLI keeps conversations per directory"


class SessionInUse(StartupError):
    """Another session has the conversation open, or `session_id=` names an existing one."""

    code = "session_in_use"
    advice = "close the other session, or pass wait="

    def __init__(  # noqa: PLR0913 - each is a field of its own
        self,
        what: str,
        *,
        hint: str = "",
        evidence: Evidence | None = None,
        pid: int | None = None,
        since: float | None = None,
        is_ending: bool = False,
        owner: str = "",
        until: float | None = None,
    ) -> None:
        super().__init__(what, hint=hint, evidence=evidence)
        self.owner = owner
        """Who has the conversation in a store: what that session gave as its name."""
        self.until = until
        """When the lease of that session ends unless renewed, in seconds since the epoch."""
        self.pid = pid
        """The process that has the conversation open, if that is known."""
        self.since = since
        """When that process opened it, in seconds since the epoch, if that is known."""
        self.is_ending = is_ending
        """Whether the owner is closing, or has been killed, and its CLI has not exited yet."""


class StartupExited(StartupError):
    """The CLI exited before it was ready."""

    code = "startup_exited"
    advice = "run the command by hand to see more, or `steersman doctor`"


class StartupTimeout(StartupError, TimeoutError):
    """The CLI was not ready in time; `evidence.phase` names the step that took too long."""

    code = "startup_timeout"
    advice = "raise startup=StartupLimits(...) if the machine is slow"


class UnsafeCli(StartupError):
    """Guards do not hold on this release of the CLI, so no session starts with it."""

    code = "unsafe_cli"

    def __init__(
        self, found: str, broken: str, good: str, *, evidence: Evidence | None = None
    ) -> None:
        super().__init__(
            f"guards do not hold on this Claude Code CLI, version {found}: {broken}",
            hint=f"use version {good}; to run this one all the same, pass allow_unsafe_cli=True",
            evidence=evidence,
        )
        self.found = found
        self.broken = broken
        self.good = good
        """A release on which they hold."""


class NotLoggedIn(SteersmanError):
    """The CLI has no credential that the API accepts."""

    code = "not_logged_in"
    advice = "log in with `claude`, or set ANTHROPIC_API_KEY"


class ChannelError(SteersmanError):
    """The connection to a running CLI failed."""

    code = "channel"
    advice = "open the conversation again with resume=session.id"


class ChannelClosed(ChannelError):
    """Nothing can be sent: the session has not started or is closed, or its CLI has exited."""

    code = "channel_closed"
    advice = "open another session"


class CliExited(ChannelError):
    """The CLI exited while the session still needed it."""

    code = "cli_exited"


class Stalled(ChannelError):
    """The CLI sent nothing for longer than `watchdog=` allows."""

    code = "stalled"

    def __init__(
        self, phase: str, since: float, last_event: str, *, evidence: Evidence | None = None
    ) -> None:
        super().__init__(
            f"the CLI sent nothing for {since:.1f} s in the phase {phase!r}, after {last_event!r}",
            hint=f"if the CLI is only slow, raise watchdog=Watchdog({phase}=...)",
            evidence=evidence,
        )
        self.phase = phase
        self.since = since
        """Seconds since the CLI last sent something."""
        self.last_event = last_event

    @property
    def stderr_tail(self) -> str:
        """The end of what the CLI wrote to stderr."""
        return self.evidence.stderr_tail


class ProtocolViolation(SteersmanError):
    """The CLI sent something that the protocol does not allow."""

    code = "protocol_violation"
    advice = "check which program cli_path= or STEERSMAN_CLI names"


class RequestError(SteersmanError):
    """A control request did not succeed."""

    code = "request"
    advice = "call it again"

    def __init__(self, operation: str, reason: str, *, hint: str = "") -> None:
        super().__init__(f"{operation}: {reason}", hint=hint)
        self.operation = operation
        self.reason = reason


class RequestRefused(RequestError):
    """The CLI answered with an error."""

    code = "request_refused"
    advice = "change the request as the CLI's reason says; the session goes on"

    def __init__(
        self, operation: str, reason: str, error_code: str | None = None, *, hint: str = ""
    ) -> None:
        if error_code == "unsupported_request":
            hint = hint or "update the CLI: this one does not know the request"
        super().__init__(operation, reason, hint=hint or self.advice)
        self.error_code = error_code


class RequestTimeout(RequestError, TimeoutError):
    """What was asked for did not happen in time; a request to the CLI was cancelled."""

    code = "request_timeout"
    advice = "call it again; if the CLI is only slow, raise request_timeout="

    def __init__(self, operation: str, reason: str, timeout: float, *, hint: str = "") -> None:
        super().__init__(operation, f"{reason} within {timeout:g} s", hint=hint or self.advice)
        self.timeout = timeout
        """The seconds that it had."""


class RequestLost(RequestError):
    """The CLI exited before it answered the request."""

    code = "request_lost"
    advice = "call it again when the session has another CLI; with revive=False, open it again"


class TurnError(SteersmanError):
    """A turn did not produce what was asked for; `text` is the text that it did produce."""

    code = "turn"
    advice = "send the prompt again"

    def __init__(self, what: str, *, text: str = "", hint: str = "") -> None:
        super().__init__(what, hint=hint)
        self.text = text


class TokenCounts(Protocol):
    """The tokens of a turn: a `steersman.messages.usage.Usage`."""

    @property
    def input_tokens(self) -> int:
        """Tokens that the model read, without those from the cache."""
        ...

    @property
    def output_tokens(self) -> int:
        """Tokens that the model wrote."""
        ...


class TurnFailed(TurnError):
    """The turn did not complete; `__cause__` is the error that is its `TurnResult.cause`."""

    code = "turn_failed"

    def __init__(
        self,
        outcome: str,
        reason: str,
        *,
        text: str = "",
        hint: str = "",
        cost_usd: float = 0.0,
        usage: TokenCounts | None = None,
    ) -> None:
        super().__init__(f"the turn {outcome}: {reason}", text=text, hint=hint)
        self.outcome = outcome
        self.reason = reason
        self.cost_usd = cost_usd
        """What the turn cost, although it did not complete."""
        self.usage = usage


class TurnStopped(TurnError):
    """The turn was ended before the model had finished; `why` is the reason, as one word.

    `interrupted` and `cancelled` are outcomes. The others are the CLI's own words, such as
    `max_turns`, `budget_exhausted` and `hook_stopped`.
    """

    code = "turn_stopped"
    advice = "look at `why`, and send the prompt again if it should go on"

    def __init__(self, why: str, what: str, *, hint: str = "") -> None:
        super().__init__(what, hint=hint)
        self.why = why


class ApiFailed(TurnError):
    """The API did not answer the model request, after the CLI's own retries.

    `status` is the HTTP status, or `None` if there was no HTTP response.
    """

    code = "api_failed"
    advice = "for 429 and 529 try later; for 400 look at the prompt and the model"

    def __init__(self, what: str, *, status: int | None = None) -> None:
        super().__init__(what)
        self.status = status


class LimitReached(TurnError):
    """A limit of `limits=` is used up."""

    code = "limit_reached"

    def __init__(self, scope: str, name: str, used: float, limit: float, *, hint: str = "") -> None:
        usual = f"raise limits=Limits({scope}=Caps({name}=...))"
        super().__init__(
            f"the {scope} has reached its limit of {limit:g} {name}: {used:g}",
            hint=hint or (f"raise Budget({name}=...)" if scope == "budget" else usual),
        )
        self.scope = scope
        self.name = name
        self.used = used
        self.limit = limit


class PoisonedJob(TurnError):
    """A job of a fleet has ended its worker several times, and is not tried again."""

    code = "poisoned_job"

    def __init__(self, key: str, attempts: int) -> None:
        super().__init__(
            f"the job {_shorten(key)} was running when its worker ended, {attempts} times",
            hint="look at the log of the workers; send the prompt again with another key",
        )
        self.key = key
        self.attempts = attempts


class NoOutput(TurnError):
    """The turn completed without the structured output that was asked for."""

    code = "no_output"
    advice = "ask for the output explicitly in the prompt"


class BadOutput(TurnError):
    """The structured output does not fit the type that was asked for."""

    code = "bad_output"
    advice = "look at `output`; make the type less strict, or describe its fields"

    def __init__(self, what: str, *, output: object, text: str = "") -> None:
        super().__init__(what, text=text)
        self.output = output


class ToolExecutionError(SteersmanError):
    """A Python tool raised an exception, which is the `__cause__`."""

    code = "tool_execution"
    advice = "look at `__cause__`, in the log of steersman.tools"

    def __init__(self, tool_name: str, reason: str) -> None:
        super().__init__(f"tool {tool_name!r} failed: {reason}")
        self.tool_name = tool_name


class CliMisbehaves(SteersmanError):
    """The CLI reports another setting than it was given, so the session was ended.

    Permission checks and hooks rest on these settings: nothing may run without them.
    """

    code = "cli_misbehaves"

    def __init__(
        self, setting: str, given: str, reported: str, *, evidence: Evidence | None = None
    ) -> None:
        what = f"reports {reported!r}" if reported else "does not report it"
        super().__init__(
            f"{setting}: the CLI was given {given!r} and {what}",
            hint="use a release that was tested, as `steersman doctor` shows; if this one was"
            " tested, look in extra_args, settings files and command hooks for what changes it",
            evidence=evidence,
        )
        self.setting = setting
        self.given = given
        self.reported = reported
        """What the CLI reports; empty if it reports nothing."""


class ForbiddenTool(SteersmanError):
    """The CLI offers tools to the model that the options forbid, so the session was ended."""

    code = "forbidden_tool"

    def __init__(self, tools: Sequence[str]) -> None:
        super().__init__(
            f"the CLI offers tools that are forbidden: {', '.join(tools)}",
            hint="update the CLI, and look for a settings file that allows these tools",
        )
        self.tools = tuple(tools)


class LeaseLost(SteersmanError):
    """The lease of a conversation in a store has ended: another process may have it now."""

    code = "lease_lost"

    def __init__(self, session_id: str, reason: str) -> None:
        super().__init__(
            f"the lease of the conversation {session_id} is lost: {reason}",
            hint="nothing more is written; open the conversation again when it is free",
        )
        self.session_id = session_id
        self.reason = reason


class SessionNotFound(SteersmanError, LookupError):
    """No stored session has the id `session_id`, or it cannot be read."""

    code = "session_not_found"

    def __init__(self, session_id: str, where: str = "", *, reason: str = "") -> None:
        what = f"there is no session {session_id}" + (f" {where}" if where else "")
        super().__init__(
            f"the session {session_id} cannot be read: {reason}" if reason else what,
            hint="check who may read the file"
            if reason
            else "look at Sessions().list(); the CLI deletes old sessions (cleanupPeriodDays)",
        )
        self.session_id = session_id
        self.reason = reason
        """Why a session that is there cannot be read; empty if it is not there."""


class AskError(SteersmanError):
    """An ask cannot be answered."""

    code = "ask"
    advice = "inbox.list() lists the open asks"

    def __init__(self, ask_id: str, reason: str, *, hint: str = "", session: str = "") -> None:
        super().__init__(f"ask {ask_id}: {reason}", hint=hint)
        self.ask_id = ask_id
        self.reason = reason
        self.session = session
        """The session of the ask; empty if it is not known."""


class AlreadyAnswered(AskError):
    """The ask already has an answer: `answer`, given by `by`."""

    code = "already_answered"
    advice = "nothing: the ask is settled, and `answer` is its answer"

    def __init__(self, ask_id: str, by: str, answer: object, *, session: str = "") -> None:
        super().__init__(ask_id, f"{by} has already answered it", session=session)
        self.by = by
        self.answer = answer


class AskChanged(AskError):
    """The answer is to another input than the ask has: `seen` is not the ask's digest."""

    code = "ask_changed"

    def __init__(self, ask_id: str, seen: str, digest: str) -> None:
        super().__init__(
            ask_id,
            "it is not what was shown: its digest is another one than seen=",
            hint="show the ask again, and pass seen=ask.digest of what was shown",
        )
        self.seen = seen
        self.digest = digest


class AskGone(AskError):
    """The ask is closed: it expired, was withdrawn, or its session ended."""

    code = "ask_gone"
    advice = "nothing: the ask cannot be answered any more; inbox.list() lists the open asks"


class AskNotFound(AskError):
    """The inbox has no ask with that id."""

    code = "ask_not_found"

    def __init__(self, ask_id: str) -> None:
        super().__init__(ask_id, "not in this inbox", hint="inbox.list() lists the open asks")


class StoreError(SteersmanError):
    """A store of sessions cannot be read or written; nothing of the batch was stored."""

    code = "store"
    advice = "try again when the store can be reached"


class StoreTooNew(StoreError):
    """A later release of steersman has changed the tables of the store."""

    code = "store_too_new"

    def __init__(self, where: str, found: int, known: int) -> None:
        super().__init__(
            f"{where} has tables of version {found}; this release of steersman knows {known}",
            hint="update steersman, or use another database",
        )
        self.found = found
        self.known = known


class ReaderLagged(SteersmanError):
    """A reader fell behind what the journal keeps in memory; it cannot have `lost` entries."""

    code = "reader_lagged"

    def __init__(self, lost: int) -> None:
        super().__init__(
            f"this reader is too slow: the journal no longer has {lost} entries in memory",
            hint="read faster, or raise journal_memory= (bytes)",
        )
        self.lost = lost


class WebError(SteersmanError):
    """A bridge of `steersman.web` has refused a request of its client."""

    code = "web"
    advice = "see the codes in docs/web-protocol.md"

    def __init__(
        self, status: int, error_code: str, words: str, body: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(f"the bridge answered {status} {error_code}: {words}")
        self.status = status
        self.error_code = error_code
        """The code in the answer, such as `already_answered`."""
        self.by = str((body or {}).get("by", ""))
        """Who has answered an ask first; empty for other errors."""
        self.body = dict(body or {})
        """All fields of the error in the answer."""


def _unpickled(
    cls: type[SteersmanError], args: tuple[object, ...], fields: dict[str, object]
) -> SteersmanError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(fields)
    return error


def _describe_status(status: int) -> str:
    return f"ended by signal {-status}" if status < 0 else f"exit status {status}"


def _shorten(given: object, limit: int = 120) -> str:
    if isinstance(given, FunctionType):
        return f"the function {given.__name__}"
    try:
        shown = repr(given)
    except RecursionError:
        return f"a {type(given).__name__} that is nested too deeply"
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"
