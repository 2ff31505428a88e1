"""`type` and `subtype` of typed messages: the words of the line."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from steersman.messages import Message
from steersman.messages.base import MessageWire
from steersman.messages.parsing import UnknownMessage, parse_message
from steersman.messages.system import SystemWire

KNOWN = [each for each in get_args(Message) if each is not UnknownMessage]


def line_for(cls: type[MessageWire]) -> dict[str, object]:
    tag = str(cls.__struct_config__.tag)
    return {"type": "system", "subtype": tag} if issubclass(cls, SystemWire) else {"type": tag}


@pytest.mark.parametrize("cls", KNOWN, ids=lambda cls: cls.__name__)
def test_every_class_has_the_words_of_its_line(cls: type[MessageWire]) -> None:
    line = line_for(cls)

    message = parse_message(json.dumps(line).encode())

    assert type(message) is cls
    assert message.type == line["type"]
    assert message.subtype == line.get("subtype", "" if cls.__name__ == "Result" else None)


def test_a_result_has_the_subtype_of_its_line() -> None:
    message = parse_message({"type": "result", "subtype": "error_max_turns"})

    assert (message.type, message.subtype) == ("result", "error_max_turns")


def test_an_unknown_message_has_its_own() -> None:
    known = parse_message({"type": "system", "subtype": "brand_new"})
    plain = parse_message({"type": "brand_new"})

    assert (known.type, known.subtype) == ("system", "brand_new")
    assert (plain.type, plain.subtype) == ("brand_new", None)
