"""`steersman asks`: the inbox of a store, for users and scripts."""

from __future__ import annotations

import asyncio
import getpass
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from steersman import _json
from steersman._terminal import exact, one_line
from steersman.cli.output import complain, warn_if_ctrl_c_is_ignored
from steersman.cli.parsers import STORE_FORMS, STORE_VARIABLE
from steersman.cli.statuses import COMPLETED, FAILED, MISUSE
from steersman.errors import AskError, StoreError, UsageError
from steersman.inbox import AskOutcome, Change
from steersman.permissions import Allow, Ask, Deny
from steersman.permissions.json_form import answer_from_json, answer_to_json, ask_to_json

if TYPE_CHECKING:
    from steersman.inbox import StoredInbox
    from steersman.permissions.asks import AskKind
    from steersman.stores import PostgresStore, SqliteStore

SHOWN = 60
"""How many characters of an input are in the line of an ask."""
SQLITE = "sqlite://"
POSTGRES = ("postgresql://", "postgres://")


def open_store(url: str) -> SqliteStore | PostgresStore:
    """Return the store at `url`. Raises `UsageError` if there can be none."""
    from steersman.stores import PostgresStore, SqliteStore  # noqa: PLC0415 - slow to import

    if not url:
        raise UsageError(
            "--store", "nothing", STORE_FORMS, hint=f"pass --store, or set {STORE_VARIABLE}"
        )
    if url.startswith(POSTGRES):
        return PostgresStore(url)
    path = Path(url.removeprefix(SQLITE))
    if "://" in str(path) or (url.startswith(SQLITE) and not path.is_absolute()):
        raise UsageError("--store", "another form", STORE_FORMS)
    if not path.is_file():
        # A new file would be an empty inbox, and a misspelled path would look like one.
        raise UsageError("--store", str(path.absolute()), "the path of a file that exists")
    return SqliteStore(path)


def list_asks(
    *, store: str, is_json: bool, session: str | None, kind: AskKind | None, assignee: str | None
) -> int:
    """Print the open asks."""

    async def act(inbox: StoredInbox) -> None:
        for ask in await inbox.list(session=session, kind=kind, assignee=assignee):
            print(as_json(ask) if is_json else as_line(ask))

    return _with_inbox(store, act)


def show_ask(*, store: str, is_json: bool, ask: str, session: str | None) -> int:
    """Print one ask."""

    async def act(inbox: StoredInbox) -> None:
        found = await inbox.get(ask, session=session)
        print(as_json(found) if is_json else as_page(found))

    return _with_inbox(store, act)


def answer_ask(
    *,
    store: str,
    is_json: bool,
    ask: str,
    session: str | None,
    by: str | None,
    seen: str | None,
    stdin: TextIO,
    **given: Any,
) -> int:
    """Answer an ask with the one of `given` that is set."""

    async def act(inbox: StoredInbox) -> None:
        found = await inbox.get(ask, session=session)
        name = by if by is not None else _login()
        outcome = await inbox.answer(found, _given(found, stdin, **given), by=name, seen=seen)
        print(as_json(found, outcome) if is_json else one_line(f"{found.id}: answered by {name}"))

    return _with_inbox(store, act)


def watch_asks(*, store: str, is_json: bool) -> int:
    """Print what happens to asks."""

    async def act(inbox: StoredInbox) -> None:
        warn_if_ctrl_c_is_ignored()
        async with aclosing(inbox.watch()) as changes:
            async for change in changes:
                print(change_as_json(change) if is_json else change_as_line(change), flush=True)

    return _with_inbox(store, act)


def _with_inbox(url: str, act: Callable[[StoredInbox], Awaitable[None]]) -> int:
    async def run() -> None:
        async with aclosing(open_store(url)) as store:
            await act(store.inbox())

    try:
        asyncio.run(run())
    except AskError as error:
        complain(error)
        return FAILED
    except (UsageError, StoreError) as error:
        complain(error)
        return MISUSE
    return COMPLETED


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        # A container may have no name for its user.
        raise UsageError("--by", "nothing", "who answers: this user has no name") from None


def _given(
    ask: Ask, stdin: TextIO, *, allow: bool, deny: str | None, choose: str | None, answer: str
) -> object:
    if allow:
        return Allow()
    if deny is not None:
        return Deny(deny)
    if choose is not None:
        return ask.questions.answer(choose)
    return answer_from_json(stdin.read() if answer == "-" else answer)


def as_line(ask: Ask) -> str:
    """Return an ask as one line: its id, kind and tool, and the beginning of its input."""
    text = json.dumps(_asked(ask), ensure_ascii=False)
    shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
    words = [ask.id, ask.kind, ask.tool_name or "-", _date(ask.created), shown]
    return "  ".join(one_line(exact(word)) for word in words)


def as_page(ask: Ask) -> str:
    """Return all of an ask, on several lines."""
    fields = {
        "ask": ask.id,
        "kind": ask.kind,
        "tool": ask.tool_name,
        "session": ask.session,
        "turn": ask.turn,
        "subagent": ask.agent,
        "since": _date(ask.created),
        "expires": None if ask.expires is None else _date(ask.expires),
        "assignee": ask.assignee,
        "before": _earlier(ask),
        "digest": ask.digest,
    }
    lines = [f"{name + ':':10}{one_line(exact(value))}" for name, value in fields.items() if value]
    return "\n".join([*lines, exact(json.dumps(_asked(ask), indent=2, ensure_ascii=False))])


def _earlier(ask: Ask) -> str | None:
    if ask.earlier is None:
        return None
    answer, by, at = ask.earlier.answer, ask.earlier.by, _date(ask.earlier.at)
    match answer:
        case Allow():
            how = "allowed"
        case Deny(message=why):
            how = f"denied ({why})"
        case _:
            how = "answered"
    return f"{how} by {by}, {at}; whether the call ran then is not known"


def as_json(ask: Ask, outcome: AskOutcome | None = None) -> str:
    """Return an ask, with how it ended, as JSON on one line."""
    return _line(_fields(ask, outcome))


def change_as_json(change: Change) -> str:
    """Return a change, with its ask, as JSON on one line."""
    return _line({"change": change.what, **_fields(change.ask, change.outcome)})


def change_as_line(change: Change) -> str:
    """Return a change as one line."""
    by = "" if change.outcome is None else f" by {change.outcome.by}"
    return one_line(f"{change.what}{by}  ") + as_line(change.ask)


def _fields(ask: Ask, outcome: AskOutcome | None) -> dict[str, Any]:
    fields = {**_json.loads(ask_to_json(ask)), "digest": ask.digest}
    if outcome is not None:
        fields |= {"outcome": outcome.how, "by": outcome.by, "answer": _outcome_answer(outcome)}
    return fields


def _outcome_answer(outcome: AskOutcome) -> object:
    if outcome.answer is None:
        return None
    try:
        return _json.loads(answer_to_json(outcome.answer))
    except UsageError:
        return None


def _line(fields: dict[str, Any]) -> str:
    # ASCII, so that no terminal and no encoding matters.
    return json.dumps(fields)


def _asked(ask: Ask) -> object:
    return ask.tool_input if ask.tool_name else ask.payload.raw


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
