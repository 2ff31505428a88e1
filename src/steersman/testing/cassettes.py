"""Cassettes: a conversation with a CLI, recorded once and played as often as you like.

A cassette is a journal file. It is a transport: `Agent(transport=Cassette("greeting.jsonl"))`.
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
from steersman.testing.cassette_recorder import Recorder, options_of, scrubber_for
from steersman.testing.cassette_rules import RULES, Rule
from steersman.transports.replay import PATIENCE, ReplayTransport
from steersman.transports.replay_drift import Drift, Drifted

__all__ = ["RULES", "Cassette", "Drift", "Drifted", "Mode", "Recorder", "Rule", "read_cassette"]

Mode = Literal["once", "record", "stub", "verify"]


class Cassette:
    """Records a conversation, or plays it.

    - `record`: run a CLI and write the file anew.
    - `stub`: play it; prompts are compared, and the recorded answers of callbacks count.
    - `verify`: play it; callbacks, hooks and tools decide again, and must decide the same.
    - `once`: `record` if there is no file, else `verify`.

    A replay that comes to differ ends as if the CLI had, with the drift on stderr. As a context
    manager it raises `Drifted` at the end; outside of one, `check()` does.
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
        """`inner` is where a CLI runs that is recorded; `rules` say what is left out.

        `patience` is how many seconds a tape waits for the line that it goes on with; `keep_going`
        collects all drifts instead of ending at the first; `pace=1` takes the time it took then.
        """
        if mode not in get_args(Mode):
            raise UsageError("mode", mode, " or ".join(get_args(Mode)))
        self.path = Path(path)
        self.is_recording = mode == "record" or (mode == "once" and not self.path.exists())
        """Whether a CLI is run."""
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
        """Run a CLI and record it, or play the next track."""
        chosen = self._recorder or self._replay
        assert chosen is not None
        return await chosen.open(launch, receiver)

    @property
    def drifts(self) -> tuple[Drift, ...]:
        """What came otherwise than it was recorded, so far; the first one first."""
        return () if self._replay is None else tuple(self._replay.drifts)

    def check(self) -> None:
        """Raise `Drifted` if something came otherwise than it was recorded."""
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
        # A drift is why the rest failed: it is told first, and the rest as its context.
        if error is None or isinstance(error, Exception):
            self.check()


def read_cassette(path: str | os.PathLike[str]) -> list[Track]:
    """The tracks of a cassette. Raises `UsageError` where there is none, or a broken one."""
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
