"""The result of a turn as one JSON object, and a message as one line."""

from __future__ import annotations

import json

from steersman import _json
from steersman._json import JsonDict
from steersman.errors import SteersmanError
from steersman.journal import TurnResult
from steersman.messages.parsing import Message, to_json


def as_object(result: TurnResult, session_id: str | None, status: int) -> JsonDict:
    """Return the result as plain values."""
    cause = result.cause
    return {
        "status": status,
        "outcome": result.outcome,
        "answer": result.answer,
        "text": result.text,
        "structured_output": result.structured_output,
        "session_id": session_id,
        "cost_usd": result.cost_usd,
        "duration": round(result.duration, 3),
        "usage": {
            "input_tokens": result.usage.input_tokens,
            "output_tokens": result.usage.output_tokens,
        },
        "tool_calls": [
            {"name": each.name, "input": dict(each.input), "is_error": each.is_error}
            for each in result.tool_calls
        ],
        "denials": result.permission_denials,
        "error": None if cause is None else error_object(cause),
    }


def error_object(error: SteersmanError) -> JsonDict:
    """Return an error as plain values."""
    return {"code": error.code, "text": error.what, "cure": error.hint}


def line_of(value: JsonDict) -> str:
    """Return an object as one line of ASCII, so that no terminal and no encoding matters."""
    return json.dumps(value, default=str).replace("\x7f", "\\u007f")


def message_line(message: Message) -> str:
    """Return a message of the CLI as one line of ASCII."""
    return line_of(_json.loads(to_json(message)))
