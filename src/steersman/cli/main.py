"""The `steersman` command: finds the command that the command line names, and runs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

from steersman.cli.commands import (
    BUILT_IN,
    Command,
    add_missing,
    installed,
    missing,
    overview,
    version,
)
from steersman.cli.output import complain, fill_descriptors, make_encodable, stop_writing
from steersman.cli.statuses import COMPLETED, FAILED, INTERRUPTED, MISUSE, status_of

if TYPE_CHECKING:
    from steersman.cli.commands import Commands

COMPLETION = "_STEERSMAN_COMPLETE"
"""The variable with which a shell asks for completions."""
EXTRA = frozenset({"prompt_toolkit", "rich"})
"""The packages of the extra `terminal`."""


def main(
    arguments: Sequence[str] | None = None,
    stdin: TextIO = sys.stdin,
    found: Iterable[Command] | None = None,
) -> int:
    """Run the command and return its exit status; `found` are the commands that there are."""
    if arguments is None:
        fill_descriptors()
        stdin = sys.stdin
        make_encodable(sys.stdout, sys.stderr)
        if COMPLETION in os.environ:
            return _complete()
    words = list(sys.argv[1:] if arguments is None else arguments)
    is_debug = words[:1] == ["--debug"]
    words = words[is_debug:]
    return _guarded(lambda: _run(words, stdin, found), is_debug=is_debug)


def _run(words: list[str], stdin: TextIO, found: Iterable[Command] | None) -> int:
    name = words[0] if words else ""
    if name in ("-h", "--help", "--version", ""):
        return _overview(name, installed() if found is None else list(found))
    ours = {command.name: command for command in (BUILT_IN if found is None else found)}
    if name not in ours and found is None:
        # Looking for other distributions takes longer than all else.
        ours = {command.name: command for command in installed()}
    if name in ours:
        return _run_command(ours[name], words, stdin)
    homes = missing(ours.values())
    if name in homes:
        return _parse(lambda commands: add_missing(commands, name, homes[name]), words, stdin)
    known = ", ".join(sorted({*ours, *homes}))
    complain(f"there is no command {name!r}; there are {known}")
    return MISUSE


def _overview(name: str, found: list[Command]) -> int:
    if name == "--version":
        print(version())
        return COMPLETED
    print(overview(found), file=sys.stdout if name else sys.stderr)
    return COMPLETED if name else MISUSE


def _run_command(command: Command, words: list[str], stdin: TextIO) -> int:
    try:
        add = command.load()
    except Exception as error:  # noqa: BLE001 - may be code of another distribution
        complain(f"the command {command.name} cannot be loaded: {error!r}")
        return FAILED
    try:
        return _parse(add, words, stdin)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in EXTRA:
            raise
        complain(
            f"`steersman {command.name}` needs the package {package}."
            " Install it: pip install 'steersman[terminal]'"
        )
        return MISUSE


def _parse(add: Callable[[Commands], None], words: list[str], stdin: TextIO) -> int:
    """Read the words of a command, and run it."""
    from argparse import Namespace  # noqa: PLC0415 - the list of commands does not need it

    from steersman.cli.parsers import Parser  # noqa: PLC0415 - as above

    parser = Parser(prog="steersman")
    add(parser.add_subparsers(required=True, metavar="COMMAND"))
    try:
        chosen, rest = parser.parse_known_args(
            words, Namespace(stdin=stdin, ignores_arguments=False)
        )
        if rest and not chosen.ignores_arguments:
            parser.error(f"unrecognized arguments: {' '.join(rest)}")
    except SystemExit as end:
        # Help was shown, or what is wrong.
        return MISUSE if end.code else COMPLETED
    return int(chosen.run(chosen))


def _guarded(run: Callable[[], int], *, is_debug: bool) -> int:
    """Run a command. Errors become one text on stderr and an exit status."""
    try:
        status = run()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as `head`, has enough.
        stop_writing()
        return COMPLETED
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - no traceback without --debug
        return _failed(error, is_debug=is_debug)
    return status


def _failed(error: Exception, *, is_debug: bool) -> int:
    from steersman.errors import SteersmanError  # noqa: PLC0415 - only after an error

    if is_debug:
        import traceback  # noqa: PLC0415 - as above

        traceback.print_exception(error)
    elif isinstance(error, SteersmanError):
        complain(error)
    else:
        complain(f"{type(error).__name__}: {error}\n`steersman --debug ...` shows where")
    return status_of(error)


def _complete() -> int:
    from steersman.cli.completion import complete  # noqa: PLC0415 - only for a shell

    return complete(installed(), os.environ[COMPLETION], os.environ)
