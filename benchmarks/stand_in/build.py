"""The stand-in CLI as a program to run: compiled where there is a compiler, else in Python."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["MADE", "is_compiled", "stand_in"]

HERE = Path(__file__).parent
MADE = HERE.parents[1] / ".bench_cache"
"""Whatever is made here; ignored by git."""


def stand_in(*, compiled: bool | None = None) -> Path:
    """The program's path. With `compiled=None` the faster one that this machine can have."""
    MADE.mkdir(exist_ok=True)
    compiler = shutil.which("cc")
    if compiled is None:
        compiled = compiler is not None
    return _compile(compiler or "cc") if compiled else _script()


def is_compiled(program: Path) -> bool:
    """Whether `program` is the compiled one."""
    return program.name == "stand_in"


def _compile(compiler: str) -> Path:
    source, program, words = HERE / "stand_in.c", MADE / "stand_in", HERE / "frames.txt"
    newest = max(each.stat().st_mtime for each in (source, Path(__file__)))
    # One that was made in another copy of the repository reads its words from there.
    is_ours = program.exists() and os.fsencode(words) in program.read_bytes()
    if is_ours and program.stat().st_mtime >= newest:
        return program
    frames = f'-DFRAMES="{words}"'
    draft = _draft(program)
    subprocess.run(  # noqa: S603 - our own source
        [compiler, "-O2", "-Wall", "-Wextra", frames, "-o", str(draft), str(source)], check=True
    )
    return draft.replace(program)


def _script() -> Path:
    program = MADE / "stand_in.sh"
    draft = _draft(program)
    words = shlex.join([sys.executable, str(HERE / "stand_in.py")])
    draft.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
    draft.chmod(0o755)
    return draft.replace(program)


def _draft(program: Path) -> Path:
    """Where a program is made before it is put in its place: another process may run it now."""
    return program.with_name(f"{program.name}.{os.getpid()}")
