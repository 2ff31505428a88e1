"""Chunks of stderr → lines, for a callback of the official form."""

from __future__ import annotations

import logging
from collections.abc import Callable

from steersman.compat._calling import Notify

logger = logging.getLogger("steersman.compat")


class StderrLines:
    """Passes each line that is not empty on to a callback, without space at its end."""

    def __init__(self, callback: Callable[[str], object] | None, notify: Notify) -> None:
        self._callback = callback
        self._notify = notify
        self._rest: list[str] = []

    def feed(self, chunk: str) -> None:
        """Take the next chunk."""
        *lines, rest = chunk.split("\n")
        if lines:
            lines[0] = "".join((*self._rest, lines[0]))
            self._rest.clear()
        if rest:
            self._rest.append(rest)
        for line in lines:
            self._pass_on(line)

    def finish(self) -> None:
        """Pass on the last line, if it has no newline."""
        last = "".join(self._rest)
        self._rest.clear()
        self._pass_on(last)

    def _pass_on(self, line: str) -> None:
        text = line.rstrip()
        if not text or self._callback is None:
            return
        try:
            self._notify(self._callback, text)
        except Exception:  # the program's own code, which must not end the session
            logger.exception("the callback for stderr failed")
