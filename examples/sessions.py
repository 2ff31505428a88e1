"""Stored sessions: list, read, search, rename, fork, and copy to a store.

Run it with `python examples/sessions.py [command]` in a project where you have used the CLI:

    list                    the newest sessions
    show ID                 the conversation
    search WORDS            where something was said
    rename ID TITLE         a title that the CLI shows too
    fork ID                 a copy to resume
    save ID FILE            a copy in an SQLite store
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from steersman.errors import SteersmanError
from steersman.sessions import SessionInfo, Sessions, StoredMessage
from steersman.stores import SqliteStore


def line(info: SessionInfo) -> str:
    """Return a session as one line, with the days until the CLI deletes it."""
    left = "" if info.expires is None else f" ({(info.expires / 1000 - time.time()) / 86400:.0f} d)"
    return f"{info.session_id}  {info.summary}{left}"


def text(message: StoredMessage) -> str:
    """Return what was said."""
    content = message.message.get("content", "")
    if isinstance(content, str):
        return content
    return " ".join(block.get("text", f"[{block['type']}]") for block in content)


def save(sessions: Sessions, session_id: str, path: str) -> list[str]:
    """Copy a session to a store."""
    count = sessions.copy_to(Sessions(SqliteStore(path), project="."), session_id)
    return [f"{count} entries copied to {path}"]


def run(sessions: Sessions, command: str, session_id: str = "", *words: str) -> list[str]:
    """Run a command, and return what to print."""
    match command:
        case "list":
            found = [line(each) for each in sessions.list(limit=20)]
        case "show":
            found = [f"{each.type}: {text(each)}" for each in sessions.messages(session_id)]
        case "search":
            hits = sessions.search(" ".join((session_id, *words)))
            found = [f"{hit.session_id}  {hit.snippet}" for hit in hits]
        case "rename":
            sessions.rename(session_id, " ".join(words))
            found = [line(sessions.info(session_id))]
        case "fork":
            found = [f"resume with {sessions.fork(session_id)}"]
        case "save" if len(words) == 1:
            found = save(sessions, session_id, words[0])
        case _:
            found = [str(__doc__)]
    return found


def main(arguments: Sequence[str]) -> int:
    """Run a command and print what it found."""
    try:
        print("\n".join(run(Sessions(project="."), *(arguments or ["list"]))))
    except SteersmanError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
