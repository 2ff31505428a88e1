"""The files of the console: found by plain names, with their kinds, and known again by a tag."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.requests import Request

from steersman.web.failures import Refusal
from steersman.web.routes import static_response
from steersman.web.security import PAGE_HEADERS

KINDS = {
    "a.html": "text/html; charset=utf-8",
    "a.js": "text/javascript; charset=utf-8",
    "a.css": "text/css; charset=utf-8",
    "a.svg": "image/svg+xml",
    "a.png": "image/png",
    "a.ico": "image/x-icon",
    "a.json": "application/json",
    "a.webmanifest": "application/manifest+json",
    "a.map": "application/json",
    "a.woff2": "font/woff2",
    "a.txt": "text/plain; charset=utf-8",
}


def asking(tag: str = "") -> Request:
    headers = [(b"if-none-match", tag.encode())] if tag else []
    return Request({"type": "http", "method": "GET", "headers": headers})


@pytest.mark.parametrize("name", KINDS)
def test_a_file_has_its_kind_and_is_not_sent_twice(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"whole")

    first = static_response(asking(), name, tmp_path)
    again = static_response(asking(first.headers["etag"]), name, tmp_path)
    (tmp_path / name).write_bytes(b"other")
    changed = static_response(asking(first.headers["etag"]), name, tmp_path)

    assert (first.status_code, first.body, first.headers["content-type"]) == (
        200,
        b"whole",
        KINDS[name],
    )
    assert (again.status_code, again.body) == (304, b"")
    assert (changed.status_code, changed.body) == (200, b"other")
    for answer in (first, again, changed):
        assert {each: answer.headers[each] for each in PAGE_HEADERS} == PAGE_HEADERS
    assert len(first.headers["etag"]) == 34


@pytest.mark.parametrize(
    "name", [".hidden.js", "../x.js", "a\\b.js", "a.py", "a", "none.js", "x\0.js"]
)
def test_what_has_no_plain_name_of_a_known_kind_is_not_there(tmp_path: Path, name: str) -> None:
    (tmp_path.parent / "x.js").write_bytes(b"out of reach")
    for each in (".hidden.js", "a.py", "a", "a\\b.js"):
        (tmp_path / each).write_bytes(b"out of reach")

    with pytest.raises(Refusal, match="no such file") as refused:
        static_response(asking(), name, tmp_path)

    assert (refused.value.status, refused.value.code) == (404, "not_found")


def test_a_console_that_is_not_built_says_so(tmp_path: Path) -> None:
    page = static_response(asking(), "index.html", tmp_path)

    assert (page.status_code, page.headers["content-type"]) == (200, KINDS["a.html"])
    assert b"make console" in page.body
    assert page.headers["content-security-policy"] == PAGE_HEADERS["Content-Security-Policy"]
