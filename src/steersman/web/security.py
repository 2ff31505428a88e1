"""Which requests are let in, before their viewer is known. Headers in, refusals out.

A page of another site can send requests to this server, and with DNS rebinding even under its own
name. So the host must be one that the bridge was given, and the origin of a write must be it.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from steersman.errors import UsageError
from steersman.web.failures import Refusal

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")

READS = frozenset({"GET", "HEAD"})
ASKED_BEFORE = 3600
"""Seconds for which a browser remembers that a page of `origins=` may send requests."""
DEFAULT_PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443"}

_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "manifest-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
    "trusted-types": "dompurify steersman",
}

_ALL_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

PAGE_HEADERS = {
    **_ALL_HEADERS,
    "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in _POLICY.items()),
    "Cache-Control": "no-cache",
}
"""Headers of the page and its files."""

API_HEADERS = {
    **_ALL_HEADERS,
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}
"""Headers of all other answers."""


class Gate:
    """Lets requests in by their headers."""

    def __init__(self, hosts: Iterable[str] = LOOPBACK, origins: Iterable[str] = ()) -> None:
        self._hosts = frozenset(_host(name) for name in hosts)
        self._origins = frozenset(_origin(name) for name in origins)
        if not self._hosts:
            raise UsageError("hosts", "nothing", "at least one name of this server")

    def check(self, connection: HTTPConnection, *, is_page: bool) -> None:
        """Raise `Refusal` if the request may come from another site.

        `is_page` is true for the page and its files, which contain no data.
        """
        headers = connection.headers
        # Several Host headers are read differently by proxies and servers.
        hosts = headers.getlist("host")
        host = hosts[0].lower() if len(hosts) == 1 else ""
        if _without_port(host) not in self._hosts:
            words = "this server was not told that it has this name; see hosts= of the bridge"
            raise Refusal(403, "host_refused", words)
        is_read = connection.scope["type"] == "http" and connection.scope["method"] in READS
        if (is_page and is_read) or self._other_origin(connection):
            return
        site = headers.get("sec-fetch-site", "same-origin")
        if site != "same-origin":
            raise Refusal(403, "cross_site", "requests of other sites are refused")
        if not is_read:
            self._check_origin(connection, host)

    def headers_for(self, connection: HTTPConnection) -> dict[str, str]:
        """Return the headers that let a page of `origins=` read the answer; empty for others."""
        if not self._origins:
            return {}
        origin = self._other_origin(connection)
        if not origin:
            return {"Vary": "Origin"}
        return {
            "Vary": "Origin",
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Credentials": "true",
            "Access-Control-Allow-Methods": "GET, POST",
            "Access-Control-Allow-Headers": "Authorization, Content-Type, Last-Event-ID",
            "Access-Control-Max-Age": str(ASKED_BEFORE),
        }

    def _other_origin(self, connection: HTTPConnection) -> str:
        """Return the origin of the page that sends the request, if it is one of `origins=`."""
        origins = connection.headers.getlist("origin")
        is_known = len(origins) == 1 and origins[0].lower() in self._origins
        return origins[0] if is_known else ""

    def _check_origin(self, connection: HTTPConnection, host: str) -> None:
        origins = connection.headers.getlist("origin")
        if not origins:
            # A browser sends an Origin with every write and every WebSocket; a program has a token.
            if connection.headers.get("authorization", "").lower().startswith("bearer "):
                return
            words = "a request without Origin needs `Authorization: Bearer ...`"
            raise Refusal(403, "origin_refused", words)
        if len(origins) > 1 or not self._is_own(origins[0].lower(), connection, host):
            raise Refusal(403, "origin_refused", "requests of other origins are refused")

    def _is_own(self, origin: str, connection: HTTPConnection, host: str) -> bool:
        try:
            found = urlsplit(origin)
        except ValueError:
            return False
        # A proxy that ends TLS makes https into http, never the other way round.
        plain = connection.scope.get("scheme") in ("http", "ws")
        schemes = ("http", "https") if plain else ("https",)
        if found.scheme not in schemes or found.path or found.query or "@" in found.netloc:
            return False
        return _with_port(found.netloc, found.scheme) == _with_port(host, found.scheme)


def _without_port(host: str) -> str:
    if host.startswith("["):
        name, bracket, _ = host.partition("]")
        return name + bracket
    return host.partition(":")[0]


def _with_port(host: str, scheme: str) -> str:
    name = _without_port(host)
    port = host[len(name) :].removeprefix(":") or DEFAULT_PORTS[scheme]
    return f"{name}:{port}"


def _host(name: object) -> str:
    if not isinstance(name, str) or not name or "/" in name or name != _without_port(name):
        raise UsageError("hosts", name, "names such as example.org, without scheme and port")
    return name.lower()


def _origin(name: object) -> str:
    if not isinstance(name, str) or not name.startswith(("http://", "https://")):
        raise UsageError("origins", name, "origins such as https://example.org")
    return name.lower().rstrip("/")
