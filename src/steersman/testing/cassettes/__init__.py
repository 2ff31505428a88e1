"""Cassettes: a conversation with a CLI, recorded once and replayed in tests.

A cassette is a journal file. `Cassette` is a transport that records or replays it:
`Agent(transport=Cassette("answer.jsonl"))`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, get_args

from steersman.errors import UsageError
from steersman.journal.files import TORN, Track, read_tracks
from steersman.ports import Channel, Launch, Receiver, Transport
from steersman.testing.cassettes.recorder import Recorder, options_of, scrubber_for
from steersman.testing.cassettes.scrubbing import RULES, Rule
from steersman.transports.replay import PATIENCE, ReplayTransport
from steersman.transports.replay_drift import Drift, Drifted

__all__ = ["RULES", "Cassette", "Drift", "Drifted", "Mode", "Recorder", "Rule", "read_cassette"]

Mode = Literal["once", "record", "stub", "verify"]


class Cassette:
    """Records a conversation, or replays it.

    - `record`: run a CLI and write the file, replacing an old one.
    - `stub`: replay; prompts are compared, and the recorded answers of callbacks are used.
    - `verify`: replay; callbacks, hooks and tools run again, and must answer as recorded.
    - `once`: `record` if there is no file, else `verify`.

    A replay that differs from the recording ends as if the CLI had exited, with the difference on
    stderr. A cassette used as a context manager raises `Drifted` when the block ends; otherwise
    call `check()`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        mode: Mode = "once",
        *,
        inner: Transport | None = None,
        rules: Sequence[Rule] = RULES,
        patience: float | None = PATIENCE,
        keep_going: bool = False,
        pace: float = 0.0,
    ) -> None:
        """Open a cassette.

        `inner` is the transport of the CLI that is recorded; `rules` describe the secrets that are
        removed. `patience` is how many seconds a replay waits for the next expected line;
        `keep_going` collects all differences instead of ending at the first; `pace=1` replays at
        the recorded speed, and 0 without waiting.
        """
        if mode not in get_args(Mode):
            raise UsageError("mode", mode, " or ".join(get_args(Mode)))
        self.path = Path(path)
        self.is_recording = mode == "record" or (mode == "once" and not self.path.exists())
        """True if a CLI is run and recorded."""
        self._recorder = Recorder(path, inner, rules=rules) if self.is_recording else None
        self._replay: ReplayTransport | None = None
        if not self.is_recording:
            self._replay = ReplayTransport(
                read_cassette(self.path),
                "stub" if mode == "stub" else "verify",
                patience=patience,
                pace=pace,
                keep_going=keep_going,
                clean=lambda launch: scrubber_for(launch, rules).line,
                options_of=options_of,
            )

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        """Run a CLI and record it, or replay the next track."""
        chosen = self._recorder or self._replay
        assert chosen is not None
        return await chosen.open(launch, receiver)

    @property
    def drifts(self) -> tuple[Drift, ...]:
        """The differences from the recording so far, in order."""
        return () if self._replay is None else tuple(self._replay.drifts)

    def check(self) -> None:
        """Raise `Drifted` if something differed from the recording."""
        if self.drifts:
            raise Drifted(self.drifts)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A drift is the cause of a later failure, so it is raised, with the failure as its context.
        if error is None or isinstance(error, Exception):
            self.check()


def read_cassette(path: str | os.PathLike[str]) -> list[Track]:
    """Return the tracks of a cassette. Raises `UsageError` if it cannot be read or is damaged."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(
            "path", str(path), f"a cassette that can be read ({error.strerror})"
        ) from None
    tracks = read_tracks(data)
    for track in tracks:
        for record in track.records[:-1]:
            if record.kind == TORN:
                raise UsageError(
                    "path", str(path), f"a whole cassette; entry {record.seq} cannot be read"
                )
    return tracks
