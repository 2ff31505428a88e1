"""A CLI that is replayed from a recording.

Takes tracks of a journal file, one for each start of the CLI. The caller loads them, and decides
what to do about a drift (a difference from the recording).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from steersman.errors import LaunchError, UsageError
from steersman.journal.files import Track
from steersman.ports import Channel, Launch, Receiver
from steersman.transports.memory import MemoryTransport, Wire
from steersman.transports.replay_drift import Absent, Drift, Drifted
from steersman.transports.replay_tape import Tape, TapeOutput

Clean = Callable[[bytes], bytes]
"""Removes secrets from a line."""

PATIENCE = 5.0
"""Seconds that a tape waits for the next line from the host."""

DRIFTED = 3
"""The exit status after a drift."""

ROUNDS_BEFORE_CANCEL = 5
"""Rounds of the event loop in which a host can handle a request before it is cancelled."""


def _unchanged(_launch: Launch) -> Clean:
    return lambda line: line


def _no_options(_launch: Launch) -> tuple[str, ...]:
    return ()


@dataclass(slots=True)
class ReplayTransport:
    """Replays one track for each start of the CLI, in order.

    Mode `stub` compares only prompts with the tape; mode `verify` compares every line from the
    host. At the first drift the CLI writes it to stderr and exits.
    """

    tracks: Sequence[Track]
    mode: Literal["stub", "verify"] = "stub"
    patience: float | None = PATIENCE
    """Seconds to wait for the next expected line from the host; `None` for no limit."""
    pace: float = 0.0
    """Factor for the recorded time between two lines of the CLI; 0 replays without waiting."""
    keep_going: bool = False
    """Whether to collect drifts and continue as if the recorded line had come."""
    clean: Callable[[Launch], Clean] = _unchanged
    """Returns what removes secrets from a line, as was done during the recording."""
    options_of: Callable[[Launch], tuple[str, ...]] = _no_options
    """Returns the options of a launch as in a track's header. Empty options are not compared."""
    drifts: list[Drift] = field(default_factory=list[Drift], init=False)
    """The drifts so far."""
    started: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.mode not in ("stub", "verify"):
            raise UsageError("mode", self.mode, "stub or verify")
        _check_seconds("patience", 0.0 if self.patience is None else self.patience)
        _check_seconds("pace", self.pace)

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        if self.drifts and not self.keep_going:
            # A caller that restarts the CLI must learn why the last one exited.
            raise LaunchError(f"this replay has drifted: {self.drifts[0]}")
        if self.started >= len(self.tracks):
            raise LaunchError(
                f"this recording has {len(self.tracks)} starts of a CLI; this is one more",
                hint="record it again",
            )
        track = self.tracks[self.started]
        self.started += 1
        tape = Tape(
            track,
            _session_id(launch),
            compares_all=self.mode == "verify",
            clean=self.clean(launch),
        )
        player = _Player(tape, self, self._other_options(track, launch))
        return await MemoryTransport(player).open(launch, receiver)

    def check(self) -> None:
        """Raise `Drifted` if there was any drift."""
        if self.drifts:
            raise Drifted(self.drifts)

    def _other_options(self, track: Track, launch: Launch) -> Drift | None:
        recorded, given = track.header.options, self.options_of(launch)
        if self.mode == "stub" or not (recorded and given) or recorded == given:
            return None
        what = "the options differ from the tape"
        return Drift(what, _flags(recorded), _flags(given), track=track.header.track)


class _Player:
    """Writes the output of a tape, and gives the tape what the host writes."""

    def __init__(self, tape: Tape, settings: ReplayTransport, drift: Drift | None) -> None:
        self._tape = tape
        self._settings = settings
        self._drift = drift
        self._wire: Wire | None = None
        self._unfinished = b""
        self._pause: asyncio.Handle | None = None
        self._alarm: asyncio.Handle | None = None
        self._rounds = 0
        self._last_at: float | None = None
        self._input_has_ended = False
        self._has_exited = False

    # Called when the host writes

    def connected(self, launch: Launch, wire: Wire) -> None:  # noqa: ARG002 - as in Peer
        self._wire = wire
        if self._drift is not None:
            self._report(self._drift)
        self._play()

    def data_received(self, data: bytes) -> None:
        *lines, self._unfinished = (self._unfinished + data).split(b"\n")
        for line in lines:
            drift = self._tape.receive(line) if line.strip() and not self._has_exited else None
            if drift is not None:
                # The tape has no answer to a line that it does not contain.
                self._report(drift, must_end=drift.recorded is Absent.NOTHING)
        self._play()

    def input_ended(self) -> None:
        self._input_has_ended = True
        self._tape.end_input()
        self._play()

    def killed(self) -> None:
        self._end()

    # Output of the tape

    def _play(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        while not self._has_exited and self._pause is None:
            output = self._tape.peek()
            if output is None:
                self._wait_for_host()
                return
            if not self._pauses_before(output):
                self._tape.pop()
                self._emit(output)

    def _emit(self, output: TapeOutput) -> None:
        assert self._wire is not None
        self._rounds = 0
        self._last_at = output.at
        self._wire.write(output.stdout)
        self._wire.write_stderr(output.stderr)
        if output.status is not None:
            self._exit(output.status)

    def _pauses_before(self, output: TapeOutput) -> bool:
        loop = asyncio.get_running_loop()
        passed = output.at - (output.at if self._last_at is None else self._last_at)
        if self._settings.pace * passed > 0:
            self._last_at = output.at
            self._pause = loop.call_later(self._settings.pace * passed, self._continue)
        elif output.is_cancel and self._rounds < ROUNDS_BEFORE_CANCEL:
            self._rounds += 1
            self._pause = loop.call_soon(self._continue)
        return self._pause is not None

    def _continue(self) -> None:
        self._pause = None
        self._play()

    def _wait_for_host(self) -> None:
        """Wait for the host, for at most `patience` seconds."""
        missing = self._tape.waits_for()
        if self._input_has_ended:
            if missing is not None and self._settings.mode == "verify" and not self._tape.has_ended:
                self._settings.drifts.append(missing)
            self._exit(0)
        elif missing is not None and self._settings.patience is not None:
            loop = asyncio.get_running_loop()
            self._alarm = loop.call_later(self._settings.patience, self._time_out, missing)

    def _time_out(self, missing: Drift) -> None:
        what = f"{missing.what}, and nothing came for {self._settings.patience:g} s"
        self._report(replace(missing, what=what), must_end=True)

    def _report(self, drift: Drift, *, must_end: bool = False) -> None:
        assert self._wire is not None
        self._settings.drifts.append(drift)
        if must_end or not self._settings.keep_going:
            self._wire.write_stderr(f"replay: {drift}\n".encode())
            self._exit(DRIFTED)

    def _exit(self, status: int) -> None:
        assert self._wire is not None
        self._end()
        self._wire.exit(status)

    def _end(self) -> None:
        self._has_exited = True
        for timer in (self._pause, self._alarm):
            if timer is not None:
                timer.cancel()


def _check_seconds(argument: str, given: object) -> None:
    if isinstance(given, bool) or not isinstance(given, int | float) or given < 0:
        raise UsageError(argument, given, "a number, 0 or more")


def _flags(options: Iterable[str]) -> dict[str, str]:
    return {flag: value for flag, _, value in (each.partition("=") for each in options)}


def _session_id(launch: Launch) -> str | None:
    """Return the session id that the host asks for, if it does."""
    for flag in ("--session-id=", "--resume="):
        for token in launch.argv:
            if isinstance(token, str) and token.startswith(flag):
                return token.removeprefix(flag)
    return None
