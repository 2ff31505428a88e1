"""Builds the stand-in CLI: compiled if there is a compiler, else in Python."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
MADE = HERE.parents[1] / ".bench_cache"
"""Directory of built files; ignored by git."""


def stand_in(*, compiled: bool | None = None) -> Path:
    """Return the path of the program. `compiled=None` chooses the faster one available."""
    MADE.mkdir(exist_ok=True)
    compiler = shutil.which("cc")
    if compiled is None:
        compiled = compiler is not None
    return _compile(compiler or "cc") if compiled else _script()


def is_compiled(program: Path) -> bool:
    """Whether `program` is the compiled one."""
    return program.name == "stand_in"


def _compile(compiler: str) -> Path:
    source, program, lines = HERE / "stand_in.c", MADE / "stand_in", HERE / "frames.txt"
    newest = max(each.stat().st_mtime for each in (source, Path(__file__)))
    # A program that was built in another checkout reads the frames of that checkout.
    is_ours = program.exists() and os.fsencode(lines) in program.read_bytes()
    if is_ours and program.stat().st_mtime >= newest:
        return program
    frames = f'-DFRAMES="{lines}"'
    draft = _draft(program)
    subprocess.run(  # noqa: S603 - our own source
        [compiler, "-O2", "-Wall", "-Wextra", frames, "-o", str(draft), str(source)], check=True
    )
    return draft.replace(program)


def _script() -> Path:
    program = MADE / "stand_in.sh"
    draft = _draft(program)
    command = shlex.join([sys.executable, str(HERE / "stand_in.py")])
    draft.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    draft.chmod(0o755)
    return draft.replace(program)


def _draft(program: Path) -> Path:
    """Return where to build a program before moving it: another process may be running it."""
    return program.with_name(f"{program.name}.{os.getpid()}")
