from __future__ import annotations

import base64
import threading
from typing import Any

import pytest

from steersman.errors import UsageError
from steersman.tools import Resource, Toolbox, ToolError, resource
from tests.tools.clients import Client


@resource("note://{author}/{title}", mime_type="text/markdown")
async def note(author: str, title: str) -> str:
    """A note of somebody's."""
    return f"{title} by {author}"


@resource("file://{+path}")
def file(path: str) -> bytes:
    """A file of the program."""
    return path.encode()


@resource("app://status", name="status")
def status() -> dict[str, Any]:
    return {"ok": True, "thread": threading.current_thread() is threading.main_thread()}


README = Resource("app://readme", "Read me.", "readme", "What to know.")
LOGO = Resource("app://logo", b"\x00\x01", mime_type="image/x-logo")


def client(*resources: Resource) -> Client:
    return Client(box=Toolbox("box", resources=resources))


async def contents(served: Client, uri: str) -> Any:
    (found,) = (await served.ask("resources/read", {"uri": uri}))["result"]["contents"]
    return found


async def test_resources_and_templates_are_listed_apart() -> None:
    served = client(README, LOGO, note, status)

    listed = (await served.ask("resources/list"))["result"]
    templates = (await served.ask("resources/templates/list"))["result"]

    assert listed == {
        "resources": [
            {"uri": "app://readme", "name": "readme", "description": "What to know."},
            {"uri": "app://logo", "name": "app://logo", "mimeType": "image/x-logo"},
            {"uri": "app://status", "name": "status"},
        ]
    }
    assert templates == {
        "resourceTemplates": [
            {
                "uriTemplate": "note://{author}/{title}",
                "name": "note",
                "description": "A note of somebody's.",
                "mimeType": "text/markdown",
            }
        ]
    }


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("app://readme", {"mimeType": "text/plain", "text": "Read me."}),
        ("app://logo", {"mimeType": "image/x-logo", "blob": "AAE="}),
        ("note://ann/my%20day", {"mimeType": "text/markdown", "text": "my day by ann"}),
        ("app://status", {"mimeType": "application/json", "text": '{"ok":true,"thread":false}'}),
        (
            "file://a/b.txt",
            {
                "mimeType": "application/octet-stream",
                "blob": base64.b64encode(b"a/b.txt").decode(),
            },
        ),
    ],
)
async def test_a_resource_is_read(uri: str, expected: dict[str, str]) -> None:
    served = client(README, LOGO, note, status, file)

    assert await contents(served, uri) == {"uri": uri, **expected}


async def test_a_plain_address_goes_before_a_template_that_it_fits() -> None:
    fixed = Resource("file://fixed", "fixed")

    assert (await contents(client(file, fixed), "file://fixed"))["text"] == "fixed"


@pytest.mark.parametrize(
    ("method", "params", "code", "message"),
    [
        (
            "resources/read",
            {"uri": "app://none"},
            -32002,
            "uri: there is no resource 'app://none'",
        ),
        ("resources/read", {"uri": "note://a"}, -32002, "uri: there is no resource 'note://a'"),
        ("resources/read", {}, -32602, "uri: text is needed"),
        ("resources/read", {"uri": 3}, -32602, "uri: text is needed"),
        ("resources/read", [1], -32602, "params: an object is needed"),
        ("resources/list", {"cursor": "2"}, -32602, "cursor: there is no further page"),
        ("resources/subscribe", {"uri": "x"}, -32601, "method not found: resources/subscribe"),
        ("prompts/list", {}, -32601, "method not found: prompts/list"),
    ],
)
async def test_a_request_that_cannot_be_served_gets_an_error_with_its_id(
    method: str, params: Any, code: int, message: str
) -> None:
    answer = await client(README, note).ask(method, params)

    assert answer == {"jsonrpc": "2.0", "id": 7, "error": {"code": code, "message": message}}


async def test_a_function_that_fails_is_logged_and_its_text_is_kept_from_the_model(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail() -> str:
        raise ValueError("secret")

    def refuse() -> str:
        raise ToolError("come back later")

    served = client(Resource("app://fail", fail), Resource("app://refuse", refuse))
    failed = await served.ask("resources/read", {"uri": "app://fail"})
    refused = await served.ask("resources/read", {"uri": "app://refuse"})

    assert failed["error"] == {"code": -32603, "message": "internal error in 'resources/read'"}
    assert refused["error"] == {"code": -32603, "message": "come back later"}
    assert [record.levelname for record in caplog.records] == ["ERROR"]


async def test_resources_are_announced_where_there_are_any_or_may_come() -> None:
    async def announced(box: Toolbox) -> set[str]:
        answer = await Client(box=box).ask("initialize", {})
        return set(answer["result"]["capabilities"])

    late = Toolbox("box")
    late.register(README)

    assert await announced(Toolbox("box")) == {"tools"}
    assert await announced(Toolbox("box", resources=())) == {"tools", "resources"}
    assert await announced(late) == {"tools", "resources"}


async def test_resources_come_and_go() -> None:
    served = client(README)
    await served.toolbox.attach(served.caller)

    served.toolbox.register(LOGO)
    served.toolbox.unregister(README)
    listed = (await served.ask("resources/list"))["result"]["resources"]

    assert [each["uri"] for each in listed] == ["app://logo"]
    assert [each["method"] for each in served.notifications] == [
        "notifications/resources/list_changed",
        "notifications/resources/list_changed",
    ]


@pytest.mark.parametrize(
    ("argument", "make"),
    [
        ("uri", lambda: Resource("readme", "x")),
        ("uri", lambda: Resource("", "x")),
        ("uri", lambda: Resource(3, "x")),  # type: ignore[arg-type]
        ("uri", lambda: Resource("a://{x}/{x}", lambda x: x)),
        ("name", lambda: Resource("a://b", "x", name=3)),  # type: ignore[arg-type]
        ("content", lambda: Resource("a://b", 3)),  # type: ignore[arg-type]
        ("content", lambda: Resource("a://{b}", "text")),
        ("content", lambda: Resource("a://{b}", lambda c: c)),
        ("content", lambda: Resource("a://b", lambda c: c)),
    ],
)
def test_a_resource_that_cannot_be_is_refused(argument: str, make: Any) -> None:
    with pytest.raises(UsageError) as refused:
        make()

    assert refused.value.argument == argument


def test_two_resources_of_one_address_are_refused_with_both() -> None:
    other = resource("app://status")(lambda: "")

    with pytest.raises(UsageError, match=r"test_resources\.status and .*<lambda> share"):
        client(status, other)
