"""`WebFetch(domain:...)` rules, and the hosts that a WHATWG URL parser finds.

An allow rule covers nothing that the parser reads differently, and a deny or ask rule covers
everything that the parser reads as its domain.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from steersman.permissions import Match, ToolCall, parse_rule
from steersman.permissions.updates import Behavior
from tests.permissions.oracles import oracle

HostOf = Callable[[str], tuple[str, str] | None]
CASES = 20_000


def match(domain: str, url: Any, behavior: Behavior) -> Match:
    return parse_rule(f"WebFetch(domain:{domain})").match(
        ToolCall("WebFetch", {"url": url}), behavior
    )


@pytest.mark.parametrize(
    ("domain", "url"),
    [
        ("good.test", "https://evil.test\\@good.test/"),
        ("*.good.test", "https://evil.test\\.good.test/"),
        ("good.test", "http://good.test:80@evil.test"),
        ("good.test", "http://user@good.test/"),
        ("good.test", "https:good.test"),
        ("good.test", "https:/good.test"),
        ("good.test", "https:\\\\good.test"),
        ("good.test", "https:///good.test"),
        ("good.test", "good.test"),
        ("good.test", "//good.test"),
        ("good.test", "ftp://good.test"),
        ("good.test", "https://good.test."),
        ("good.test", "https://good%2etest/"),
        ("good.test", "https://go\tod.test/"),
        ("good.test", "https://good.test/\n"),
        ("good.test", " https://good.test/"),
        ("good.test", "https://good.test:99999/"),
        ("good.test", "https://good.test:/"),
        ("good.test", "https://\uff47ood.test/"),
        ("*.good.test", "https://.good.test/"),
        ("1.2.3.4", "https://0x1.2.3.4/"),
        ("1.2.3.4", "https://16909060/"),
        ("good.test", ["https://good.test/"]),
        ("good.test", "https://good.test/" + "a" * 20_000),
    ],
)
def test_an_approval_does_not_cover_a_url_that_is_not_plain(domain: str, url: Any) -> None:
    assert match(domain, url, "allow") is Match.NO


@pytest.mark.parametrize(
    ("domain", "url"),
    [
        ("good.test", "https://good.test"),
        ("good.test", "HTTP://Good.Test:8080/a?b#c"),
        ("Good.Test", "https://good.test/"),
        ("good.test", "https://good.test/@evil.test"),
        ("good.test", "https://good.test#@evil.test"),
        ("good.test", "https://good.test/wiki/Café"),
        ("*.good.test", "https://a.b.good.test/"),
        ("1.2.3.4", "https://1.2.3.4/"),
        ("xn--mnchen-3ya.test", "https://xn--mnchen-3ya.test/"),
    ],
)
def test_a_plain_url_of_the_domain_is_covered_by_every_rule(domain: str, url: str) -> None:
    assert match(domain, url, "allow") is Match.YES
    assert match(domain, url, "deny") is Match.YES
    assert match(domain, url, "ask") is Match.YES


@pytest.mark.parametrize("behavior", ["deny", "ask"])
@pytest.mark.parametrize(
    "url",
    [
        "https:good.test",
        "https:/good.test",
        "https:\\\\good.test",
        "https:///good.test",
        "\x00 https://good.test",
        "ht\ntps://go\tod.te\rst",
        "good.test",
        "https://good%2etest/",
        "https://good%2Etest/",
        "https://good.test.",
        "https://good.test..:80",
        "https://evil.test@good.test/",
        "https://evil.test:x@good.test\\@evil.test",
        "https://GOOD.test\\evil",
        "https://\uff47\uff4f\uff4f\uff44.test/",
        "https://good\u3002test/",
        "https://go\u00adod.test/",
        "https://%EF%BD%87ood.test/",
        "https://good.test/" + "a" * 20_000,
    ],
)
def test_no_spelling_of_the_domain_passes_a_denial(url: str, behavior: Behavior) -> None:
    assert match("good.test", url, behavior) is Match.YES


@pytest.mark.parametrize(
    "url", ["https://0x01020304/", "https://1.2.772/", "http://0001.2.3.4.", "https://16909060"]
)
def test_an_address_is_found_in_every_base(url: str) -> None:
    assert match("1.2.3.4", url, "deny") is Match.YES


@pytest.mark.parametrize("url", ["http://[broken", "http://user@evil.test", "http://münchen.test"])
def test_a_url_that_is_not_plain_may_be_covered_by_a_denial(url: str) -> None:
    assert match("good.test", url, "deny") is Match.MAYBE


def test_a_plain_url_of_another_domain_is_free() -> None:
    for url in ("https://evil.test/", "https://good.test.evil.test/", "https://xgood.test/"):
        assert match("good.test", url, "deny") is Match.NO
        assert match("good.test", url, "allow") is Match.NO
    assert match("*.good.test", "https://good.test/", "deny") is Match.NO
    assert match("*.good.test", "https://good.test/", "allow") is Match.NO


def test_a_wildcard_elsewhere_denies_but_does_not_allow() -> None:
    assert match("good.*", "https://good.test/", "deny") is Match.YES
    assert match("good.*", "https://good.test/", "allow") is Match.NO


# --- Compared with a WHATWG parser ----------------------------------------------------------

PARTS = [
    *("http:", "https:", "HTTPS:", "ftp:", "file:", "/", "//", "///", "\\", "\\\\", "@", ":", "?"),
    *("#", ".", "..", "%2e", "%2E", "%40", "%5c", "%2f", "%00", "\t", "\n", "\r", " ", "\x00"),
    *("good.test", "GOOD.test", "good", "test", "evil.test", "a.good.test", "xn--good-.test"),
    *(
        "\uff47\uff4f\uff4f\uff44.test",
        "good\u3002test",
        "go\u00adod.test",
        "good\u200d.test",
        "%EF%BD%87ood.test",
    ),
    *(
        "1.2.3.4",
        "0x1.2.3.4",
        "16909060",
        "1.2.772",
        "0x01020304",
        "[::1]",
        "[0:0::1]",
        "80",
        "99999",
    ),
    *("user", "user:pass@", "é", "ß", "K", "[", "]", "<", "|", "^", "_", "-", "\u2025", "\ud800"),
]
SEEDS = [
    "https://good.test/",
    "https://a.good.test:8080/x?y#z",
    "http://user@good.test/",
    "https://evil.test\\@good.test/",
    "https://1.2.3.4/",
    "https:good.test",
]
DOMAINS = ("good.test", "*.good.test", "1.2.3.4", "evil.test", "[::1]")


@pytest.fixture(scope="module")
def host_of() -> HostOf:
    """Return a function: the scheme and host that a WHATWG parser finds, or None."""
    ada = oracle("ada_url")

    def host(url: str) -> tuple[str, str] | None:
        try:
            read = ada.URL(url)
            return str(read.protocol), str(read.hostname)
        except (ValueError, UnicodeError):
            return None

    return host


def mutated(chance: random.Random) -> str:
    if chance.random() < 0.3:
        return "".join(chance.choices(PARTS, k=chance.randint(1, 7)))
    url = chance.choice(SEEDS)
    for _ in range(chance.randint(1, 3)):
        at, width = chance.randint(0, len(url)), chance.choice((0, 0, 1, 2))
        url = url[:at] + chance.choice(PARTS) + url[at + width :]
    return url


def names(domain: str, host: str) -> bool:
    host = host.rstrip(".")
    return host.endswith(domain[1:]) if domain.startswith("*.") else host == domain


def test_no_url_is_read_more_kindly_than_a_whatwg_parser_reads_it(host_of: HostOf) -> None:
    chance = random.Random(13)
    granted = stopped = 0
    for url in (mutated(chance) for _ in range(CASES)):
        found = host_of(url)
        # Nothing can be fetched with another scheme.
        is_page = found is not None and found[0] in ("http:", "https:")
        for domain in DOMAINS:
            is_named = found is not None and names(domain, found[1])
            if match(domain, url, "allow") is Match.YES:
                assert (is_page, is_named) == (True, True), (domain, url, found)
                granted += 1
            if is_named:
                enough = (Match.YES,) if is_page else (Match.YES, Match.MAYBE)
                assert match(domain, url, "deny") in enough, (domain, url, found)
                assert match(domain, url, "ask") in enough, (domain, url, found)
                stopped += 1
    assert min(granted, stopped) > CASES // 100
