"""`steersman sessions`: the stored conversations of the CLI, or of a store."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from steersman import _json
from steersman._terminal import one_line, printable
from steersman.cli.asks import open_store
from steersman.cli.output import complain, warn_if_ctrl_c_is_ignored
from steersman.cli.page import Page, console_for
from steersman.cli.run_json import line_of
from steersman.cli.statuses import COMPLETED, INTERRUPTED, MISUSE
from steersman.errors import UsageError
from steersman.sessions import Hit, SessionInfo, Sessions, StoredMessage
from steersman.sessions.driving import run_in_private_loop
from steersman.transcripts import to_html, to_json, to_markdown
from steersman.transcripts.export import parts_of
from steersman.transcripts.keys import is_session_id

FORMS = {"markdown": to_markdown, "html": to_html, "json": to_json}
LABELS = {"user": "you", "assistant": "claude"}
PARTS = {"call": "tool", "result": "result", "thinking": "thought"}
MOST_LINES = 12
"""How many lines of a tool's input or result are shown, without --whole."""


def in_place(act: Callable[..., int | None]) -> Callable[..., int]:
    """Return the function that opens the `Sessions` of a place and calls `act` with it."""

    @wraps(act)
    def run(
        *, project: str, is_all: bool, config: str | None, store: str | None, **words: Any
    ) -> int:
        opened = None if store is None else open_store(store)
        where = None if is_all and store is None else project
        try:
            return act(Sessions(opened, config=config, project=where), **words) or COMPLETED
        finally:
            if opened is not None:
                run_in_private_loop(opened.aclose())

    return run


def find_session(sessions: Sessions, given: str) -> str:
    """Return the id that `given` is or begins. Raises `UsageError`."""
    if is_session_id(given):
        return given
    found = [
        each.session_id
        for each in sessions.list(archived=True)
        if given and each.session_id.startswith(given.lower())
    ]
    if len(found) == 1:
        return found[0]
    many = f"more of it: {len(found)} conversations begin with it"
    none = "the id of a conversation, or its beginning; `steersman sessions list --all` lists them"
    raise UsageError("SESSION", given, many if found else none)


@in_place
def list_sessions(sessions: Sessions, *, limit: int, archived: bool, is_json: bool) -> None:
    """List conversations, the newest first."""
    found = sessions.list(limit=limit, archived=archived)
    if is_json:
        for each in found:
            print(value_json(each))
        return
    print_list(console_for(sys.stdout), found, is_terminal=sys.stdout.isatty())


@in_place
def show_messages(
    sessions: Sessions,
    *,
    session: str,
    last: int | None,
    agent: str | None,
    whole: bool,
    is_json: bool,
) -> None:
    """Show the messages of a conversation."""
    page = Page(console_for(sys.stdout))
    found = sessions.messages(find_session(sessions, session), last=last, agent=agent)
    for message in found:
        if is_json:
            print(message_json(message))
        else:
            show_message(page, message, is_whole=whole)


@in_place
def search(sessions: Sessions, *, text: list[str], limit: int, is_json: bool) -> None:
    """Find messages that have all words of TEXT, the best first.

    Words in double quotes must follow each other. Case and accents do not matter.
    """
    hits = sessions.search(" ".join(text), limit=limit)
    for line in map(value_json, hits) if is_json else as_rows(hits):
        print(line)


@in_place
def follow(sessions: Sessions, *, session: str, last: int, is_json: bool) -> int:
    """Show the last messages of a conversation, and further ones until you press Ctrl-C."""
    found = find_session(sessions, session)
    warn_if_ctrl_c_is_ignored()
    with suppress(KeyboardInterrupt):
        asyncio.run(_tail(sessions, found, last, is_json=is_json))
        return COMPLETED
    return INTERRUPTED


async def _tail(sessions: Sessions, session_id: str, last: int, *, is_json: bool) -> None:
    page = Page(console_for(sys.stdout))
    known = [each.uuid for each in await asyncio.to_thread(_messages, sessions, session_id)]
    older = set(known[: max(0, len(known) - last)])
    async for entry in sessions.follow(session_id):
        if entry.type not in ("user", "assistant") or entry.uuid in older or entry.is_sidechain:
            continue
        message = StoredMessage(entry, session_id)
        if is_json:
            print(message_json(message), flush=True)
        else:
            show_message(page, message, is_whole=False)


def _messages(sessions: Sessions, session_id: str) -> list[StoredMessage]:
    return list(sessions.messages(session_id, through_compaction=True))


@in_place
def rename(sessions: Sessions, *, session: str, title: str, force: bool) -> None:
    """Give a conversation a title."""
    sessions.rename(find_session(sessions, session), title, force=force)


@in_place
def tag(sessions: Sessions, *, session: str, tag: str | None, force: bool) -> None:
    """Give a conversation a tag; without TAG, remove it."""
    sessions.tag(find_session(sessions, session), tag, force=force)


@in_place
def fork(sessions: Sessions, *, session: str, up_to: str | None, title: str | None) -> None:
    """Copy a conversation, and write the new id, for `steersman run --resume`."""
    print(sessions.fork(find_session(sessions, session), up_to=up_to, title=title))


@in_place
def export(
    sessions: Sessions,
    *,
    session: str,
    form: Literal["markdown", "html", "json"],
    output: str | None,
) -> None:
    """Write a conversation as Markdown, HTML or JSON. An existing file is not replaced."""
    found = find_session(sessions, session)
    chunks = FORMS[form](sessions.messages(found), sessions.info(found))
    if output is None:
        is_terminal = sys.stdout.isatty()
        for chunk in chunks:
            sys.stdout.write(printable(chunk) if is_terminal else chunk)
        return
    try:
        file = Path(output).open("x", encoding="utf-8")  # noqa: SIM115 - closed below
    except OSError as error:
        allowed = f"the path of a new file ({error.strerror})"
        raise UsageError("--output", output, allowed) from None
    with closing(file):
        file.writelines(chunks)


@in_place
def remove(sessions: Sessions, *, session: list[str], yes: bool, force: bool) -> int:
    """Remove conversations, with their subagents. Asks first."""
    found = [sessions.info(find_session(sessions, each)) for each in session]
    if not yes and not sys.stdin.isatty():
        complain("there is no terminal to ask on; pass --yes to agree beforehand")
        return MISUSE
    for each in found:
        name = one_line(f"{each.session_id} {each.summary}")
        if yes or _confirms(f"Remove {name}?"):
            sessions.delete(each.session_id, force=force)
            print(f"removed {name}", file=sys.stderr)
    return COMPLETED


def _confirms(prompt: str) -> bool:
    """Ask on the terminal; an ended input is Ctrl-C."""
    print(f"{prompt} [y/N]: ", end="", file=sys.stderr, flush=True)
    if not (typed := sys.stdin.readline()):
        raise KeyboardInterrupt
    return typed.strip().lower() in ("y", "yes")


def print_list(console: Console, found: Iterable[SessionInfo], *, is_terminal: bool) -> None:
    """Print sessions as a table on a terminal, else as one line each."""
    if not is_terminal:
        for each in found:
            print("  ".join(_cells(each)))
        return
    table = Table(box=None, pad_edge=False)
    for name in ("session", "changed", "tag", "title"):
        table.add_column(name, overflow="fold")
    for each in found:
        table.add_row(*map(Text, _cells(each)))
    console.print(table)


def _cells(info: SessionInfo) -> list[str]:
    changed = time.strftime("%Y-%m-%d %H:%M", time.localtime(info.last_modified / 1000))
    return [info.session_id, changed, one_line(info.tag or "-"), one_line(info.summary)]


def as_rows(hits: Iterable[Hit]) -> Iterator[str]:
    """Yield one line for each hit of a search."""
    for each in hits:
        yield one_line(f"{each.session_id}  {each.timestamp[:16]}  {each.snippet}")


def value_json(value: SessionInfo | Hit) -> str:
    """Return a session or a hit as one line of JSON."""
    return json.dumps(asdict(value))


def message_json(message: StoredMessage) -> str:
    """Return the line of a session file, as ASCII."""
    return line_of(_json.loads(message.raw))


def show_message(page: Page, message: StoredMessage, *, is_whole: bool) -> None:
    """Write a message, part by part."""
    label = LABELS.get(message.type, message.type)
    for part in parts_of(message):
        if part.kind == "text":
            page.line(label, part.text)
            continue
        lines = part.text.splitlines()
        rest = len(lines) - MOST_LINES
        if rest > 0 and not is_whole:
            lines = [*lines[:MOST_LINES], f"... {rest} more lines: --whole shows them"]
        name = part.label.removeprefix("Tool call: ")
        page.line(PARTS.get(part.kind, part.kind), "\n".join([name, *lines]))
