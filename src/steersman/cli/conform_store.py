"""`steersman conform store module:factory`: checks a session store."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from steersman._terminal import printable
from steersman.cli.arguments import imported
from steersman.cli.output import complain
from steersman.errors import UsageError
from steersman.testing.stores.checking import MANY, TIMEOUT, MakeStore, check, rule_names

GOOD, BAD, CANNOT = 0, 1, 2
INTERRUPTED = 130


def add_store_form(conform: argparse.ArgumentParser) -> None:
    """Add the form `store` to the parser of `steersman conform`."""
    forms = conform.add_subparsers(required=False, metavar="[store MODULE:FACTORY]")
    _add_arguments(forms.add_parser("store", help="check a session store", epilog=_epilog()))


def main(arguments: Sequence[str]) -> int:
    """Run the form `store` where the rest of `steersman conform` is not installed."""
    parser = argparse.ArgumentParser(prog="steersman conform store", epilog=_epilog())
    _add_arguments(parser)
    chosen = parser.parse_args(arguments)
    return int(chosen.run(chosen))


def _epilog() -> str:
    return f"The rules: {', '.join(rule_names())}."


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("factory", metavar="MODULE:FACTORY", help="a function that returns a new store")
    add("--skip", metavar="RULE", action="append", default=[], help="leave a rule out")
    add("--only", metavar="RULE", action="append", default=[], help="check this rule")
    add("--sessions", metavar="N", type=int, default=MANY, help=f"how many are many ({MANY})")
    add("--timeout", metavar="S", type=float, default=TIMEOUT, help=f"per rule ({TIMEOUT:g} s)")
    add("--json", metavar="FILE", type=Path, help="also write the report as JSON; - is stdout")
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    try:
        factory = _load(chosen.factory)
        report = asyncio.run(
            check(
                factory,
                skip=chosen.skip,
                only=chosen.only,
                sessions=chosen.sessions,
                timeout=chosen.timeout,
            )
        )
    except UsageError as error:
        complain(error)
        return CANNOT
    except KeyboardInterrupt:
        return INTERRUPTED
    text = json.dumps(report.data(), indent=2)
    if str(chosen.json) == "-":
        print(text)
    else:
        if chosen.json is not None:
            chosen.json.write_text(text + "\n", encoding="utf-8")
        print(printable(str(report)))
    return GOOD if report.is_good else BAD


def _load(name: str) -> MakeStore:
    """Return the factory that `module:factory` names; modules of this folder are found, too."""
    form = "a module and a function, as my_app.stores:make"
    found = imported("MODULE:FACTORY", name, form)
    if not callable(found):
        raise UsageError("MODULE:FACTORY", name, "a function that returns a store")
    factory: Callable[[], object] = found
    return factory
