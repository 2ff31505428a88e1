"""Edges of path patterns and of hosts: where exactly a rule begins and ends to cover."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.permissions.paths import (
    Place,
    is_protected,
    matches_path,
    may_match_path,
    objection_to,
)
from steersman.permissions.shell import Match
from steersman.permissions.urls import grants_url, stops_url

LONGEST, LONGEST_PATH, LONGEST_HOST = 16_384, 4096, 253
HOST = "a." * 126 + "a"


@pytest.mark.parametrize(
    ("domain", "url", "granted", "stopped"),
    [
        ("a.com", "https://a.com", Match.YES, Match.YES),
        ("a.com", "http://a.com/x", Match.YES, Match.YES),
        ("a.com", "HTTPS://A.COM", Match.YES, Match.YES),
        ("a.com", "https://a.com:443/", Match.YES, Match.YES),
        ("a.com", "https://a.com:65535/", Match.YES, Match.YES),
        ("a.com", "https://a.com:65536/", Match.NO, Match.YES),
        ("a.com", "https://a.com:99999/", Match.NO, Match.YES),
        ("a.com", "ftp://a.com", Match.NO, Match.YES),
        ("a.com", "https://u@a.com/", Match.NO, Match.YES),
        ("a.com", "https://a.com\\x", Match.NO, Match.YES),
        ("a.com", "https://a.com/ x", Match.NO, Match.YES),
        ("a.com", "https://a.com/\x01", Match.NO, Match.YES),
        ("a.com", "https://b.a.com", Match.NO, Match.NO),
        ("a.com", "https://xa.com", Match.NO, Match.NO),
        ("a.com", "a.com", Match.NO, Match.YES),
        ("a.com", "//a.com", Match.NO, Match.YES),
        ("a.com", "\\\\a.com", Match.NO, Match.YES),
        ("a.com", "https:a.com", Match.NO, Match.YES),
        ("a.com", " https://a.com ", Match.NO, Match.YES),
        ("a.com", "ht\ttps://a.com", Match.NO, Match.YES),
        ("a.com", "https://a%2ecom", Match.NO, Match.YES),
        ("a.com", "https://a\u3002com", Match.NO, Match.YES),
        ("a.com", "https://\uff41.com", Match.NO, Match.YES),
        ("a.com", "https://a\xad.com", Match.NO, Match.YES),
        ("a.com", "https://a.com.", Match.NO, Match.YES),
        ("a.com", "https://a.com./", Match.NO, Match.YES),
        ("a.com", "https://xn--a.com", Match.NO, Match.MAYBE),
        ("a.com", "https://xn--bcher-kva.com", Match.NO, Match.MAYBE),
        ("a.com", "https://b\xfccher.com", Match.NO, Match.MAYBE),
        ("a.com", None, Match.NO, Match.YES),
        ("a.com", 5, Match.NO, Match.YES),
        ("a.com", "", Match.NO, Match.MAYBE),
        ("*.a.com", "https://a.com", Match.NO, Match.NO),
        ("*.a.com", "https://b.a.com", Match.YES, Match.YES),
        ("*.a.com", "https://xa.com", Match.NO, Match.NO),
        ("*.a.com", "a.com", Match.NO, Match.MAYBE),
        ("*.a.com", None, Match.NO, Match.YES),
        ("A.com", "https://a.com", Match.YES, Match.YES),
        ("1.2.3.4", "http://1.2.3.4", Match.YES, Match.YES),
        ("1.2.3.4", "http://0x1.2.3.4", Match.NO, Match.YES),
        ("1.2.3.4", "http://01.02.03.04", Match.NO, Match.YES),
        ("1.2.3.4", "http://16909060", Match.NO, Match.YES),
        ("1.2.3.4", "http://1.2.772", Match.NO, Match.YES),
        ("1.2.3.4", "http://1.2.3.256", Match.NO, Match.MAYBE),
        ("1.2.3.4", "http://1.256.4", Match.NO, Match.MAYBE),
        ("1.2.0.0", "http://1.131072", Match.NO, Match.YES),
        ("255.255.255.255", "http://4294967295", Match.NO, Match.YES),
        ("0.0.0.0", "http://4294967296", Match.NO, Match.MAYBE),
        ("0.0.0.0", "http://0x", Match.NO, Match.YES),
        ("0.0.0.0", "http://0", Match.NO, Match.YES),
        ("1.2.3.4", "http://1.2.3.4.5", Match.NO, Match.MAYBE),
        ("1.2.3.8", "http://1.2.3.010", Match.NO, Match.YES),
        ("1.2.3.8", "http://1.2.3.08", Match.NO, Match.MAYBE),
        ("[::1]", "http://[0:0:0:0:0:0:0:1]", Match.NO, Match.YES),
        ("[::1]", "http://[::2]", Match.NO, Match.MAYBE),
        ("[::1]", "http://[::x]", Match.NO, Match.MAYBE),
        ("b\xfccher.com", "https://xn--bcher-kva.com", Match.NO, Match.YES),
        ("xn--bcher-kva.com", "https://xn--bcher-kva.com", Match.YES, Match.YES),
        ("a*b.com", "https://axb.com", Match.NO, Match.YES),
        ("a*b.com", "https://ab.com", Match.NO, Match.YES),
        ("a**b.com", "https://axb.com", Match.NO, Match.YES),
        ("*", "https://a.com", Match.NO, Match.YES),
        ("a.com.", "https://a.com", Match.NO, Match.YES),
        ("*.com", "https://a.com", Match.YES, Match.YES),
        ("*.com", "https://com", Match.NO, Match.NO),
        (HOST, f"https://{HOST}", Match.YES, Match.YES),
        (HOST, f"https://{HOST}a", Match.NO, Match.MAYBE),
        ("b.com", f"https://{HOST}", Match.NO, Match.NO),
        ("b.com", f"https://{HOST}.a", Match.NO, Match.MAYBE),
        ("b.com", "https://" + "a" * (4 * LONGEST_HOST), Match.NO, Match.MAYBE),
        ("b.com", "https://" + "a" * (4 * LONGEST_HOST + 1), Match.NO, Match.YES),
        ("a.com", "https://a.com/" + "x" * (LONGEST - 14), Match.YES, Match.YES),
        ("b.com", "https://a.com/" + "x" * (LONGEST - 14), Match.NO, Match.NO),
        ("b.com", "https://a.com/" + "x" * (LONGEST - 13), Match.NO, Match.YES),
    ],
)
def test_a_domain_covers_these_urls(domain: str, url: Any, granted: Match, stopped: Match) -> None:
    assert (grants_url(domain, url), stops_url(domain, url)) == (granted, stopped)


@pytest.mark.parametrize(
    "hidden", ["\u034f", "\u115f", "\u180b", "\u3164", "\uffa0", "\ufe00", "\ufe0f", "\U000e0100"]
)
def test_a_letter_that_is_not_shown_is_no_part_of_a_host(hidden: str) -> None:
    assert stops_url("a.com", f"https://a{hidden}.com") is Match.YES
    assert stops_url("b.com", f"https://a{hidden}.com") is Match.MAYBE


AT = Place("/srv/project", "/home/ann")
MOVED = Place("/srv/project", "/home/ann", "/srv/project/src")


@pytest.mark.parametrize(
    ("pattern", "path", "place", "covers", "may_cover"),
    [
        ("a.py", "a.py", AT, True, True),
        ("a.py", "src/a.py", AT, True, True),
        ("/a.py", "src/a.py", AT, False, False),
        ("./a.py", "src/a.py", AT, True, True),
        ("src/a.py", "a.py", MOVED, True, True),
        ("a.py", "/srv/other/a.py", AT, False, False),
        ("*.md", "/srv/project-secret/a.md", AT, False, False),
        ("//srv/**", "/srv", AT, False, False),
        ("//srv/**", "/srv/x", AT, True, True),
        ("//**", "/x", AT, True, True),
        ("~/notes", "~/notes/a", AT, True, True),
        ("~/notes", "~//notes/a", AT, True, True),
        ("~/notes", "/home/ann/notes", AT, True, True),
        ("~/notes", "/home/ann/notes", Place("/srv"), False, False),
        ("~/notes", "~/notes", Place("/srv"), False, False),
        ("~/notes", "~ann/notes", AT, False, True),
        ("//home/bob/x", "~bob/x", AT, False, True),
        ("//Users/bob/x", "~bob/x", AT, False, True),
        ("//bob/x", "~bob/x", AT, False, True),
        ("/a", "~+/a", AT, False, True),
        ("src/a", "~-/a", MOVED, False, True),
        ("src", "src/x/y", AT, True, True),
        ("src/", "src", AT, False, False),
        ("src/", "src/x", AT, True, True),
        ("src/**", "src/x/y", AT, True, True),
        ("src/**", "src", AT, False, False),
        ("a/**/b", "a/b", AT, True, True),
        ("a/**/b", "a/x/y/b", AT, True, True),
        ("a/**/**/b", "a/x/b", AT, True, True),
        ("a/**/b", "a/x/c", AT, False, False),
        ("**/b", "x/y/b", AT, True, True),
        ("a/../b", "b", AT, False, True),
        ("../b", "/srv/b", AT, False, True),
        ("a/b/../c/", "a/c/x", AT, False, True),
        ("a/b/c/../../d", "a/d", AT, False, True),
        ("a/b/c/../d", "a/d", AT, False, False),
        ("a/../b/", "b", AT, False, False),
        ("a/../b/", "b/x", AT, False, True),
        ("a/./b", "a/b", AT, False, True),
        ("a/**/../b", "a/b", AT, False, True),
        ("A.py", "a.PY", AT, True, True),
        ("\u00c4", "\u00e4", AT, False, True),
        ("/SRV", "/srv/project/srv", AT, True, True),
        ("x", "/SRV/project/x", AT, False, True),
        ("a?c", "abc", AT, True, True),
        ("a?c", "ac", AT, False, False),
        ("a*c", "ac", AT, True, True),
        ("a*b*c", "axbxbc", AT, True, True),
        ("a*b*c", "axbxb", AT, False, False),
        ("[a-c]x", "bx", AT, True, True),
        ("[a-c]x", "Bx", AT, True, True),
        ("[a-c]x", "dx", AT, False, False),
        ("[!a-c]x", "dx", AT, True, True),
        ("[^a-c]x", "bx", AT, False, False),
        ("[A-C]x", "bx", AT, True, True),
        ("[abc]", "c", AT, True, True),
        ("\\*", "*", AT, True, True),
        ("\\*", "x", AT, False, False),
        ("\\A", "a", AT, True, True),
        ("a", "/" + "x/" * 2000 + "a", AT, False, False),
        ("//**/a", "/" + "x/" * ((LONGEST_PATH - 2) // 2) + "a", AT, True, True),
        ("//q", "/" + "x/" * ((LONGEST_PATH - 2) // 2) + "a", AT, False, False),
        ("//q", "/" + "x/" * ((LONGEST_PATH - 2) // 2) + "aa", AT, False, True),
        ("", "a", AT, False, True),
        ("/", "a", AT, False, True),
    ],
)
def test_a_pattern_covers_these_paths(
    pattern: str, path: str, place: Place, *, covers: bool, may_cover: bool
) -> None:
    assert matches_path(pattern, path, place) is covers
    assert may_match_path(pattern, path, place) is may_cover


SETS = r"sets such as [abc], [a-z] or [!a], without \ and brackets inside"


@pytest.mark.parametrize(
    ("pattern", "objection"),
    [
        ("a", None),
        (r"\!a", None),
        ("[a", None),
        ("!a", r"a path pattern, with \ before a leading ! or #"),
        ("#a", r"a path pattern, with \ before a leading ! or #"),
        (" a", "a path pattern without white space at its ends"),
        ("a ", "a path pattern without white space at its ends"),
        ("[c-a]", "a range such as [a-z], not c-a"),
        ("x/[c-a]", "a range such as [a-z], not c-a"),
        ("[]", SETS),
        ("[!]", SETS),
        ("[a[b]", SETS),
        ("a\\", SETS),
    ],
)
def test_a_pattern_that_cannot_be_read_is_objected_to(pattern: str, objection: str | None) -> None:
    assert objection_to(pattern) == objection


@pytest.mark.parametrize(
    ("path", "protected"),
    [("a/.git/b", True), (".env", True), ("./a", False), ("../a", False), ("a.b", False)],
)
def test_a_name_that_begins_with_a_dot_is_protected(path: str, *, protected: bool) -> None:
    assert is_protected(path) is protected
