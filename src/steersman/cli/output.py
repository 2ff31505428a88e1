"""What every command writes: nothing of others moves the cursor, and no reader is required."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Mapping
from typing import TextIO

from steersman._terminal import printable


def complain(error: object) -> None:
    """Write an error to stderr, each control character as an escape."""
    print(printable(f"steersman: {error}"), file=sys.stderr)


def warn_if_ctrl_c_is_ignored() -> None:
    """Write to stderr how to end a command that runs until ctrl-c, if that does not reach it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        complain(
            "ctrl-c is ignored here, as by nohup and in the background of a script:"
            f" end this with `kill {os.getpid()}`"
        )


def has_colour(out: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether `out` is a terminal with colours, and NO_COLOR is not set."""
    return out.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def make_encodable(*streams: TextIO) -> None:
    """Have streams write what their encoding lacks as escapes, so that nothing is lost."""
    for each in streams:
        if isinstance(each, io.TextIOWrapper):
            each.reconfigure(errors="backslashreplace")


def stop_writing() -> None:
    """Drop what is still to be written to stdout, whose reader has closed it."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, io.UnsupportedOperation):
        # In a test, stdout may be no file.
        return


def fill_descriptors() -> None:
    """Open the standard descriptors that the caller has closed.

    The next file that is opened would get the number, and be taken for stdout.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            stream = open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as the process
            setattr(sys, name, stream)
