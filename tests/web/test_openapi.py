"""What the bridge takes and answers is what its description says, no field more and none less."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from steersman import Allow
from steersman.permissions import Ask
from steersman.permissions.asks import EarlierAnswer
from steersman.permissions.questions import CanUseTool
from steersman.testing.script import call, say
from steersman.web import Bridge, Viewer, WebLimits
from steersman.web.openapi import our_version
from tests.web.staging import LIMIT, inside, scripted_agent

KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
ROUTE = {"summary", "responses", "parameters", "requestBody", "security"}
HERE = "http://127.0.0.1:8000"


class Described:
    """The description of a bridge, and which of its fields were in a request or an answer."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.used: set[str] = set()

    def check(self, schema: dict[str, Any], value: object, name: str) -> None:
        """Check that a value is as described, in each field."""
        if "$ref" in schema:
            name = schema["$ref"].removeprefix("#/components/schemas/")
            schema = self.document["components"]["schemas"][name]
        assert set(schema) <= {
            "type",
            "enum",
            "properties",
            "items",
            "minimum",
            "maximum",
            "format",
        }
        if "type" in schema:
            given = schema["type"]
            kinds = [
                kind
                for each in ([given] if isinstance(given, str) else given)
                for kind in KINDS[each]
            ]
            assert isinstance(value, tuple(kinds)), (name, value)
            assert isinstance(value, bool) <= (bool in kinds), (name, value)
        assert value in schema.get("enum", [value]), (name, value)
        if isinstance(value, int | float):
            assert schema.get("minimum", value) <= value <= schema.get("maximum", value), name
        if isinstance(value, list):
            for each in value:
                self.check(schema.get("items", {}), each, f"{name}[]")
        if isinstance(value, dict) and "properties" in schema:
            assert set(value) <= set(schema["properties"]), (name, set(value))
            for field, each in value.items():
                self.used.add(f"{name}.{field}")
                self.check(schema["properties"][field], each, f"{name}.{field}")

    def fields(self) -> Iterator[str]:
        """Yield every field of every object, named as `check` names it."""
        for name, schema in self.document["components"]["schemas"].items():
            yield from _fields(schema, name)
        for path, methods in self.document["paths"].items():
            for method, route in methods.items():
                for where, schema in _bodies(route):
                    yield from _fields(schema, f"{method} {path} {where}")


def _fields(schema: dict[str, Any], name: str) -> Iterator[str]:
    for field, each in schema.get("properties", {}).items():
        yield f"{name}.{field}"
        yield from _fields(each, f"{name}.{field}")
    if "items" in schema:
        yield from _fields(schema["items"], f"{name}[]")


def _bodies(route: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    if "requestBody" in route:
        assert set(route["requestBody"]) == {"content"}
        yield "takes", route["requestBody"]["content"]["application/json"]["schema"]
    (status,) = set(route["responses"]) - {"default"}
    content = route["responses"][status]["content"]
    if "application/json" in content:
        yield status, content["application/json"]["schema"]


class Caller:
    """Calls routes, and compares what it sends and gets with the description."""

    def __init__(self, http: httpx.AsyncClient, described: Described) -> None:
        self._http = http
        self._described = described
        self.called: set[tuple[str, str]] = set()

    async def __call__(
        self, method: str, path: str, body: object = None, *, status: int = 0, **places: object
    ) -> Any:
        """Call a route; `places` are its parameters, and `status` is of a refusal."""
        route = self._described.document["paths"][path][method]
        assert {"summary", "responses"} <= set(route) <= ROUTE
        self._check_parameters(path, route)
        given = {each["name"]: each["in"] for each in route.get("parameters", [])}
        assert set(places) <= {name.replace("-", "_") for name in given}
        filled = re.sub(r"{(\w+)}", lambda found: str(places[found[1]]), path)
        query = {name: str(places[name]) for name in places if given.get(name) == "query"}
        answer = await self._http.request(method, filled, json=body, params=query)
        (good,) = set(route["responses"]) - {"default"}
        described = route["responses"]["default" if status else good]
        assert answer.status_code == (status or int(good)), answer.text
        assert set(described) == {"description", "content"}
        if body is not None:
            takes = dict(_bodies(route))["takes"]
            self._described.check(takes, body, f"{method} {path} takes")
        schema = described["content"]["application/json"]["schema"]
        self._described.check(schema, answer.json(), f"{method} {path} {good}")
        self.called.add((method, path))
        return answer.json()

    def _check_parameters(self, path: str, route: dict[str, Any]) -> None:
        given = route.get("parameters", [])
        assert all(set(each) == {"name", "in", "required", "schema"} for each in given)
        in_path = {each["name"] for each in given if each["in"] == "path"}
        assert in_path == set(re.findall(r"{(\w+)}", path))
        assert {each["name"] for each in given if each["required"]} == in_path


async def test_every_request_and_answer_is_as_described_and_every_field_is_used(
    tmp_path: Path,
) -> None:
    agent = scripted_agent(
        *(call("Bash", command=f"git push {number}") for number in range(3)),
        say("x" * 30_000),
    )
    bridge = Bridge(agent, journals=tmp_path, limits=WebLimits(writes=1000))
    transport = httpx.ASGITransport(bridge)
    login = {"Authorization": f"Bearer {bridge.token}"}
    async with (
        bridge,
        asyncio.timeout(LIMIT),
        httpx.AsyncClient(transport=transport, base_url=HERE, headers=login) as http,
    ):
        described = Described((await http.get("/openapi.json")).json())
        do = Caller(http, described)
        await conversation(bridge, do)
        await refusals(bridge, do)

    named = set(described.fields())
    # A line that is no JSON is in one of these two; the scripted CLI writes none.
    rare = {"Record.text", "Record.base64"}
    assert named - described.used == rare
    routes = {
        (method, path)
        for path, methods in described.document["paths"].items()
        for method in methods
    }
    assert routes == do.called


async def conversation(bridge: Bridge, do: Caller) -> None:
    """Do all that a viewer can do."""
    await do("get", "/health")
    await do("get", "/me")
    note = {"media_type": "text/plain", "data": base64.b64encode(b"a").decode(), "name": "a.txt"}
    prompt = {"text": "go", "when": "later", "key": "k", "attachments": [note]}
    begun = await do("post", "/sessions", {**prompt, "agent": "default", "title": "t"})
    session = begun["session"]["id"]
    watch = bridge.inbox.watch()
    first = (await anext(watch)).ask
    later = await do("post", "/sessions/{id}/send", {**prompt, "key": "l"}, id=session)
    await do("get", "/sessions")
    await do("get", "/sessions/{id}", id=session)
    await do("post", "/sessions/{id}/withdraw", {"turn": later["turn"]}, id=session)
    for verb, fields in (
        ("set_model", {"model": None}),
        ("set_permission_mode", {"mode": "acceptEdits"}),
        ("pause", {"hard": False}),
        ("resume", {}),
    ):
        await do("post", f"/sessions/{{id}}/{verb}", fields, id=session)

    digest = (await do("get", "/asks"))["asks"][0]["digest"]
    yes = {"answer": {"behavior": "allow"}, "session": session}
    await do("post", "/asks/{id}", {**yes, "seen": digest}, id=first.id)
    while True:
        change = await anext(watch)
        if change.what == "opened":
            break
    given = [{"id": change.ask.id, **yes}, {"id": change.ask.id, **yes}]
    await do("post", "/asks", {"answers": given})
    while (await anext(watch)).what != "opened":
        pass
    also = {"turn": begun["turn"], "also_queued": True}
    await do("post", "/sessions/{id}/interrupt", also, id=session)
    await do("post", "/sessions/{id}/send", {"text": "long"}, id=session)
    found = bridge.session(session)
    assert found is not None
    assert await found.wait_idle(LIMIT)
    newest = await do("get", "/sessions/{id}/entries", id=session)
    entries = await do("get", "/sessions/{id}/entries", id=session, before=9000, limit=1000)
    assert newest["entries"] == entries["entries"][-200:]
    await do("get", "/sessions/{id}/entries/{seq}", id=session, seq=entries["last"])

    kept = Ask(
        id="r",
        session=session,
        payload=CanUseTool(tool_name="Bash", input={}, tool_use_id="t"),
        created=1.0,
        expires=9e9,
        assignee="ann",
        turn="t",
        earlier=EarlierAnswer(answer=Allow(), by="ann", at=1.0),
        is_repeatable=True,
    )
    inside(bridge.inbox).open(kept, lambda *_: None)
    await do("get", "/asks")
    await do("post", "/sessions/{id}/cancel", {}, id=session)


async def refusals(bridge: Bridge, do: Caller) -> None:
    """Be refused in every way that has a field of its own."""
    (session,) = (each["id"] for each in (await do("get", "/sessions"))["sessions"])
    yes = {"behavior": "allow"}
    await do("get", "/sessions/{id}/events", id=session, after=99_999, status=400)
    await do("post", "/asks/{id}", {"answer": {"message": "x" * 1_000_000}}, id="r", status=413)
    await do("post", "/asks/{id}", {"answer": yes}, id="none", status=404)
    await do("post", "/asks/{id}", {"answer": yes}, id="r")
    await do("post", "/asks/{id}", {"answer": yes}, id="r", status=409)
    inside(bridge)._verbs._writes._most = 0
    await do("post", "/asks/{id}", {"answer": yes}, id="r", status=429)


async def test_the_description_is_of_openapi_and_of_this_server() -> None:
    async def who(_connection: object) -> Viewer:
        return Viewer("ann")

    bridge = Bridge(scripted_agent(), authenticate=who)
    transport = httpx.ASGITransport(bridge, root_path="/agents")
    async with bridge, httpx.AsyncClient(transport=transport, base_url=HERE) as http:
        found = (await http.get("/agents/openapi.json")).json()

    told = {name: value for name, value in found.items() if name not in ("paths", "components")}
    words = told["info"].pop("description")
    assert "/live" in words
    assert told == {
        "openapi": "3.1.0",
        "info": {"title": "steersman.web", "version": our_version()},
        "servers": [{"url": "/agents/"}],
        "security": [{"bearer": []}],
    }
    assert found["components"]["securitySchemes"] == {
        "bearer": {"type": "http", "scheme": "bearer"}
    }
    assert found["paths"]["/health"]["get"]["security"] == []
    events = found["paths"]["/sessions/{id}/events"]["get"]
    assert list(events["responses"]["200"]["content"]) == ["text/event-stream"]
    assert {(each["name"], each["in"]) for each in events["parameters"]} == {
        ("id", "path"),
        ("after", "query"),
        ("form", "query"),
        ("Last-Event-ID", "header"),
    }
    assert str(WebLimits().attachments) in found["paths"]["/sessions"]["post"]["summary"]
