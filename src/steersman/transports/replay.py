"""A CLI that is played from a recording.

Gets tracks of a journal file, one for each start. Where they come from, and what to do about a
drift, is the caller's business.
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

__all__ = ["Clean", "ReplayTransport"]

Clean = Callable[[bytes], bytes]

PATIENCE = 5.0
"""Seconds that a tape waits for the next line of the host's."""

DRIFTED = 3
"""The exit status of a CLI whose host left the tape."""

ROUNDS_BEFORE_CANCEL = 5
"""Rounds of the event loop in which a host can take up a question before it is taken back."""


def _unchanged(_launch: Launch) -> Clean:
    return lambda line: line


def _no_options(_launch: Launch) -> tuple[str, ...]:
    return ()


@dataclass(slots=True)
class ReplayTransport:
    """Plays one track after the other, a new one for each start.

    In mode `stub` only prompts are compared with the tape; in mode `verify` everything that the
    host says is. At the first drift the CLI ends, saying so on stderr.
    """

    tracks: Sequence[Track]
    mode: Literal["stub", "verify"] = "stub"
    patience: float | None = PATIENCE
    """How long to wait for a line of the host's that the tape goes on with; `None` is for ever."""
    pace: float = 0.0
    """How much of the time between two lines of the CLI's is really waited."""
    keep_going: bool = False
    """Collect what differs and play on, as if the recorded line had come."""
    clean: Callable[[Launch], Clean] = _unchanged
    """Gives what takes secrets out of a line, as was done when it was recorded."""
    options_of: Callable[[Launch], tuple[str, ...]] = _no_options
    """Gives what a track's header would say about a launch; what is empty is not compared."""
    drifts: list[Drift] = field(default_factory=list[Drift], init=False)
    """What came otherwise, so far."""
    started: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.mode not in ("stub", "verify"):
            raise UsageError("mode", self.mode, "stub or verify")
        _check_seconds("patience", 0.0 if self.patience is None else self.patience)
        _check_seconds("pace", self.pace)

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        if self.drifts and not self.keep_going:
            # A caller that restarts the CLI must learn why the last one exited.
            raise LaunchError(f"this replay has left its tape: {self.drifts[0]}")
        if self.started >= len(self.tracks):
            raise LaunchError(
                f"this recording holds {len(self.tracks)} starts of a CLI, and here is one more",
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
        """Raise `Drifted` if something came otherwise than it was recorded."""
        if self.drifts:
            raise Drifted(self.drifts)

    def _other_options(self, track: Track, launch: Launch) -> Drift | None:
        recorded, given = track.header.options, self.options_of(launch)
        if self.mode == "stub" or not (recorded and given) or recorded == given:
            return None
        what = "the options differ from the tape"
        return Drift(what, _flags(recorded), _flags(given), track=track.header.track)


class _Player:
    """Says what the tape has, as fast as the host writes what it needs."""

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

    # What the host does

    def connected(self, launch: Launch, wire: Wire) -> None:  # noqa: ARG002 - the peer's shape
        self._wire = wire
        if self._drift is not None:
            self._report(self._drift)
        self._play()

    def data_received(self, data: bytes) -> None:
        *lines, self._unfinished = (self._unfinished + data).split(b"\n")
        for line in lines:
            drift = self._tape.receive(line) if line.strip() and not self._has_exited else None
            if drift is not None:
                # A line that the tape does not have gets no answer from it.
                self._report(drift, must_end=drift.recorded is Absent.NOTHING)
        self._play()

    def input_ended(self) -> None:
        self._input_has_ended = True
        self._tape.end_input()
        self._play()

    def killed(self) -> None:
        self._end()

    # What the tape does

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
        """Nothing to say until the host writes: it has so much time for it."""
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
    """The conversation that the host means to have, as far as it says so."""
    for flag in ("--session-id=", "--resume="):
        for token in launch.argv:
            if isinstance(token, str) and token.startswith(flag):
                return token.removeprefix(flag)
    return None
