"""`steersman sessions`: the stored conversations of the CLI, or of a store."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Literal, TypeVar

import click

from steersman._terminal import one_line, printable
from steersman.cli.asks import open_store
from steersman.cli.commands import SUMMARIES
from steersman.cli.output import complain, warn_if_ctrl_c_is_ignored
from steersman.cli.page import Page, console_for
from steersman.cli.session_text import (
    as_rows,
    message_json,
    print_list,
    show_message,
    value_json,
)
from steersman.cli.statuses import COMPLETED, INTERRUPTED, MISUSE
from steersman.errors import UsageError
from steersman.sessions import Sessions, StoredMessage
from steersman.sessions.driving import run_in_private_loop
from steersman.transcripts import to_html, to_json, to_markdown
from steersman.transcripts.keys import is_session_id

F = TypeVar("F", bound=Callable[..., Any])

PLACES = (
    click.option(
        "--project",
        metavar="DIR",
        type=click.Path(),
        default=".",
        show_default="the current directory",
        help="Conversations of this directory, and of its other worktrees.",
    ),
    click.option("--all", "is_all", is_flag=True, help="Conversations of all directories."),
    click.option(
        "--config", metavar="DIR", type=click.Path(), help="Another directory than ~/.claude."
    ),
    click.option("--store", metavar="URL", help="A session store, as for `steersman asks`."),
)
FORMS = {"markdown": to_markdown, "html": to_html, "json": to_json}
is_json = click.option("--json", "is_json", is_flag=True, help="JSON, one object per line.")
force = click.option("--force", is_flag=True, help="Even while a CLI has it open.")


def in_place(act: F) -> F:
    """Add the options that name where the conversations are; `act` gets the `Sessions`."""

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

    run.__doc__ = act.__doc__
    run.__name__ = act.__name__
    # Options that decorate `act` itself.
    run.__click_params__ = getattr(act, "__click_params__", [])  # type: ignore[attr-defined] # click's own attribute
    for option in reversed(PLACES):
        run = option(run)
    return run  # type: ignore[return-value] # click calls it by keyword


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


@click.group("sessions", short_help=SUMMARIES["sessions"])
def command() -> None:
    """Stored conversations: list, read, search, follow, rename, tag, fork, export and remove them.

    No CLI is started. SESSION is the id of a conversation, or the beginning of it.
    """


@command.command("list")
@in_place
@click.option("--limit", metavar="N", type=int, default=20, show_default=True)
@click.option("--archived", is_flag=True, help="Also those that were archived.")
@is_json
def list_(sessions: Sessions, *, limit: int, archived: bool, is_json: bool) -> None:
    """List conversations, the newest first."""
    found = sessions.list(limit=limit, archived=archived)
    if is_json:
        for each in found:
            print(value_json(each))
        return
    print_list(console_for(sys.stdout), found, is_terminal=sys.stdout.isatty())


@command.command("show")
@in_place
@click.argument("session")
@click.option("--last", metavar="N", type=int, help="Only the last messages.")
@click.option("--agent", metavar="ID", help="Those of a subagent.")
@click.option("--whole", is_flag=True, help="Also all lines of what tools were given and gave.")
@is_json
def show(
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


@command.command("search")
@in_place
@click.argument("text", nargs=-1, required=True)
@click.option("--limit", metavar="N", type=int, default=20, show_default=True)
@is_json
def search(sessions: Sessions, *, text: tuple[str, ...], limit: int, is_json: bool) -> None:
    """Find messages that have all words of TEXT, the best first.

    Words in double quotes must follow each other. Case and accents do not matter.
    """
    hits = sessions.search(" ".join(text), limit=limit)
    for line in map(value_json, hits) if is_json else as_rows(hits):
        print(line)


@command.command("tail")
@in_place
@click.argument("session")
@click.option("--last", metavar="N", type=int, default=5, show_default=True)
@is_json
def tail(sessions: Sessions, *, session: str, last: int, is_json: bool) -> int:
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


@command.command("rename")
@in_place
@click.argument("session")
@click.argument("title")
@force
def rename(sessions: Sessions, *, session: str, title: str, force: bool) -> None:
    """Give a conversation a title."""
    sessions.rename(find_session(sessions, session), title, force=force)


@command.command("tag")
@in_place
@click.argument("session")
@click.argument("tag", required=False)
@force
def tag(sessions: Sessions, *, session: str, tag: str | None, force: bool) -> None:
    """Give a conversation a tag; without TAG, remove it."""
    sessions.tag(find_session(sessions, session), tag, force=force)


@command.command("fork")
@in_place
@click.argument("session")
@click.option("--up-to", metavar="UUID", help="The last message to copy.")
@click.option("--title", metavar="TEXT", help="The title of the copy.")
def fork(sessions: Sessions, *, session: str, up_to: str | None, title: str | None) -> None:
    """Copy a conversation, and write the new id, for `steersman run --resume`."""
    print(sessions.fork(find_session(sessions, session), up_to=up_to, title=title))


@command.command("export")
@in_place
@click.argument("session")
@click.option("--format", "form", type=click.Choice(list(FORMS)), default="markdown")
@click.option("--output", "-o", metavar="FILE", type=click.Path(), help="By default stdout.")
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


@command.command("rm")
@in_place
@click.argument("session", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask first.")
@force
def remove(sessions: Sessions, *, session: tuple[str, ...], yes: bool, force: bool) -> int:
    """Remove conversations, with their subagents. Asks first."""
    found = [sessions.info(find_session(sessions, each)) for each in session]
    if not yes and not sys.stdin.isatty():
        complain("there is no terminal to ask on; pass --yes to agree beforehand")
        return MISUSE
    for each in found:
        name = one_line(f"{each.session_id} {each.summary}")
        if yes or click.confirm(f"Remove {name}?", err=True):
            sessions.delete(each.session_id, force=force)
            print(f"removed {name}", file=sys.stderr)
    return COMPLETED
