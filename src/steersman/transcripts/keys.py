"""How a session store names a conversation and its parts; the same names as the official SDKs."""

# Without `from __future__ import annotations`, with which a TypedDict does not know at run time
# which keys are required.

import re
from typing import Any, NotRequired, Required, TypedDict

LONGEST_KEY = 200
"""Up to this many characters, the name of a project's folder is the whole path."""

LAST_OF_ONE_UNIT = 0xFFFF
"""Characters above this one take two units of UTF-16."""

BASE_36 = "0123456789abcdefghijklmnopqrstuvwxyz"

_SESSION_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_NOT_IN_KEYS = re.compile(r"[^A-Za-z0-9]")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
# Unicode categories of characters that are not seen: control, format (which has the direction
# marks), surrogates, private use.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co"})


class SessionKey(TypedDict):
    """Names a session's entries in a store."""

    project_key: str
    """The working directory, as the CLI writes it in the name of its folder."""
    session_id: str
    subpath: NotRequired[str]
    """A part of the session, such as `subagents/agent-<id>`; always joined by `/`."""


class SessionListSubkeysKey(TypedDict):
    """Names a session, to ask for its parts."""

    project_key: str
    session_id: str


class SessionStoreEntry(TypedDict, total=False):
    """One entry: a line of the CLI's file, with whatever further keys it has."""

    type: Required[str]
    uuid: str
    timestamp: str


class SessionStoreListEntry(TypedDict):
    """A session in a store, and when it was last written to."""

    session_id: str
    mtime: int
    """Milliseconds since the epoch, by the clock of the store."""


class SessionSummaryEntry(TypedDict):
    """A summary that a store keeps beside a session, so that a list reads no entries."""

    session_id: str
    mtime: int
    """As in `SessionStoreListEntry`; a row that is older than that one is made anew."""
    data: dict[str, Any]
    """What `fold_session_summary` returned. A store keeps it as it is."""


def project_key(directory: str, *, compose: bool = True) -> str:
    """Return the name of the folder in which the CLI keeps the sessions of `directory`.

    `directory` is a real path: links are resolved by the caller. The path is composed (NFC), as in
    the official SDKs. On Linux the CLI 2.1.325 does not do that: the folder of a path with
    decomposed characters is found with `compose=False`.
    """
    import unicodedata  # noqa: PLC0415 - rarely needed

    path = unicodedata.normalize("NFC", directory) if compose else directory
    key = "".join("-" * _utf16_length(each) if _NOT_IN_KEYS.match(each) else each for each in path)
    return key if len(key) <= LONGEST_KEY else f"{key[:LONGEST_KEY]}-{_hash(path)}"


def is_session_id(text: str) -> bool:
    """Whether `text` is a UUID, as the CLI names its sessions."""
    return _SESSION_ID.fullmatch(text) is not None


def is_safe_subpath(subpath: str) -> bool:
    """Whether `subpath` names a part of a session, and no place outside of it."""
    if not subpath or "\\" in subpath or ":" in subpath or _CONTROLS.search(subpath):
        return False
    return all(part.strip(" .") for part in subpath.split("/"))


def clean_title(text: str) -> str:
    """Return `text` on one line, without control, direction and other unseen characters."""
    return " ".join(without_unseen(text).split())


def without_unseen(text: str) -> str:
    """Return `text` on one line, without unseen characters; spaces stay as they are."""
    if text.isprintable():
        return text.strip()
    import unicodedata  # noqa: PLC0415 - rarely needed

    spaced = (" " if each.isspace() else each for each in text)
    return "".join(e for e in spaced if unicodedata.category(e) not in _UNSEEN).strip()


def _hash(path: str) -> str:
    """Return the hash of a path, as JavaScript computes it: 31 times, over UTF-16, in 32 bits."""
    units = path.encode("utf-16-le", "surrogatepass")
    total = 0
    for at in range(0, len(units), 2):
        total = (total * 31 + units[at] + 256 * units[at + 1]) & 0xFFFFFFFF
    number = abs(total - (1 << 32) if total >= 1 << 31 else total)
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = BASE_36[digit] + digits
    return digits or "0"


def _utf16_length(character: str) -> int:
    return 2 if ord(character) > LAST_OF_ONE_UNIT else 1
