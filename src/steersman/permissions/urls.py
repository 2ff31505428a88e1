"""Hosts of URLs compared with `WebFetch(domain:...)` rules.

An allow rule covers only plain URLs: `http://host/...` or `https://host/...` with an ASCII host and
without user name, backslash, white space or percent-encoded host. Deny and ask rules read all
others as the CLI's URL parser does (WHATWG), and cover what remains unreadable.
"""

from __future__ import annotations

import functools
import ipaddress
import re
import unicodedata
from collections.abc import Iterator
from typing import TypeGuard
from urllib.parse import unquote

from steersman.permissions.shell import CommandPattern, Match

LIMIT = 16 * 1024
"""Characters; a longer URL is not plain."""
HOST_LIMIT = 253
"""Characters; no name of a host is longer."""
LONGEST_READ = 4 * HOST_LIMIT
"""Characters of a host in other encodings; every rule but an approval covers a longer one."""
LAST_PORT = 0xFFFF
ADDRESS_PARTS = 4
BYTE = 256

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_PLAIN = re.compile(
    rf"https?://(?P<host>{_LABEL}(?:\.{_LABEL})*)(?::(?P<port>[0-9]{{1,5}}))?"
    r"(?:[/?#][^\s\\\x00-\x20\x7f-\x9f\ud800-\udfff]*)?",
    re.IGNORECASE | re.ASCII,
)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE | re.ASCII)
_AUTHORITY = re.compile(r"[/\\]*([^/\\?#]*)")
_PORT = re.compile(r":[^:\]]*\Z")
# The parser removes these from the whole text.
_REMOVED = str.maketrans("", "", "\t\n\r")
# White space and control characters at both ends are ignored.
_ENDS = "".join(map(chr, range(0x21)))
_DOTS = str.maketrans("\u3002\uff0e\uff61", "...")


def grants_url(domain: str, url: object) -> Match:
    """Return whether an allow rule for `domain` certainly covers the URL."""
    host = _plain_host(url) if _is_short(url) else None
    wanted = domain.lower()
    if host is None or "*" in wanted.removeprefix("*."):
        return Match.NO
    fits = host.endswith(wanted[1:]) if wanted.startswith("*.") else host == wanted
    return Match.YES if fits else Match.NO


def stops_url(domain: str, url: object) -> Match:
    """Return whether a deny or ask rule for `domain` covers the URL: `MAYBE` if it is not plain."""
    if not _is_short(url):
        return Match.YES
    host = _plain_host(url)
    pattern = _host_pattern(domain)
    if host is not None and "xn--" not in host:
        return Match.YES if pattern.fits(host) else Match.NO
    hosts = _hosts(url)
    return Match.YES if hosts is None or any(map(pattern.fits, hosts)) else Match.MAYBE


def _is_short(url: object) -> TypeGuard[str]:
    return isinstance(url, str) and len(url) <= LIMIT


@functools.lru_cache(maxsize=64)
def _plain_host(url: str) -> str | None:
    found = _PLAIN.fullmatch(url)
    if found is None or int(found["port"] or 0) > LAST_PORT or len(found["host"]) > HOST_LIMIT:
        return None
    host = found["host"].lower()
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        # The parser reads such a host as an IPv4 address, in any base and with fewer parts.
        return host if host == _address(host) else None
    return host


@functools.lru_cache(maxsize=1024)
def _host_pattern(domain: str) -> CommandPattern:
    wanted = _mapped(domain).strip(".") if not domain.startswith("*.") else _mapped(domain)
    return CommandPattern(wanted, tuple(re.split(r"\*+", _address(wanted) or wanted)))


@functools.lru_cache(maxsize=64)
def _hosts(url: str) -> frozenset[str] | None:
    """Return the hosts that a URL parser may find, or None if one of them is too long."""
    found: set[str] = set()
    for host in _possible_hosts(url):
        if len(host) > LONGEST_READ:
            return None
        found.add(host)
    return frozenset(found)


def _possible_hosts(url: str) -> Iterator[str]:
    """Yield the hosts that a URL parser may find, without dots at the end."""
    text = url.strip(_ENDS).translate(_REMOVED)
    scheme = _SCHEME.match(text)
    # Without a scheme the text may be put behind `https:`.
    for rest in {text, text[scheme.end() :] if scheme else text}:
        found = _AUTHORITY.match(rest)
        authority = found[1] if found else ""
        with_port = authority.rpartition("@")[2]
        if len(with_port) > 4 * LONGEST_READ:
            # The name of a host is not as long, in any encoding.
            yield with_port
            return
        for written in {with_port, _PORT.sub("", with_port)}:
            host = _mapped(unquote(written, errors="replace")).rstrip(".")
            yield host
            yield _address(host) or host
            yield _decoded(host)


def _mapped(host: str) -> str:
    """Return a host in the form that names are compared in: NFKC, lower case, nothing invisible."""
    shown = (each for each in host.translate(_DOTS) if not _is_ignored(each))
    folded = unicodedata.normalize("NFKC", "".join(shown)).casefold()
    return unicodedata.normalize("NFKC", folded).translate(_DOTS)


def _is_ignored(character: str) -> bool:
    return not character.isascii() and (
        unicodedata.category(character) == "Cf"
        or character in "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0"
        or "\ufe00" <= character <= "\ufe0f"
        or "\U000e0100" <= character <= "\U000e01ef"
    )


def _decoded(host: str) -> str:
    """Return a host with its `xn--` labels decoded where that is possible."""
    return _mapped(".".join(map(_decoded_label, host.split("."))))


def _decoded_label(label: str) -> str:
    if not label.startswith("xn--"):
        return label
    try:
        return label[4:].encode("ascii").decode("punycode")
    except (UnicodeError, ValueError):
        return label


def _address(host: str) -> str:
    """Return the IP address that a URL parser reads in a host; empty if it is a name."""
    if host.startswith("["):
        try:
            return f"[{ipaddress.IPv6Address(host[1:-1]).compressed}]"
        except ValueError:
            return ""
    parts = host.split(".") if len(host) <= HOST_LIMIT else []
    if not parts or len(parts) > ADDRESS_PARTS or not all(map(_NUMBER.fullmatch, parts)):
        return ""
    try:
        *front, last = map(_number, parts)
    except ValueError:
        return ""
    if any(part >= BYTE for part in front) or last >= BYTE ** (ADDRESS_PARTS - len(front)):
        return ""
    value = last
    for at, part in enumerate(front, start=1):
        value += part * BYTE ** (ADDRESS_PARTS - at)
    return str(ipaddress.IPv4Address(value))


def _number(part: str) -> int:
    if part.startswith("0x"):
        return int(part[2:] or "0", 16)
    return int(part, 8) if len(part) > 1 and part.startswith("0") else int(part)
