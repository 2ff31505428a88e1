"""The login by a link: what is kept, for how long, and what lets nobody in."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from starlette.requests import HTTPConnection

from steersman.web.failures import Refusal
from steersman.web.viewers import MONTH, MOST_LINKS, MOST_LOGINS, LinkLogin, Viewer


def asking(**headers: str) -> HTTPConnection:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return HTTPConnection({"type": "http", "headers": raw})


def bearer(token: str) -> HTTPConnection:
    return asking(authorization=f"Bearer {token}")


async def test_a_link_lets_in_for_a_month_and_in_the_next_server(tmp_path: Path) -> None:
    now = [1000.0]
    login = LinkLogin(tmp_path / ".logins.json", clock=lambda: now[0])
    page = login.log_in(login.link())
    again = LinkLogin(tmp_path / ".logins.json", clock=lambda: now[0])
    socket = asking(sec_websocket_protocol=f"steersman, steersman-token.{page}")

    for each in (login, again):
        assert await each(bearer(page)) == await each(socket) == Viewer("you")
        assert await each(asking(authorization=f"bearer   {page} ")) == Viewer("you")
    now[0] += MONTH - 1
    assert await again(bearer(page)) == Viewer("you")
    now[0] += 1
    assert await again(bearer(page)) is None
    assert MONTH == 30 * 24 * 3600


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": ""},
        {"authorization": "Bearer"},
        {"authorization": "Bearer "},
        {"authorization": "Bearer guess"},
        {"authorization": "Bearer gueß"},
        {"authorization": "Basic TOKEN"},
        {"authorization": "TOKEN"},
        {"sec_websocket_protocol": "steersman, TOKEN"},
        {"sec_websocket_protocol": "steersman"},
        {"cookie": "token=TOKEN"},
    ],
)
async def test_what_is_no_token_lets_nobody_in(tmp_path: Path, headers: dict[str, str]) -> None:
    login = LinkLogin(tmp_path / "logins.json")
    sent = {name: value.replace("TOKEN", login.token) for name, value in headers.items()}

    assert await login(asking(**sent)) is None
    assert await login(bearer(login.token)) == Viewer("you")
    assert len(login.token) == 43
    assert LinkLogin(tmp_path / "logins.json").token != login.token


def test_a_link_works_once_and_one_that_is_unknown_never(tmp_path: Path) -> None:
    login = LinkLogin(tmp_path / "logins.json")
    link = login.link()
    login.log_in(link)

    for given, code, words in (
        (link, "link_used", "run the command again"),
        ("guess", "link_unknown", "use the one printed last"),
        (login.token, "link_unknown", "not known"),
    ):
        with pytest.raises(Refusal, match=words) as refused:
            login.log_in(given)
        assert (refused.value.status, refused.value.code) == (401, code)


async def test_logging_out_forgets_one_page_also_for_the_next_server(tmp_path: Path) -> None:
    login = LinkLogin(tmp_path / "logins.json")
    one, other = login.log_in(login.link()), login.log_in(login.link())

    login.log_out(bearer(one))
    login.log_out(bearer("guess"))

    for each in (login, LinkLogin(tmp_path / "logins.json")):
        assert await each(bearer(one)) is None
        assert await each(bearer(other)) == Viewer("you")


def test_only_hashes_are_kept_and_only_the_owner_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "logins.json"
    before = os.umask(0)
    try:
        login = LinkLogin(file, clock=lambda: 5.0)
        page = login.log_in(login.link())
    finally:
        os.umask(before)

    ((name, expires),) = json.loads(file.read_text()).items()
    assert (len(name), expires) == (64, 5.0 + MONTH)
    assert page not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["logins.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"a":"b"}', '{"a":null}', "ä"])
async def test_a_file_that_cannot_be_read_is_no_login(tmp_path: Path, text: str) -> None:
    (tmp_path / "logins.json").write_text(text)

    login = LinkLogin(tmp_path / "logins.json")

    assert await login(bearer("a")) is None
    assert login.log_in(login.link())


async def test_without_a_file_the_login_works_until_the_server_ends(tmp_path: Path) -> None:
    login = LinkLogin(tmp_path / "gone" / "logins.json")

    page = login.log_in(login.link())

    assert await login(bearer(page)) == Viewer("you")


async def test_the_newest_links_and_logins_are_kept(tmp_path: Path) -> None:
    now = [0.0]
    login = LinkLogin(tmp_path / "logins.json", clock=lambda: now[0])
    first = login.link()
    second = login.link()
    for _ in range(MOST_LINKS - 1):
        login.link()
    with pytest.raises(Refusal, match="not known"):
        login.log_in(first)
    old = login.log_in(second)
    known = json.loads((tmp_path / "logins.json").read_text())
    kept = {**known, **{f"{number:064}": MONTH for number in range(MOST_LOGINS - 1)}}
    (tmp_path / "logins.json").write_text(json.dumps(kept))
    login = LinkLogin(tmp_path / "logins.json", clock=lambda: now[0])
    assert await login(bearer(old)) == Viewer("you")

    newest = login.log_in(login.link())

    assert await login(bearer(old)) is None
    assert await login(bearer(newest)) == Viewer("you")
    now[0] = MONTH
    login.log_out(bearer(newest))
    assert json.loads((tmp_path / "logins.json").read_text()) == {}


def test_a_right_that_cannot_be_read_is_none(caplog: pytest.LogCaptureFixture) -> None:
    def broken(act: str, session: str) -> bool:
        raise LookupError(f"{act} {session}")

    assert not Viewer("ann", broken).is_allowed("see", "s")
    assert "may() of the viewer ann failed" in caplog.text
    assert "see s" in caplog.text
    assert Viewer("ann").is_allowed("answer", "s") is True
    allowed = Viewer("ann", lambda act, session: (act, session) == ("steer", "s"))
    assert allowed.is_allowed("steer", "s")
    assert not allowed.is_allowed("steer", "t")
