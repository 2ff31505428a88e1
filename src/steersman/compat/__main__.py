"""`python -m steersman.compat program.py`: runs a program of the official SDK as it stands.

It runs in this process as `python` would run it, with `claude_agent_sdk` as `steersman.compat`.
Arguments, `__main__`, `sys.path`, tracebacks and exit statuses are those of `python`.
"""

from __future__ import annotations

import builtins
import importlib.util
import os
import pkgutil
import runpy
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any

from steersman.compat._aliases import install

USAGE = """\
usage: python -m steersman.compat PROGRAM.py [ARGUMENT...]
       python -m steersman.compat -m MODULE [ARGUMENT...]

Runs a program that was written for claude_agent_sdk as it stands, on steersman:
in this process, claude_agent_sdk is steersman.compat.
"""
MISUSE = 2
FAILED = 1
OURS = frozenset({__file__, runpy.__file__, "<frozen runpy>"})
"""The files of the frames before the first one of the program."""


def main(words: Sequence[str]) -> int:
    """Run the program that a command line names, and return its exit status."""
    if words[:1] in (["-h"], ["--help"]):
        sys.stdout.write(USAGE)
        return 0
    is_module = words[:1] == ["-m"]
    named = list(words[is_module:])
    if not named or (named[0].startswith("-") and not is_module):
        sys.stderr.write(USAGE)
        return MISUSE
    try:
        run = _module(named) if is_module else _program(named)
    except ImportError as error:
        sys.stderr.write(f"{sys.executable}: {error}\n")
        return FAILED
    except OSError as error:
        path, why = str(Path(named[0]).absolute()), f"[Errno {error.errno}] {error.strerror}"
        sys.stderr.write(f"{sys.executable}: can't open file {path!r}: {why}\n")
        return MISUSE
    return _guarded(run)


def _module(named: list[str]) -> Callable[[], None]:
    """Return what runs a module, found from the current directory on. Raises `ImportError`."""
    if importlib.util.find_spec(named[0]) is None:
        raise ImportError(f"No module named {named[0]}")

    def run() -> None:
        # `runpy` puts the path of the module in the first place, as `python -m` does.
        sys.argv = named
        runpy.run_module(named[0], run_name="__main__", alter_sys=True)

    return run


def _program(named: list[str]) -> Callable[[], None]:
    """Return what runs a file, or a directory or archive with a `__main__`.

    Raises `OSError`, and `ImportError` for one without.
    """
    path = Path(named[0])
    # From the root, as `python` does it: a program that changes its directory still finds modules.
    place = os.path.join(Path.cwd(), named[0])  # noqa: PTH118 - with the name as it was given
    importer: Any = pkgutil.get_importer(place)
    if importer is not None:
        spec = importer.find_spec("__main__")
        if spec is None:
            raise ImportError(f"can't find '__main__' module in {place!r}")

        def run_archive() -> None:
            sys.argv = named
            _set_first_place(place)
            code = spec.loader.get_code("__main__")
            about = {"__loader__": spec.loader, "__package__": "", "__spec__": spec}
            _run_code(code, code.co_filename, about)

        return run_archive
    source = path.read_bytes()

    def run() -> None:
        sys.argv = named
        _set_first_place(str(path.resolve().parent))
        code = compile(source, str(path.absolute()), "exec", dont_inherit=True)
        _run_code(code, str(path.absolute()), {})

    return run


def _run_code(code: CodeType, path: str, about: Mapping[str, object]) -> None:
    made = ModuleType("__main__")
    made.__dict__.update(__file__=path, __builtins__=builtins, __cached__=None, **about)
    # Kept for the whole process: pickle and `inspect` look for it, threads may still run.
    sys.modules["__main__"] = made
    exec(code, made.__dict__)  # noqa: S102 - the program that the caller has named


def _set_first_place(place: str) -> None:
    if not sys.flags.safe_path:
        sys.path[0] = place


def _guarded(run: Callable[[], None]) -> int:
    """Run a program; an error that it does not handle ends this process as it ends `python`."""
    install()
    try:
        run()
    except SystemExit:
        raise
    except BaseException:
        _hide_our_frames()
        raise
    return 0


def _hide_our_frames() -> None:
    """Have the traceback begin where the program does."""
    shown = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        cut = _without_ours(trace)
        shown(kind, error.with_traceback(cut), cut)

    sys.excepthook = show


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback from the first frame of the program on."""
    first = trace
    while first is not None and first.tb_frame.f_code.co_filename in OURS:
        first = first.tb_next
    return first


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
