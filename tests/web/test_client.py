from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steersman import Allow, Deny
from steersman.errors import UsageError
from steersman.journal.files import Record
from steersman.testing.script import call, say
from steersman.web import Bridge, Client, Outcome, WebError
from tests.web.staging import scripted_agent, serving


async def test_a_client_begins_follows_answers_and_reads(tmp_path: Path) -> None:
    agent = scripted_agent(call("Bash", command="git push"), say("done"))
    bridge = Bridge(agent, journals=tmp_path)
    async with serving(bridge) as served, served.client() as client:
        begun = await client.begin("go", key="k")
        again = await client.begin("go", key="k")
        session = begun.session.id
        followed = client.follow(session)
        records: list[Record] = []
        outcomes: list[Outcome] = []
        refusals: list[WebError] = []
        async for record in followed:
            records.append(record)
            if record.kind == "asked":
                ask = (await client.asks())[0]
                outcomes.append(await client.answer(ask, Allow()))
                with pytest.raises(WebError) as late:
                    await client.answer(ask, Deny("too late"))
                refusals.append(late.value)
            if record.kind == "settled":
                break
        await followed.aclose()
        page = await client.entries(session, limit=5)
        whole = await client.entry(session, page.entries[0].seq)
        listed = await client.sessions()
        turn = await client.send(session, "more", when="later", key="l")
        assert not await client.withdraw(session, begun.turn or "")
        assert await client.do(session, "interrupt") == {"queued": []}
        with pytest.raises(WebError) as missing:
            await client.session("00000000-0000-4000-8000-000000000000")

    assert again == begun or again.turn == begun.turn
    assert [record.seq for record in records] == [*range(1, len(records) + 1)]
    assert [(each.how, each.by) for each in outcomes] == [("answered", "you")]
    refused = [(each.status, each.error_code, each.by) for each in refusals]
    assert refused == [(409, "already_answered", "you")]
    assert page.more
    assert whole == page.entries[0]
    assert [each.id for each in listed] == [session]
    assert turn
    assert missing.value.status == 404


async def test_a_client_that_is_refused_says_why(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with serving(bridge) as served, Client(served.url, token="guess") as client:
        with pytest.raises(WebError, match="401 not_logged_in"):
            await client.sessions()
        with pytest.raises(WebError, match="not_logged_in"):
            await anext(client.follow("00000000-0000-4000-8000-000000000000"))


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "ws://127.0.0.1:8080", "", "http://", 7])
def test_the_address_of_a_bridge_is_one_of_http(url: Any) -> None:
    with pytest.raises(UsageError, match="url"):
        Client(url)


async def test_a_client_does_not_follow_from_the_future(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with serving(bridge) as served, served.client() as client:
        session = (await client.begin()).session.id
        with pytest.raises(WebError, match="after_in_future"):
            await anext(client.follow(session, after=7))


async def test_what_is_no_bridge_is_said(tmp_path: Path) -> None:
    async def other(scope: object, receive: object, send: object) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})  # type: ignore[operator]  # ASGI
        await send({"type": "http.response.body", "body": b"<html>"})  # type: ignore[operator]  # ASGI

    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with serving(other, bridge) as served, served.client() as client:
        with pytest.raises(WebError, match="bad_answer"):
            await client.sessions()
