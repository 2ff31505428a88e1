"""Who looks at sessions and what they may do, and the login by a link that is printed once."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from starlette.requests import HTTPConnection

from steersman.web.failures import LOG, Refusal

Action: TypeAlias = Literal["see", "steer", "answer"]
Permission: TypeAlias = Callable[[Action, str], bool]

TOKEN_BYTES = 32
MONTH = 30 * 24 * 3600
MOST_LOGINS = 1000
MOST_LINKS = 1000
OWNER = "you"

PROTOCOL = "steersman"
"""The subprotocol of `/live`."""
_TOKEN = f"{PROTOCOL}-token."
"""Before a token among the subprotocols: a page cannot give other headers to a WebSocket."""


def may_everything(_act: Action, _session: str) -> bool:
    """Allow every act on every session."""
    return True


@dataclass(frozen=True, slots=True)
class Viewer:
    """A user who is logged in."""

    name: str
    """Becomes `by` of answers and of the sessions that the viewer begins."""
    may: Permission = may_everything
    """Whether the viewer may do this to the session; to begin one is `may("steer", "")`."""
    agents: Collection[str] | None = None
    """The names of the agents with which the viewer may begin sessions; None for all."""

    def is_allowed(self, act: Action, session: str) -> bool:
        """Whether `may` allows this; if it raises, nothing is allowed."""
        try:
            return bool(self.may(act, session))
        except Exception:  # noqa: BLE001 - the caller's own code; a guard fails closed
            LOG.exception("may() of the viewer %s failed", self.name)
            return False


class Authenticate(Protocol):
    """Finds out who sends a request; `None` is refused with 401."""

    async def __call__(self, connection: HTTPConnection, /) -> Viewer | None:
        """Return the viewer of a request, from its cookies or headers."""
        ...


class LinkLogin:
    """The login of a bridge without `authenticate=`: a bearer token, and links.

    Each link works once and gives the page a token of its own. Not a cookie: browsers send these to
    every port of a host. Hashes of the tokens are kept in `file`, so that a page stays logged in
    when the server is started again.
    """

    def __init__(
        self, file: Path, token: str | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.token = token or secrets.token_urlsafe(TOKEN_BYTES)
        """For programs: `Authorization: Bearer TOKEN`."""
        self._file = file
        self._clock = clock
        self._links: dict[str, bool] = {}
        """The hashes of the links, and whether each was used."""
        self._logins = _read(file)
        """The hashes of the tokens of pages, and when each ends."""
        self._viewer = Viewer(OWNER)

    async def __call__(self, connection: HTTPConnection) -> Viewer | None:
        """Return the owner for the token of programs, or for one that a link has given."""
        given = _token_of(connection)
        # Bytes: comparing texts with characters beyond ASCII raises.
        if hmac.compare_digest(given.encode(), self.token.encode()):
            return self._viewer
        return self._viewer if self._logins.get(_hash(given), 0.0) > self._clock() else None

    def link(self) -> str:
        """Return the token of a new link, which works once."""
        token = secrets.token_urlsafe(TOKEN_BYTES)
        self._links[_hash(token)] = False
        while len(self._links) > MOST_LINKS:
            del self._links[next(iter(self._links))]
        return token

    def log_in(self, link: str) -> str:
        """Return the token of a page, for the token of a link. Raises `Refusal`."""
        known = _hash(link)
        if known not in self._links:
            raise Refusal(401, "link_unknown", "this link is not known; use the one printed last")
        if self._links[known]:
            words = "this link was used before; run the command again for a new one"
            raise Refusal(401, "link_used", words)
        self._links[known] = True
        token = secrets.token_urlsafe(TOKEN_BYTES)
        self._logins[_hash(token)] = self._clock() + MONTH
        self._write()
        return token

    def log_out(self, connection: HTTPConnection) -> None:
        """Forget the token of the page that sends the request."""
        self._logins.pop(_hash(_token_of(connection)), None)
        self._write()

    def _write(self) -> None:
        now = self._clock()
        kept = {name: expires for name, expires in self._logins.items() if expires > now}
        self._logins = dict([*kept.items()][-MOST_LOGINS:])
        part = self._file.with_suffix(".new")
        # Without the file a viewer must log in again after a restart, and nothing else.
        with suppress(OSError):
            number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(number, "w", encoding="ascii") as file:
                json.dump(self._logins, file)
            part.replace(self._file)


def _token_of(connection: HTTPConnection) -> str:
    """Return the token of a request; empty if it has none."""
    kind, _, given = connection.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return given.strip()
    offered = connection.headers.get("sec-websocket-protocol", "").split(",")
    found = (each.strip() for each in offered)
    return next((each.removeprefix(_TOKEN) for each in found if each.startswith(_TOKEN)), "")


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _read(file: Path) -> dict[str, float]:
    try:
        found = json.loads(file.read_text(encoding="ascii"))
        return {str(name): float(expires) for name, expires in found.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}
