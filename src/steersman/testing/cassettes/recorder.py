"""A transport that records both directions of a conversation, without secrets.

The file is written as a whole after the CLI has exited, so a cassette is never incomplete and
nothing reaches the disk before all rules were applied.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from steersman import _json
from steersman._json import Json, JsonDict
from steersman._protocol.connection import Connection
from steersman._protocol.events import Event, LineDropped, MessageArrived, NoiseReceived
from steersman.errors import UsageError
from steersman.journal import Kind
from steersman.journal.files import EXITED, INPUT_ENDED, STDERR, Header, Record, line_of
from steersman.journal.redaction import secrets_in
from steersman.ports import Channel, Launch, Receiver, Transport
from steersman.testing.cassettes.scrubbing import BY_LOOKS, RULES, Rule, Scrubber, scrub_split_text
from steersman.transports.locate import locate
from steersman.transports.subprocess import SubprocessTransport

log = logging.getLogger("steersman.testing")

BEHAVIOUR_FLAGS = frozenset(
    {
        "--allowedTools",
        "--disallowedTools",
        "--fallback-model",
        "--max-budget-usd",
        "--max-turns",
        "--model",
        "--permission-mode",
        "--setting-sources",
        "--strict-mcp-config",
        "--tools",
    }
)
"""Flags that change what a CLI does with a prompt and have the same value on every machine."""


class Recorder:
    """Runs a CLI on another transport and records the conversation in a file.

    Each start of the CLI becomes a track of the file, so an agent may open several sessions.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        inner: Transport | None = None,
        *,
        rules: Sequence[Rule] = RULES,
    ) -> None:
        """Record to `path` a CLI that runs on `inner`, by default a subprocess."""
        self.path = Path(path)
        if self.path.is_dir() or not self.path.name:
            raise UsageError("path", str(path), "the path of a file")
        self._inner = inner
        self._rules = tuple(rules)
        self._started = 0
        self._tracks: dict[int, bytes] = {}

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        """Run the CLI and record both directions."""
        number, self._started = self._started, self._started + 1
        recording = _RecordingReceiver(self, number, launch, receiver)
        inner = SubprocessTransport() if self._inner is None else self._inner
        wanted = _located(launch) if self._inner is None else launch
        return _RecordingChannel(await inner.open(wanted, recording), recording)

    def finish(self, number: int, launch: Launch, records: list[Record]) -> None:
        """Add a track whose CLI has exited, and write the file."""
        found = _random_values((record.line for record in records), self._rules)
        scrubber = scrubber_for(launch, self._rules, found)
        lines = scrub_split_text((record.line for record in records), scrubber)
        header = Header(_version(), _cli_version(records), options_of(launch), number)
        cleaned = (
            replace(record, line=scrubber.line(line)) if record.line else record
            for record, line in zip(records, lines, strict=True)
        )
        self._tracks[number] = line_of(header) + b"".join(map(line_of, cleaned))
        try:
            _write(self.path, (self._tracks[each] for each in sorted(self._tracks)))
        except OSError:
            # The session itself has not failed, and its receiver must still learn of the exit.
            log.exception("the cassette %s could not be written", self.path)


def scrubber_for(
    launch: Launch, rules: Sequence[Rule], more_secrets: Iterable[str] = ()
) -> Scrubber:
    """Return a scrubber for the rules and for the secrets that this CLI was started with."""
    # Names such as XDG_SESSION_TYPE look secret, and their values are ordinary text.
    env = {name: value for name, value in launch.env.items() if not name.startswith("XDG_")}
    return Scrubber(rules, (*secrets_in(env, *_configurations(launch)), *more_secrets))


def options_of(launch: Launch) -> tuple[str, ...]:
    """Return the flags that a header records: no path, no secret, no id."""
    flags = (each for each in launch.argv if isinstance(each, str))
    chosen = (each for each in flags if each.partition("=")[0] in BEHAVIOUR_FLAGS)
    return tuple(sorted(map(_digested, chosen)))


class _RecordingReceiver:
    """The receiver that records what passes between a CLI and its host."""

    def __init__(self, recorder: Recorder, number: int, launch: Launch, receiver: Receiver) -> None:
        self._recorder = recorder
        self._number = number
        self._launch = launch
        self._receiver = receiver
        self._records: list[Record] = []
        # Decodes the lines too, so that the file has the kinds and turns that a journal would have.
        self._connection = Connection("tape")
        self._unfinished = b""

    # From the CLI

    def data_received(self, data: bytes) -> None:
        self._read(self._connection.receive(data))
        self._receiver.data_received(data)

    def stderr_received(self, data: bytes) -> None:
        self._add(STDERR, data)
        self._receiver.stderr_received(data)

    def exited(self, status: int) -> None:
        self._read(self._connection.receive(b""))
        self._add(EXITED, details={"status": status})
        self._recorder.finish(self._number, self._launch, self._records)
        self._receiver.exited(status)

    def _read(self, events: Iterable[Event]) -> None:
        # One timestamp for the chunk: equal times mark lines that arrived together.
        now = time.time()
        for event in events:
            match event:
                case MessageArrived(line, kind, turns):
                    self._add(kind.value, line, turns, at=now)
                case NoiseReceived(line):
                    self._add(Kind.NOISE.value, line, at=now)
                case LineDropped(over):
                    self._add(Kind.OVERSIZE.value, over.head, details={"size": over.size}, at=now)
                case _:
                    pass

    # From the host

    def written(self, data: bytes) -> None:
        *lines, self._unfinished = (self._unfinished + data).split(b"\n")
        for line in lines:
            self._add(Kind.SENT.value, line, self._prompts_in(line))

    def ended_input(self) -> None:
        if all(record.kind != INPUT_ENDED for record in self._records):
            self._add(INPUT_ENDED)

    def _prompts_in(self, line: bytes) -> tuple[str, ...]:
        with suppress(ValueError):
            match _json.loads(line):
                case {"type": "user", "uuid": str(uuid)}:
                    self._connection.expect(uuid)
                    return (uuid,)
                case _:
                    pass
        return ()

    def _add(
        self,
        kind: str,
        line: bytes = b"",
        turns: tuple[str, ...] = (),
        details: JsonDict | None = None,
        at: float | None = None,
    ) -> None:
        now = time.time() if at is None else at
        self._records.append(Record(len(self._records) + 1, now, kind, line, turns, details or {}))


class _RecordingChannel:
    """A channel that records what the host writes."""

    def __init__(self, inner: Channel, recording: _RecordingReceiver) -> None:
        self._inner = inner
        self._recording = recording
        self.suspend = inner.suspend
        self.resume = inner.resume

    @property
    def pid(self) -> int | None:
        return self._inner.pid

    def write(self, data: bytes) -> None:
        self._recording.written(data)
        self._inner.write(data)

    def end_input(self) -> None:
        self._recording.ended_input()
        self._inner.end_input()

    def close(self, grace: float) -> None:
        self._recording.ended_input()
        self._inner.close(grace)

    def kill(self) -> None:
        # The host causes the exit that follows, so a replay waits for the host to do it again.
        self._recording.ended_input()
        self._inner.kill()


def _located(launch: Launch) -> Launch:
    """Return the launch with the CLI's path, which an agent with a transport does not look up."""
    program, *rest = launch.argv
    return replace(launch, argv=(locate(None), *rest)) if program == "claude" else launch


def _configurations(launch: Launch) -> Iterator[Json]:
    for content in launch.files.values():
        with suppress(ValueError):
            yield _json.loads(content)


def _random_values(lines: Iterable[bytes], rules: Sequence[Rule]) -> set[str]:
    """Return the values that only their place marks as secrets; they may also occur elsewhere."""
    scrubber, found = Scrubber(rules), set[str]()
    for line in lines:
        with suppress(ValueError):
            finds = scrubber.found_in(_json.loads(line))
            found |= {secret for rule, secret in finds if rule is BY_LOOKS}
    return found


def _digested(flag_text: str) -> str:
    flag, equals, value = flag_text.partition("=")
    if "/" not in value:
        return flag_text
    return f"{flag}{equals}sha256:{hashlib.sha256(value.encode()).hexdigest()[:12]}"


def _cli_version(records: Iterable[Record]) -> str:
    """Return the version from the `initialize` response or from `system/init`."""
    for record in records:
        if b'"claude_code_version"' in record.line:
            with suppress(ValueError):
                match _json.loads(record.line):
                    case {"response": {"response": {"claude_code_version": str(version)}}}:
                        return version
                    case {"claude_code_version": str(version)}:
                        return version
                    case _:
                        pass
    return ""


def _version() -> str:
    try:
        return metadata.version("steersman")
    except metadata.PackageNotFoundError:
        return ""


def _write(path: Path, parts: Iterable[bytes]) -> None:
    """Replace the file by a rename, so that no reader ever finds half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        with draft.open("xb") as file:
            file.writelines(parts)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
