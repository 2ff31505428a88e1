"""The `steersman` command: finds the command that the command line names, and runs it.

Only that command is imported. Those that need the extra `terminal` are commands of `click`; the
others use `argparse`, and also run on a bare install.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any, TextIO, cast

from steersman.cli.commands import BUILT_IN, add_missing, installed, missing
from steersman.cli.output import complain, fill_descriptors, make_encodable, stop_writing
from steersman.cli.statuses import COMPLETED, FAILED, INTERRUPTED, MISUSE

if TYPE_CHECKING:
    import click

COMPLETION = "_STEERSMAN_COMPLETE"
"""The variable with which a shell asks for completions."""
EXTRA = frozenset({"click", "prompt_toolkit", "rich"})
"""The packages of the extra `terminal`."""


def main(
    arguments: Sequence[str] | None = None,
    stdin: TextIO = sys.stdin,
    found: Iterable[EntryPoint] | None = None,
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


def _run(words: list[str], stdin: TextIO, found: Iterable[EntryPoint] | None) -> int:
    name = words[0] if words else ""
    if name in ("-h", "--help", "--version", ""):
        return _overview(name, installed() if found is None else list(found))
    ours = {command.name: command for command in (BUILT_IN if found is None else found)}
    if name not in ours and found is None:
        # Looking for other distributions takes longer than all else.
        ours = {command.name: command for command in installed()}
    if name in ours:
        return _run_command(ours[name], words[1:], stdin)
    homes = missing(ours.values())
    if name in homes:
        return _run_parser(lambda commands: add_missing(commands, name, homes[name]), words, stdin)
    known = ", ".join(sorted({*ours, *homes}))
    complain(f"there is no command {name!r}; there are {known}")
    return MISUSE


def _overview(name: str, found: list[EntryPoint]) -> int:
    from steersman.cli import overview  # noqa: PLC0415 - only to show it

    if name == "--version":
        print(overview.version())
        return COMPLETED
    print(overview.overview(found), file=sys.stdout if name else sys.stderr)
    return COMPLETED if name else MISUSE


def _run_command(command: EntryPoint, words: list[str], stdin: TextIO) -> int:
    try:
        loaded: object = command.load()
    except Exception as error:  # noqa: BLE001 - may be code of another distribution
        if isinstance(error, ModuleNotFoundError) and error.name in EXTRA:
            complain(
                f"`steersman {command.name}` needs the package {error.name}."
                " Install it: pip install 'steersman[terminal]'"
            )
            return MISUSE
        complain(f"the command {command.name} cannot be loaded: {error!r}")
        return FAILED
    if hasattr(loaded, "make_context"):
        return _run_click(cast("click.Command", loaded), command.name, words)
    return _run_parser(cast("Callable[[Any], None]", loaded), [command.name, *words], stdin)


def _run_parser(add: Callable[[Any], None], words: list[str], stdin: TextIO) -> int:
    import argparse  # noqa: PLC0415 - the list of commands does not need it

    parser = argparse.ArgumentParser(prog="steersman")
    add(parser.add_subparsers(required=True, metavar="command"))
    chosen, rest = parser.parse_known_args(
        words, argparse.Namespace(stdin=stdin, ignores_arguments=False)
    )
    if rest and not chosen.ignores_arguments:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return int(chosen.run(chosen))


def _run_click(command: click.Command, name: str, words: list[str]) -> int:
    import click  # noqa: PLC0415 - of the extra `terminal`

    try:
        status = command.main(words, prog_name=f"steersman {name}", standalone_mode=False)
    except click.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return MISUSE
    return int(status or COMPLETED)


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
    from steersman.cli.exits import status_of  # noqa: PLC0415 - only after an error
    from steersman.errors import SteersmanError  # noqa: PLC0415 - as above

    if is_debug:
        import traceback  # noqa: PLC0415 - as above

        traceback.print_exception(error)
    elif isinstance(error, SteersmanError):
        complain(error)
    else:
        complain(f"{type(error).__name__}: {error}\n`steersman --debug ...` shows where")
    return status_of(error)


def _complete() -> int:
    try:
        from steersman.cli.completion import complete  # noqa: PLC0415 - with click
    except ModuleNotFoundError:
        return FAILED
    return complete(installed(), COMPLETION, os.environ[COMPLETION])
