from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman import _json
from steersman.journal.redaction import MARK, Redactor, secrets_in
from tests.samples.strategies import ANY_JSON, ANY_TEXT

SECRETS = st.text(st.characters(), min_size=6, max_size=12)


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from texts_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_in(inner)


def test_a_secret_is_replaced_in_text_and_in_lines() -> None:
    redactor = Redactor(["sk-secret"])

    assert redactor.text("key=sk-secret;") == f"key={MARK};"
    assert redactor.line(b'{"key":"sk-secret"}') == b'{"key":"[redacted]"}'


@pytest.mark.parametrize("line", [b"debug: sk-secret", b'{"key":"sk-secret"', b"\xff sk-secret"])
def test_of_a_line_with_a_secret_that_is_no_json_nothing_is_kept(line: bytes) -> None:
    assert Redactor(["sk-secret"]).line(line) == MARK.encode()


def test_a_line_without_a_secret_is_not_even_copied() -> None:
    line = b'{"key":"value"}'

    assert Redactor(["sk-secret"]).line(line) is line


def test_a_secret_inside_another_leaves_no_rest_of_it() -> None:
    redactor = Redactor(["secret", "secret-and-more"])

    assert redactor.text("secret-and-more") == MARK


def test_a_short_value_is_left_alone() -> None:
    assert Redactor(["1", "", "five5"]).text("1 and five5") == "1 and five5"


@given(secret=SECRETS, around=ANY_TEXT, beside=ANY_JSON)
def test_a_secret_is_gone_wherever_it_stood_in_a_line_and_the_line_is_still_json(
    secret: str, around: str, beside: Any
) -> None:
    secret = json.loads(json.dumps(secret))
    said = {"text": around + secret + around, secret: [secret], "beside": beside}

    line = Redactor([secret]).line(_json.dumps(said))

    assert not any(secret in text for text in texts_in(json.loads(line)))


def test_a_secret_is_found_although_a_surrogate_made_the_line_ascii() -> None:
    line = _json.dumps({"key": "pässwörd", "beside": "\ud800"})

    assert _json.loads(Redactor(["pässwörd"]).line(line)) == {"key": MARK, "beside": "\ud800"}


def test_a_match_that_begins_inside_an_escape_does_not_break_the_line() -> None:
    line = _json.dumps({"key": "\nabcdef"})

    assert isinstance(_json.loads(Redactor(["nabcdef"]).line(line)), dict)


def test_values_are_secret_by_their_names_or_by_where_they_stand() -> None:
    env = {"API_TOKEN": "by name", "PATH": "/usr/bin", "db_password": "too"}
    servers = {
        "one": {"command": "x", "env": {"PLAIN": "in env"}, "args": ["public"]},
        "two": {"url": "https://x", "headers": MappingProxyType({"X-Any": "in headers"})},
        "three": {"oauth": {"clientSecret": ["nested"]}, "timeout": 5},
    }

    found = set(secrets_in(env, servers, None, [{"apiKey": "in a list"}]))

    assert found == {"by name", "too", "in env", "in headers", "nested", "in a list"}


def found_in(env: dict[str, str], *configurations: Any) -> set[str]:
    return set(secrets_in(env, *configurations))


def test_the_token_of_a_header_is_a_secret_without_its_scheme() -> None:
    servers = {"web": {"headers": {"Authorization": "Bearer canary-42", "X-Key": "Basic YTpi"}}}

    assert {"Bearer canary-42", "canary-42"} <= found_in({}, servers)


def test_the_password_of_a_basic_header_is_a_secret() -> None:
    encoded = base64.b64encode(b"ann:open-sesame").decode()

    found = found_in({}, {"headers": {"Authorization": f"Basic {encoded}"}})

    assert {encoded, "open-sesame"} <= found


def test_the_values_of_a_cookie_are_secrets() -> None:
    found = found_in({}, {"headers": {"Cookie": "sid=canary-42; theme=plain-dark"}})

    assert "canary-42" in found


@pytest.mark.parametrize(
    ("address", "secret"),
    [
        ("https://ann:canary-42@host/x", "canary-42"),
        ("https://ann:can%40ry-42@host/x", "can@ry-42"),
        ("https://canary-42@host/x", "canary-42"),
        ("https://host/x?token=canary-42", "canary-42"),
        ("https://host/x?a=1&api_key=canary-42&b=2", "canary-42"),
        ("https://host/x?apikey=canary%2042", "canary 42"),
        ("https://host/x#access_token=canary-42", "canary-42"),
    ],
)
def test_a_secret_part_of_an_address_is_known_wherever_the_address_is(
    address: str, secret: str
) -> None:
    assert secret in found_in({}, {"web": {"url": address}})
    assert secret in found_in({"DATABASE_URL": address})
    assert secret in found_in({}, {"one": {"command": "x", "args": ["--from", address]}})


def test_an_address_without_a_secret_has_none() -> None:
    assert found_in({}, {"url": "https://host:8080/path?page=something&size=enormous"}) == set()


@pytest.mark.parametrize(
    "args",
    [
        ["--token=canary-42"],
        ["--api-key", "canary-42"],
        ["--apiKey=canary-42"],
        ["-e", "GITHUB_PAT=canary-42"],
        ["--header", "Authorization: Bearer canary-42"],
        ["--header=X-Api-Key: canary-42"],
        ["--password", "canary-42", "--verbose"],
    ],
)
def test_a_secret_among_the_arguments_of_a_server_is_known(args: list[str]) -> None:
    assert "canary-42" in found_in({}, {"one": {"command": "x", "args": args}})


def test_other_arguments_of_a_server_are_not_secret() -> None:
    assert found_in({}, {"one": {"command": "npx", "args": []}}) == set()
    args = ["-y", "@scope/server", "--root", "/srv/data", "--max-tokens", "--keyboard=english"]

    assert found_in({}, {"one": {"command": "npx", "args": args}}) == set()


@pytest.mark.parametrize(
    "name",
    [
        "GITHUB_PAT",
        "GITHUB_TOKEN",
        "OPENAI_API_KEY",
        "APP_SECRET",
        "DB_PASSWORD",
        "DB_PASS",
        "DB_PWD",
        "GOOGLE_CREDENTIALS",
        "SSH_PASSPHRASE",
    ],
)
def test_a_variable_is_secret_by_its_name(name: str) -> None:
    assert found_in({name: "canary-42"}) == {"canary-42"}


def test_ordinary_variables_are_not_secret() -> None:
    env = {"PATH": "/usr/bin:/bin", "OLDPWD": "/home", "COMPASS": "northwest"}

    assert found_in(env) == set()


def test_a_configuration_as_json_text_is_searched_too() -> None:
    assert "canary-42" in found_in({}, '{"env": {"ANY": "canary-42"}}')


def test_short_parts_are_left_alone() -> None:
    redactor = Redactor(secrets_in({"A_TOKEN": "true", "B_KEY": "1"}, {"url": "https://a:b@c/"}))

    assert redactor.shown("1 true a b c") == "1 true a b c"


SHAPES = [
    "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUv",
    "ghp_" + "a1B2" * 9,
    "github_pat_" + "a1B2" * 9,
    "xoxb-1234567890-abcdefghij",
    "xoxp-1234567890-abcdefghij",
    "AKIAIOSFODNN7EXAMPLE",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLWhlcmU",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIB\nAAAA\n-----END RSA PRIVATE KEY-----",
]


@pytest.mark.parametrize("secret", SHAPES)
def test_free_text_is_shown_without_what_looks_like_a_key(secret: str) -> None:
    shown = Redactor([]).shown(f"before {secret} after")

    assert shown == f"before {MARK} after"


@pytest.mark.parametrize(
    "text",
    [
        "the task-force asked for a desk-and-chair",
        "commit 3f786850e387550fdab836ed7e6dc881de2300, 123e4567-e89b-12d3-a456-426614174000",
        "/home/ann/projects/skip-the-tests/AKIA.txt: No such file or directory",
        "Error: ENOENT at eyJ",
        "max_tokens=4096 and KEY=short",
        "http://127.0.0.1:8080/v1/messages?beta=true",
    ],
)
def test_ordinary_text_is_shown_as_it_is(text: str) -> None:
    assert Redactor([]).shown(text) == text


def test_lines_of_the_journal_are_not_searched_for_shapes() -> None:
    line = _json.dumps({"text": SHAPES[0]})

    assert Redactor([]).line(line) is line


@pytest.mark.parametrize("depth", [100, 500, 900, 5000])
def test_a_deeply_nested_line_or_configuration_leaks_nothing_and_raises_nothing(depth: int) -> None:
    text = "[" * depth + '{"env":{"A":"canary-42"}}' + "]" * depth

    assert b"canary" not in Redactor(["canary-42"]).line(text.encode())
    assert depth >= 900 or "canary-42" in found_in({}, text)
    found_in({}, text)
