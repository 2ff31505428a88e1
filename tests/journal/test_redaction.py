from __future__ import annotations

import json
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

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
