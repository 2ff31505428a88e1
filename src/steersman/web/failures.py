"""Refusals: a status, a code and words; never a traceback, never a path of this machine."""

from __future__ import annotations

import logging

from starlette.responses import Response

from steersman import _json
from steersman._json import Json, JsonDict
from steersman.errors import (
    AlreadyAnswered,
    AskError,
    AskGone,
    AskNotFound,
    ChannelClosed,
    KeyTaken,
    SessionInUse,
    SteersmanError,
    UsageError,
)

NOT_LOGGED_IN = 401

LOG = logging.getLogger("steersman.web")

SHOWN = frozenset(
    {"answer", "attachments", "data", "key", "mode", "model", "prompt", "seen", "session", "text"}
    | {"turn", "uuid", "when", "also_queued", "hard", "media_type", "source", "words"}
)
"""Arguments that viewers give; a `UsageError` about another one may show values of the server."""


class Refusal(Exception):
    """A request is refused: the status, and the body."""

    def __init__(self, status: int, code: str, words: str, **fields: Json) -> None:
        super().__init__(words)
        self.status = status
        self.code = code
        self.words = words
        self.fields = fields

    @property
    def body(self) -> JsonDict:
        """The error as in the body, without the `error` around it."""
        return {"code": self.code, "message": self.words, **self.fields}


def bad_request(words: str) -> Refusal:
    """Return the refusal of a request that is not understood."""
    return Refusal(400, "bad_request", words)


def refusal_of(error: Exception) -> Refusal:
    """Return how `error` is shown to a viewer. What is not shown goes to the log."""
    match error:
        case Refusal():
            return error
        case SteersmanError() if (shown := _shown(error)) is not None:
            return shown
        case SteersmanError():
            LOG.warning("refused: %s", error)
            return Refusal(502, error.code, _first_line(error))
        case _:
            LOG.error("a request failed", exc_info=error)
            return Refusal(500, "internal", "the server failed; its log says why")


def _shown(error: SteersmanError) -> Refusal | None:
    """Return the refusal of an error that viewers can cause; None for all others."""
    status, words, fields = 400, error.what, JsonDict()
    match error:
        case AlreadyAnswered(by=by):
            status, words, fields = 409, error.reason, {"by": by}
        case AskNotFound():
            status, words = 404, "there is no such ask"
        case AskGone():
            status, words = 410, error.reason
        case AskError():
            status, words = 409, error.reason
        case KeyTaken():
            status, words = 409, "another prompt of this session has this key"
        case SessionInUse():
            status, words = 409, "another process has this conversation open"
        case ChannelClosed():
            words = "the session has just closed; send it again"
            return Refusal(409, "session_closed", words)
        case UsageError() if error.argument.partition("[")[0] in SHOWN:
            pass
        case _:
            return None
    return Refusal(status, error.code, words, **fields)


def _first_line(error: SteersmanError) -> str:
    """Return the description of this kind of error: the text of one may name files."""
    return (type(error).__doc__ or "the CLI failed").partition("\n")[0]


def json_response(value: Json, status: int = 200) -> Response:
    """Return `value` as the body of an answer."""
    return Response(_json.dumps(value), status, media_type="application/json")


def error_response(refusal: Refusal) -> Response:
    """Return the answer that refuses a request."""
    response = json_response({"error": refusal.body}, refusal.status)
    if (after := refusal.fields.get("retry_after")) is not None:
        response.headers["Retry-After"] = str(int(after) + 1)
    if refusal.status == NOT_LOGGED_IN:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response
