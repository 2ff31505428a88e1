"""A real terminal for a program: a pty, and a screen that shows what the program wrote."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pexpect  # type: ignore[import-untyped] # it has no types
import pyte

LIMIT = 30.0
POLL = 0.02


class Terminal:
    """Runs a program in a pty and keeps its screen, with what scrolled off the top."""

    def __init__(
        self,
        program: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        *,
        columns: int = 80,
        lines: int = 40,
    ) -> None:
        self._screen = pyte.HistoryScreen(columns, lines, history=10_000)
        self._stream = pyte.ByteStream(self._screen)
        self._words: str | None = None
        self.written = b""
        """Every byte that the program has written."""
        self._child: Any = pexpect.spawn(
            program[0],
            list(program[1:]),
            env={"TERM": "xterm-256color", **env},
            cwd=str(cwd),
            dimensions=(lines, columns),
            timeout=LIMIT,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._child.close(force=True)

    @property
    def title(self) -> str:
        """The title of the window."""
        return str(self._screen.title)

    @property
    def shown(self) -> str:
        """What the terminal has shown, and shows; lines without spaces at their ends."""
        columns = range(self._screen.columns)
        past = ["".join(row[at].data for at in columns) for row in self._screen.history.top]
        return "\n".join(line.rstrip() for line in [*past, *self._screen.display])

    @property
    def words(self) -> str:
        """The same, with every run of spaces and ends of lines as one space."""
        if self._words is None:
            self._words = " ".join(self.shown.split())
        return self._words

    def type(self, text: str) -> None:
        """Type keys."""
        self._child.send(text)

    def resize(self, columns: int, lines: int) -> None:
        """Change the size; the program gets SIGWINCH."""
        self._screen.resize(lines, columns)
        self._child.setwinsize(lines, columns)

    def wait(self, is_so: Callable[[Terminal], bool] | str) -> None:
        """Read until something is so, or until a text is shown."""
        wanted = is_so if callable(is_so) else lambda terminal: is_so in terminal.words
        deadline = time.monotonic() + LIMIT
        seen = -1
        # A screen takes long to read, so a text is looked for only if something was written.
        while (seen == len(self.written) and not callable(is_so)) or not wanted(self):
            seen = len(self.written)
            assert time.monotonic() < deadline, f"not shown: {is_so}\n{self.shown}"
            assert self._read(), f"ended without: {is_so}\n{self.shown}"

    def end(self) -> int:
        """Read to the end and return the exit status; that of a signal is negative."""
        deadline = time.monotonic() + LIMIT
        while self._read():
            assert time.monotonic() < deadline, f"still running\n{self.shown}"
        with suppress(pexpect.ExceptionPexpect):
            self._child.wait()
        if self._child.signalstatus is not None:
            return -int(self._child.signalstatus)
        return int(self._child.exitstatus)

    def _read(self) -> bool:
        """Take what the program has written; return whether it may write more."""
        try:
            data = self._child.read_nonblocking(65536, timeout=POLL)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.written += data
        self._words = None
        self._stream.feed(data)
        # Programs ask a terminal where its cursor is.
        if b"\x1b[6n" in data:
            row, column = self._screen.cursor.y + 1, self._screen.cursor.x + 1
            os.write(self._child.child_fd, f"\x1b[{row};{column}R".encode())
        return True
