from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from steersman.errors import UsageError
from steersman.testing.model import RecordedRequest, ScriptedModel
from steersman.testing.script import Script, call, cut, fail, say, stall

PROMPT = {"model": "opus", "messages": [{"role": "user", "content": "go"}]}
STREAMED = {**PROMPT, "stream": True}
TIMEOUT = 5.0


@contextmanager
def client_of(model: ScriptedModel) -> Iterator[http.client.HTTPConnection]:
    address = urlsplit(model.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=TIMEOUT)
    with closing(connection):
        yield connection


def fetch(model: ScriptedModel, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    with client_of(model) as client:
        client.request(method, path, None if body is None else json.dumps(body))
        response = client.getresponse()
        return response.status, json.loads(response.read() or "null")


def events_in(data: bytes) -> list[dict[str, Any]]:
    lines = data.decode().split("\n")
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


def stream(model: ScriptedModel) -> list[dict[str, Any]]:
    with client_of(model) as client:
        client.request("POST", "/v1/messages?beta=true", json.dumps(STREAMED))
        response = client.getresponse()
        assert response.getheader("content-type") == "text/event-stream; charset=utf-8"
        return events_in(response.read())


def text_of(events: list[dict[str, Any]]) -> str:
    return "".join(
        event["delta"].get("text", "") for event in events if "index" in event and "delta" in event
    )


def test_a_streamed_answer_echoes_the_model_that_was_asked() -> None:
    with ScriptedModel(Script(say("hello", chunks=2))) as model:
        events = stream(model)

    assert [event["type"] for event in events] == [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert events[0]["message"]["model"] == "opus"
    assert text_of(events) == "hello"


def test_a_client_that_does_not_stream_gets_the_whole_message() -> None:
    with ScriptedModel(Script(call("Bash", command="ls"))) as model:
        status, message = fetch(model, "POST", "/v1/messages", PROMPT)

    [block] = message["content"]
    assert (status, message["stop_reason"]) == (200, "tool_use")
    assert (block["name"], block["input"]) == ("Bash", {"command": "ls"})
    assert block["id"].startswith("toolu_")


def test_several_requests_share_a_connection() -> None:
    with ScriptedModel(Script(say("one"), say("two"))) as model, client_of(model) as client:
        answers = []
        for _ in range(2):
            client.request("POST", "/v1/messages", json.dumps(STREAMED))
            answers.append(text_of(events_in(client.getresponse().read())))

    assert answers == ["one", "two"]


def test_a_failure_has_a_status_a_reason_and_a_time_to_wait() -> None:
    with (
        ScriptedModel(Script(fail(529, "busy", retry_after=1.5))) as model,
        client_of(model) as client,
    ):
        client.request("POST", "/v1/messages", json.dumps(STREAMED))
        response = client.getresponse()
        body = json.loads(response.read())

    assert (response.status, response.getheader("retry-after")) == (529, "1.5")
    assert body == {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}


def test_a_failure_after_some_text_is_an_event() -> None:
    with ScriptedModel(Script(say("half") + fail(529, "busy"))) as model:
        events = stream(model)

    assert text_of(events) == "half"
    assert events[-1]["type"] == "error"


def test_a_cut_after_some_text_ends_the_stream_in_its_middle() -> None:
    with ScriptedModel(Script(say("half") + cut())) as model:
        events = stream(model)

    assert events[-1]["type"] == "content_block_delta"


@pytest.mark.parametrize("body", [PROMPT, STREAMED])
def test_a_cut_alone_gives_no_answer(body: dict[str, Any]) -> None:
    with (
        ScriptedModel(Script(cut())) as model,
        pytest.raises(http.client.RemoteDisconnected),
    ):
        fetch(model, "POST", "/v1/messages", body)


def test_token_counts_models_and_greetings_need_no_script() -> None:
    with ScriptedModel(Script(strict=True)) as model:
        counted = fetch(model, "POST", "/v1/messages/count_tokens?beta=true", PROMPT)
        listed = fetch(model, "GET", "/v1/models")
        greeted = [fetch(model, "GET", "/")[0], fetch(model, "HEAD", "/")[0]]
        model.script.assert_complete()

    assert counted[0] == 200
    assert counted[1]["input_tokens"] > 0
    assert listed[1]["data"][0]["type"] == "model"
    assert greeted == [200, 200]


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/messages"), ("POST", "/v1/files"), ("DELETE", "/"), ("PUT", "/v1/models")],
)
def test_everything_else_is_not_found(method: str, path: str) -> None:
    with ScriptedModel() as model:
        status, body = fetch(model, method, path)

    assert (status, body["error"]["type"]) == (404, "not_found_error")


def test_a_body_that_is_no_object_is_refused() -> None:
    with ScriptedModel() as model:
        status, _ = fetch(model, "POST", "/v1/messages", ["no"])

    assert status == 400


def test_requests_are_remembered_without_their_keys() -> None:
    with ScriptedModel() as model, client_of(model) as client:
        headers = {"X-Api-Key": "sk-secret", "Authorization": "Bearer secret", "X-App": "cli"}
        client.request("POST", "/v1/messages?beta=true", json.dumps(PROMPT), headers)
        client.getresponse().read()

        [request] = model.requests

    kept = {name: request.headers[name] for name in ("x-api-key", "authorization", "x-app")}
    assert kept == {"x-api-key": "[redacted]", "authorization": "[redacted]", "x-app": "cli"}
    assert request == RecordedRequest("POST", "/v1/messages", request.headers, PROMPT, request.at)
    assert (request.kind, 0 <= request.at < TIMEOUT) == ("main", True)


def test_waiting_for_a_request_counts_only_what_the_script_is_asked() -> None:
    with ScriptedModel() as model:
        fetch(model, "POST", "/v1/messages/count_tokens", PROMPT)
        fetch(model, "POST", "/v1/messages", {**PROMPT, "max_tokens": 1})
        with pytest.raises(TimeoutError, match="0 of 1 requests"):
            model.wait_for_request(1, timeout=0)

        fetch(model, "POST", "/v1/messages", PROMPT)

        assert model.wait_for_request(1, timeout=0).last_text == "go"
        assert [request.kind for request in model.requests] == [None, "auxiliary", "main"]


def test_a_model_keeps_so_many_requests_and_counts_all() -> None:
    with ScriptedModel(keep=2) as model:
        for number in range(1, 5):
            messages = [{"role": "user", "content": f"prompt {number}"}]
            fetch(model, "POST", "/v1/messages", {**PROMPT, "messages": messages})

        assert [each.last_text for each in model.asked] == ["prompt 3", "prompt 4"]
        assert len(model.requests) == 2
        assert model.wait_for_request(3, timeout=0).last_text == "prompt 3"
        with pytest.raises(UsageError, match="kept"):
            model.wait_for_request(2, timeout=0)
        with pytest.raises(TimeoutError, match="4 of 5 requests"):
            model.wait_for_request(5, timeout=0)


@pytest.mark.parametrize("keep", [0, -1, True, "2"])
def test_what_a_model_keeps_is_a_number_of_requests(keep: Any) -> None:
    with pytest.raises(UsageError, match="keep"):
        ScriptedModel(keep=keep)


def test_a_request_that_comes_later_wakes_who_waits_for_it() -> None:
    with ScriptedModel() as model:
        asking = threading.Thread(target=fetch, args=(model, "POST", "/v1/messages", PROMPT))
        asking.start()

        request = model.wait_for_request(1, TIMEOUT)
        asking.join(TIMEOUT)

    assert request.last_text == "go"


def test_each_release_ends_one_stall_of_a_step() -> None:
    script = Script(say("a") + stall() + say("b") + stall() + say("c"))
    with ScriptedModel(script) as model, client_of(model) as client:
        client.request("POST", "/v1/messages", json.dumps(STREAMED))
        model.release(TIMEOUT)
        model.release(TIMEOUT)

        assert text_of(events_in(client.getresponse().read())) == "abc"


def test_releasing_what_does_not_stall_is_an_error() -> None:
    with ScriptedModel() as model, pytest.raises(TimeoutError, match="nothing stalled"):
        model.release(timeout=0)


@pytest.mark.parametrize("body", [PROMPT, STREAMED])
def test_a_bounded_stall_ends_by_itself(body: dict[str, Any]) -> None:
    with ScriptedModel(Script(stall(0.01) + say("late"))) as model, client_of(model) as client:
        client.request("POST", "/v1/messages", json.dumps(body))

        assert b"late" in client.getresponse().read()


def test_closing_lets_go_of_stalls_and_leaves_no_thread(capfd: pytest.CaptureFixture[str]) -> None:
    before = set(threading.enumerate())
    model = ScriptedModel(Script(stall(), say("half") + stall()))
    with model, client_of(model) as first, client_of(model) as second, client_of(model) as idle:
        idle.connect()
        for count, client in enumerate((first, second), start=1):
            client.request("POST", "/v1/messages", json.dumps(STREAMED))
            model.wait_for_request(count, TIMEOUT)
        started = time.monotonic()

        model.close()

        assert time.monotonic() - started < 1.0
        assert set(threading.enumerate()) == before
    assert capfd.readouterr() == ("", "")


def test_a_client_that_leaves_ends_its_stall_without_noise(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with ScriptedModel(Script(stall())) as model:
        before = set(threading.enumerate())
        with client_of(model) as client:
            client.request("POST", "/v1/messages", json.dumps(STREAMED))
            model.wait_for_request(1, TIMEOUT)
            [connection] = set(threading.enumerate()) - before

        connection.join(TIMEOUT)

        assert not connection.is_alive()
    assert capfd.readouterr() == ("", "")


def test_a_reset_connection_makes_no_noise(capfd: pytest.CaptureFixture[str]) -> None:
    script = Script(say("x" * 100_000, chunks=1000))
    with ScriptedModel(script) as model:
        address = urlsplit(model.url)
        with socket.create_connection((address.hostname, address.port or 0), TIMEOUT) as raw:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            body = json.dumps(STREAMED)
            head = f"POST /v1/messages HTTP/1.1\r\ncontent-length: {len(body)}\r\n\r\n"
            raw.sendall((head + body).encode())
            model.wait_for_request(1, TIMEOUT)

    assert capfd.readouterr() == ("", "")


def test_a_model_has_no_address_before_it_is_opened() -> None:
    with pytest.raises(RuntimeError, match="inside `with"):
        _ = ScriptedModel().url


def test_closing_twice_is_fine() -> None:
    with ScriptedModel() as model:
        port = urlsplit(model.url).port
        model.close()

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port or 0), TIMEOUT)
