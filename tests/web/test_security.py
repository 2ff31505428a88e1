from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import HTTPConnection

from steersman.errors import UsageError
from steersman.web import limits
from steersman.web.failures import Refusal
from steersman.web.limits import Connections, WebLimits, Writes
from steersman.web.security import Gate


def connection(
    method: str = "GET", *, scheme: str = "http", kind: str = "http", **headers: str
) -> HTTPConnection:
    """A request with these headers; `_` in a name stands for `-`."""
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope: dict[str, Any] = {"type": kind, "scheme": scheme, "method": method, "headers": raw}
    return HTTPConnection(scope)


HERE = {"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:8000"}


@pytest.mark.parametrize(
    "headers",
    [
        HERE,
        {**HERE, "sec_fetch_site": "same-origin"},
        {"host": "localhost:8000", "origin": "http://localhost:8000"},
        {"host": "LOCALHOST:8000", "origin": "http://LocalHost:8000"},
        {"host": "[::1]:8000", "origin": "http://[::1]:8000"},
        {"host": "127.0.0.1:80", "origin": "http://127.0.0.1"},
        {"host": "127.0.0.1:8000", "authorization": "Bearer abc"},
        # A proxy that ends TLS talks to us without it.
        {"host": "127.0.0.1", "origin": "https://127.0.0.1"},
    ],
)
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_a_write_of_our_own_page_is_let_in(headers: dict[str, str], kind: str) -> None:
    Gate().check(connection("POST", kind=kind, **headers), is_page=False)


@pytest.mark.parametrize(
    ("code", "headers"),
    [
        ("host_refused", {"host": "evil.example", "origin": "http://evil.example"}),
        ("host_refused", {"host": "evil.example:8000", "origin": "http://evil.example:8000"}),
        ("host_refused", {"host": "127.0.0.1.evil.example", "origin": "http://127.0.0.1"}),
        ("host_refused", {"host": "", "origin": "http://127.0.0.1"}),
        ("host_refused", {"origin": "http://127.0.0.1"}),
        ("origin_refused", {"host": "127.0.0.1:8000"}),
        ("origin_refused", {"host": "127.0.0.1:8000", "authorization": "Basic abc"}),
        ("origin_refused", {"host": "127.0.0.1:8000", "origin": "null"}),
        ("origin_refused", {"host": "127.0.0.1:8000", "origin": "http://evil.example"}),
        ("origin_refused", {"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:9000"}),
        ("origin_refused", {"host": "127.0.0.1:8000", "origin": "http://localhost:8000"}),
        ("origin_refused", {"host": "127.0.0.1:8000", "origin": "ftp://127.0.0.1:8000"}),
        ("origin_refused", {"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:8000/x"}),
        ("origin_refused", {"host": "127.0.0.1:8000", "origin": "http://a@127.0.0.1:8000"}),
        ("origin_refused", {"host": "127.0.0.1:8000", "origin": "http://[evil"}),
        # A foreign page cannot set a token, but if one could, its Origin still counts.
        (
            "origin_refused",
            {"host": "127.0.0.1", "origin": "http://evil.example", "authorization": "Bearer a"},
        ),
        ("cross_site", {**HERE, "sec_fetch_site": "cross-site"}),
        ("cross_site", {**HERE, "sec_fetch_site": "same-site"}),
        ("cross_site", {**HERE, "sec_fetch_site": "none"}),
    ],
)
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_a_write_that_may_come_from_another_site_is_refused(
    code: str, headers: dict[str, str], kind: str
) -> None:
    with pytest.raises(Refusal) as refused:
        Gate().check(connection("POST", kind=kind, **headers), is_page=False)

    assert (refused.value.status, refused.value.code) == (403, code)


def test_reading_needs_the_host_and_no_other_site_but_no_origin() -> None:
    Gate().check(connection(host="127.0.0.1:8000"), is_page=False)

    for headers in (
        {"host": "evil.example"},
        {"host": "127.0.0.1", "sec_fetch_site": "cross-site"},
    ):
        with pytest.raises(Refusal):
            Gate().check(connection(**headers), is_page=False)


def test_the_page_may_be_opened_by_a_link_but_not_under_another_name() -> None:
    Gate().check(connection(host="127.0.0.1", sec_fetch_site="none"), is_page=True)

    with pytest.raises(Refusal):
        Gate().check(connection(host="evil.example"), is_page=True)


def test_two_hosts_or_two_origins_are_refused() -> None:
    twice = connection("POST", **HERE)
    twice.scope["headers"].append((b"origin", b"http://evil.example"))
    with pytest.raises(Refusal, match="other origins"):
        Gate().check(twice, is_page=False)

    both = connection("POST", **HERE)
    both.scope["headers"].append((b"host", b"evil.example"))
    both = HTTPConnection(both.scope)
    with pytest.raises(Refusal, match="name"):
        Gate().check(both, is_page=False)


def test_a_server_with_tls_refuses_a_page_without() -> None:
    plain = connection("POST", scheme="https", host="a.example", origin="http://a.example")

    with pytest.raises(Refusal):
        Gate(["a.example"]).check(plain, is_page=False)


def test_an_origin_that_the_bridge_was_told_is_let_in() -> None:
    gate = Gate(["api.example"], ["https://app.example/"])
    # As Chromium sends it from another site.
    sent = {"host": "api.example", "sec_fetch_site": "cross-site"}
    known, other = "https://app.example", "https://evil.example"

    for method in ("POST", "GET"):
        gate.check(connection(method, origin=known, **sent), is_page=False)
        with pytest.raises(Refusal, match="other sites"):
            gate.check(connection(method, origin=other, **sent), is_page=False)

    with pytest.raises(Refusal, match="this name"):
        gate.check(connection("POST", host="evil.example", origin=known), is_page=False)


def test_only_an_origin_that_the_bridge_was_told_may_read_answers() -> None:
    gate = Gate(["api.example"], ["https://app.example"])

    known = gate.headers_for(connection(host="api.example", origin="https://app.example"))
    other = gate.headers_for(connection(host="api.example", origin="https://evil.example"))
    closed = Gate().headers_for(connection(**HERE))

    assert known == {
        "Vary": "Origin",
        "Access-Control-Allow-Origin": "https://app.example",
        "Access-Control-Allow-Credentials": "true",
        "Access-Control-Allow-Methods": "GET, POST",
        "Access-Control-Allow-Headers": "Authorization, Content-Type, Last-Event-ID",
        "Access-Control-Max-Age": "3600",
    }
    assert other == {"Vary": "Origin"}
    assert closed == {}


@pytest.mark.parametrize("bad", ["", "http://a.example", "a.example:80", 7, "a/b"])
def test_a_host_is_a_name(bad: Any) -> None:
    with pytest.raises(UsageError, match="hosts"):
        Gate([bad])


def test_an_origin_has_a_scheme() -> None:
    with pytest.raises(UsageError, match="origins"):
        Gate(origins=["app.example"])
    with pytest.raises(UsageError, match="hosts"):
        Gate([])


def test_writes_are_counted_for_each_viewer_and_forgotten_after_a_minute() -> None:
    now = [0.0]
    writes = Writes(2, clock=lambda: now[0])
    writes.count("ann")
    now[0] = 10.0
    writes.count("ann")
    writes.count("bob")

    with pytest.raises(Refusal) as refused:
        writes.count("ann")
    now[0] = 60.0
    writes.count("ann")

    assert refused.value.status == 429
    assert refused.value.fields == {"retry_after": 50.0}


def test_connections_beyond_the_limit_are_refused_until_one_ends() -> None:
    connections = Connections(1, 1)
    with connections.one("ann"), pytest.raises(Refusal) as refused, connections.one("bob"):
        raise AssertionError("not reached")

    with connections.one("bob"):
        assert connections.count == 1
    assert (refused.value.status, refused.value.code) == (429, "too_many_connections")
    assert "1 connections are open" in refused.value.words


def test_one_viewer_leaves_connections_to_the_others() -> None:
    connections = Connections(3, 2)
    with connections.one("ann"), connections.one("ann"):
        with pytest.raises(Refusal, match="ann has 2 connections") as refused:
            connections.one("ann").__enter__()
        with connections.one("bob"):
            assert connections.count == 3

    assert connections.count == 0
    assert refused.value.status == 429


@pytest.mark.parametrize("bad", [{"body": 0}, {"idle": -1.0}, {"writes": True}, {"sessions": "3"}])
def test_limits_are_numbers_above_zero(bad: dict[str, Any]) -> None:
    ((name, value),) = bad.items()

    with pytest.raises(UsageError, match="a number above 0") as raised:
        WebLimits(**bad)

    assert raised.value.argument == name
    assert repr(value) in str(raised.value)


def test_limits_are_those_of_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs/web.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([\d,]+)", page, re.MULTILINE)

    told = {name: int(number.replace(",", "")) for name, number in rows}

    assert told == {each.name: getattr(WebLimits(), each.name) for each in fields(WebLimits)}


def test_who_has_not_written_for_longest_is_forgotten_first() -> None:
    writes = Writes(1, clock=lambda: 0.0)
    for number in range(limits.MOST_WRITERS):
        writes.count(f"viewer {number}")
    with pytest.raises(Refusal, match="1 writes a minute"):
        writes.count("viewer 0")

    writes.count("one more")

    # The refused one was the last to write; the next one is forgotten.
    with pytest.raises(Refusal):
        writes.count("viewer 0")
    writes.count("viewer 1")
