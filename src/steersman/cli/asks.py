"""`steersman asks`: the inbox of a store, for users and scripts."""

from __future__ import annotations

import argparse
import asyncio
import getpass
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

from steersman._terminal import one_line
from steersman.cli.ask_text import as_json, as_line, as_page, change_as_json, change_as_line
from steersman.cli.commands import Commands
from steersman.cli.output import warn_if_ctrl_c_is_ignored
from steersman.errors import AskError, StoreError, UsageError
from steersman.permissions import Allow, Deny
from steersman.permissions.json_form import answer_from_json

if TYPE_CHECKING:
    from steersman.inbox import StoredInbox
    from steersman.permissions import Ask
    from steersman.stores import PostgresStore, SqliteStore

DONE, NOT_OPEN, CANNOT, INTERRUPTED = 0, 1, 2, 130
VARIABLE = "STEERSMAN_STORE"
SQLITE = "sqlite://"
POSTGRES = ("postgresql://", "postgres://")
FORMS = "sqlite:///absolute/path, postgresql://user@host/database, or the path of a SQLite file"

Act = Callable[["StoredInbox", argparse.Namespace], Awaitable[None]]


def add_command(commands: Commands) -> None:
    """Add `steersman asks` and its actions."""
    asks = commands.add_parser("asks", help="list and answer the asks of a store")
    actions = asks.add_subparsers(required=True, metavar="action")
    listing = actions.add_parser("list", help="the open asks, the oldest first")
    listing.add_argument("--session", metavar="ID", help="only those of this conversation")
    listing.add_argument("--kind", choices=["permission", "question", "elicitation", "dialog"])
    listing.add_argument("--assignee", metavar="NAME")
    showing = actions.add_parser("show", help="one open ask, with its whole input")
    answering = actions.add_parser("answer", help="answer an ask; the first answer counts")
    for one in (showing, answering):
        one.add_argument("ask", metavar="ASK", help="the id of the ask")
        one.add_argument("--session", metavar="ID", help="if two conversations have this id")
    _add_answers(answering)
    watching = actions.add_parser("watch", help="print what happens, until you press Ctrl-C")
    acts = {listing: _list, showing: _show, answering: _answer, watching: _watch}
    for action, act in acts.items():
        action.add_argument("--store", metavar="URL", help=f"{FORMS}; default: ${VARIABLE}")
        action.add_argument("--json", action="store_true", help="JSON, one object per line")
        action.set_defaults(run=_run, act=act)


def _add_answers(parser: argparse.ArgumentParser) -> None:
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--allow", action="store_true", help="let the tool run")
    given.add_argument("--deny", metavar="TEXT", help="do not; the model reads the text")
    given.add_argument("--choose", metavar="TEXT", help="answer the one question of the ask")
    given.add_argument("--answer", metavar="JSON", help="an answer as JSON; - reads stdin")
    parser.add_argument("--by", metavar="NAME", help="who answers; default: your login name")
    parser.add_argument("--seen", metavar="DIGEST", help="refuse if this is not the ask's digest")


def open_store(url: str) -> SqliteStore | PostgresStore:
    """Return the store at `url`. Raises `UsageError` if there can be none."""
    from steersman.stores import PostgresStore, SqliteStore  # noqa: PLC0415 - slow to import

    if not url:
        raise UsageError("--store", "nothing", FORMS, hint=f"pass --store, or set {VARIABLE}")
    if url.startswith(POSTGRES):
        return PostgresStore(url)
    path = Path(url.removeprefix(SQLITE))
    if "://" in str(path) or (url.startswith(SQLITE) and not path.is_absolute()):
        raise UsageError("--store", "another form", FORMS)
    if not path.is_file():
        # A new file would be an empty inbox, and a misspelled path would look like one.
        raise UsageError("--store", str(path.absolute()), "the path of a file that exists")
    return SqliteStore(path)


def _run(chosen: argparse.Namespace) -> int:
    try:
        asyncio.run(_with_inbox(chosen.store or os.environ.get(VARIABLE, ""), chosen))
    except AskError as error:
        _complain(error)
        return NOT_OPEN
    except (UsageError, StoreError) as error:
        _complain(error)
        return CANNOT
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader, such as `head`, has enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return DONE


def _complain(error: Exception) -> None:
    print(*map(one_line, f"steersman: {error}".split("\n")), sep="\n", file=sys.stderr)


async def _with_inbox(url: str, chosen: argparse.Namespace) -> None:
    async with aclosing(open_store(url)) as store:
        act: Act = chosen.act
        await act(store.inbox(), chosen)


async def _list(inbox: StoredInbox, chosen: argparse.Namespace) -> None:
    asks = await inbox.list(session=chosen.session, kind=chosen.kind, assignee=chosen.assignee)
    for ask in asks:
        print(as_json(ask) if chosen.json else as_line(ask))


async def _show(inbox: StoredInbox, chosen: argparse.Namespace) -> None:
    ask = await inbox.get(chosen.ask, session=chosen.session)
    print(as_json(ask) if chosen.json else as_page(ask))


async def _answer(inbox: StoredInbox, chosen: argparse.Namespace) -> None:
    ask = await inbox.get(chosen.ask, session=chosen.session)
    by = chosen.by if chosen.by is not None else _login()
    outcome = await inbox.answer(ask, _given(ask, chosen), by=by, seen=chosen.seen)
    print(as_json(ask, outcome) if chosen.json else one_line(f"{ask.id}: answered by {by}"))


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        # A container may have no name for its user.
        raise UsageError("--by", "nothing", "who answers: this user has no name") from None


def _given(ask: Ask, chosen: argparse.Namespace) -> object:
    if chosen.allow:
        return Allow()
    if chosen.deny is not None:
        return Deny(chosen.deny)
    if chosen.choose is not None:
        return ask.questions.answer(chosen.choose)
    return answer_from_json(chosen.stdin.read() if chosen.answer == "-" else chosen.answer)


async def _watch(inbox: StoredInbox, chosen: argparse.Namespace) -> None:
    warn_if_ctrl_c_is_ignored()
    async with aclosing(inbox.watch()) as changes:
        async for change in changes:
            print(change_as_json(change) if chosen.json else change_as_line(change), flush=True)
