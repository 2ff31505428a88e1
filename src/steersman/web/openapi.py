"""The OpenAPI description of the routes, for generators of clients."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

from steersman._json import JsonDict
from steersman.web.limits import WebLimits


@cache
def our_version() -> str:
    """Return the version of steersman; looking it up takes milliseconds."""
    return version("steersman")


def description(server: str, limits: WebLimits) -> JsonDict:
    """Return the description of a bridge that is mounted at `server`."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "steersman.web",
            "version": our_version(),
            "description": "Sessions of Claude Code. Live frames are at the WebSocket /live.",
        },
        "servers": [{"url": server}],
        "security": [{"bearer": []}],
        "paths": {path: dict(methods) for path, methods in _paths(limits).items()},
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
            },
            "schemas": _SCHEMAS,
        },
    }


def _paths(limits: WebLimits) -> dict[str, JsonDict]:
    return {
        "/health": {
            "get": {
                **_route("Whether background work runs; 503 if it fails", _object(status=_TEXT)),
                "security": [],
            }
        },
        "/me": {"get": _route("Who is logged in", _object(viewer=_ref("Viewer")))},
        "/sessions": {
            "get": _route("List sessions", _object(sessions=_list("Summary"), agents=_TEXTS)),
            "post": _route(
                f"Begin a session; up to {limits.attachments} bytes",
                _object(session=_ref("Summary"), turn=_OPTIONAL_TEXT),
                _object(agent=_TEXT, title=_TEXT, **_PROMPT),
                status="201",
            ),
        },
        "/sessions/{id}": {
            "get": _route(
                "One session",
                _object(session=_ref("Summary"), snapshot={"type": ["object", "null"]}),
                parameters=[_session()],
            )
        },
        **_entries(),
        **{f"/sessions/{{id}}/{verb}": {"post": _verb(verb)} for verb in _VERBS},
        **_asks(),
    }


def _entries() -> dict[str, JsonDict]:
    events = _route(
        "Entries as server-sent events",
        {},
        parameters=[
            _session(),
            _parameter("after", "query", _NUMBER),
            _parameter("form", "query", {"enum": ["raw"]}),
            _parameter("Last-Event-ID", "header", _NUMBER),
        ],
    )
    events["responses"]["200"] = {"description": "events", "content": {"text/event-stream": {}}}
    return {
        "/sessions/{id}/entries": {
            "get": _route(
                "Older entries",
                _object(entries=_list("Record"), more=_FLAG, last=_NUMBER),
                parameters=[
                    _session(),
                    _parameter("before", "query", _NUMBER),
                    _parameter("limit", "query", {**_NUMBER, "maximum": 1000}),
                ],
            )
        },
        "/sessions/{id}/entries/{seq}": {
            "get": _route(
                "One entry, whole",
                _ref("Record"),
                parameters=[_session(), _parameter("seq", "path", _NUMBER)],
            )
        },
        "/sessions/{id}/events": {"get": events},
    }


def _asks() -> dict[str, JsonDict]:
    return {
        "/asks": {
            "get": _route("Open asks", _object(asks=_list("Ask"))),
            "post": _route(
                "Answer many asks",
                _object(outcomes=_list("Outcome")),
                _object(answers=_list("Answer")),
            ),
        },
        "/asks/{id}": {
            "post": _route(
                "Answer an ask",
                _ref("Outcome"),
                _ref("Answer"),
                parameters=[_parameter("id", "path", _TEXT)],
            )
        },
    }


_TEXT: JsonDict = {"type": "string"}
_OPTIONAL_TEXT: JsonDict = {"type": ["string", "null"]}
_NUMBER: JsonDict = {"type": "integer", "minimum": 0}
_FLAG: JsonDict = {"type": "boolean"}
_TIME: JsonDict = {"type": "number"}
_ANY: JsonDict = {"type": "object"}
_TEXTS: JsonDict = {"type": "array", "items": _TEXT}
_WHEN: JsonDict = {"enum": ["later", "next", "now"]}


def _ref(name: str) -> JsonDict:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(name: str) -> JsonDict:
    return {"type": "array", "items": _ref(name)}


def _object(**fields: JsonDict) -> JsonDict:
    return {"type": "object", "properties": fields}


_PROMPT: dict[str, JsonDict] = {
    "text": _TEXT,
    "when": _WHEN,
    "key": _TEXT,
    "attachments": _list("Attachment"),
}

_VERBS: dict[str, tuple[dict[str, JsonDict], dict[str, JsonDict]]] = {
    "send": (_PROMPT, {"turn": _TEXT, "is_new": _FLAG}),
    "withdraw": ({"turn": _TEXT}, {"withdrawn": _FLAG}),
    "interrupt": ({"turn": _TEXT, "also_queued": _FLAG}, {"queued": _TEXTS}),
    "pause": ({"hard": _FLAG}, {}),
    "resume": ({}, {}),
    "cancel": ({}, {}),
    "set_model": ({"model": _OPTIONAL_TEXT}, {}),
    "set_permission_mode": ({"mode": _TEXT}, {}),
}
"""What each verb takes and answers."""

_SCHEMAS: dict[str, JsonDict] = {
    "Viewer": _object(name=_TEXT),
    "Summary": _object(
        id=_TEXT,
        agent=_TEXT,
        title=_TEXT,
        by=_TEXT,
        created=_TIME,
        state=_TEXT,
        since=_TIME,
        line=_TEXT,
        is_open=_FLAG,
        asks=_NUMBER,
        cost_usd=_TIME,
        turns=_NUMBER,
        last=_NUMBER,
        is_stored=_FLAG,
        last_activity=_TIME,
        model=_OPTIONAL_TEXT,
        permission_mode=_OPTIONAL_TEXT,
        queued={
            "type": "array",
            "items": _object(turn=_TEXT, text=_TEXT, when=_WHEN, by=_TEXT, state=_TEXT),
        },
    ),
    "Record": _object(
        session=_TEXT,
        seq=_NUMBER,
        at=_TIME,
        kind=_TEXT,
        turns=_TEXTS,
        details=_ANY,
        frame={},
        text=_TEXT,
        base64=_TEXT,
        cut={"type": "array", "items": _object(path={"type": "array"}, size=_NUMBER)},
    ),
    "Ask": _object(
        id=_TEXT,
        session=_TEXT,
        kind=_TEXT,
        created=_TIME,
        payload=_ANY,
        digest=_TEXT,
        turn=_TEXT,
        expires=_TIME,
        assignee=_TEXT,
        earlier=_object(answer=_ANY, by=_TEXT, at=_TIME),
        is_repeatable=_FLAG,
    ),
    "Answer": _object(id=_TEXT, session=_TEXT, seen=_TEXT, answer=_ANY),
    "Outcome": _object(
        id=_OPTIONAL_TEXT, session=_TEXT, how=_TEXT, by=_TEXT, error=_ref("Problem")
    ),
    "Attachment": _object(media_type=_TEXT, data=_TEXT, name=_TEXT),
    "Problem": _object(
        code=_TEXT, message=_TEXT, by=_TEXT, last=_NUMBER, most=_NUMBER, retry_after=_TIME
    ),
    "Error": _object(error=_ref("Problem")),
}


def _parameter(name: str, where: str, schema: JsonDict) -> JsonDict:
    return {"name": name, "in": where, "required": where == "path", "schema": schema}


def _session() -> JsonDict:
    return _parameter("id", "path", {"type": "string", "format": "uuid"})


def _verb(name: str) -> JsonDict:
    takes, answers = _VERBS[name]
    return _route(name, _object(**answers), _object(**takes), parameters=[_session()])


def _route(
    summary: str,
    answer: JsonDict,
    body: JsonDict | None = None,
    *,
    parameters: list[JsonDict] | None = None,
    status: str = "200",
) -> JsonDict:
    found: JsonDict = {
        "summary": summary,
        "responses": {
            status: {"description": "done", "content": {"application/json": {"schema": answer}}},
            "default": {
                "description": "refused",
                "content": {"application/json": {"schema": _ref("Error")}},
            },
        },
    }
    if parameters:
        found["parameters"] = parameters
    if body is not None:
        found["requestBody"] = {"content": {"application/json": {"schema": body}}}
    return found
