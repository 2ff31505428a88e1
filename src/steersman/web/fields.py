"""The fields of a request's body: read with their types, or refused in words."""

from __future__ import annotations

import base64
import binascii
from typing import TypeGuard, get_args

from steersman import _json, prompts
from steersman._json import Json, JsonDict
from steersman.agent import Prompt, When
from steersman.web.failures import Refusal, bad_request
from steersman.web.limits import WebLimits

MOST_NAME = 200
MOST_KEY = 500


class Fields:
    """The fields of one request. Those that are not known are ignored."""

    def __init__(self, given: Json) -> None:
        if not _json.is_object(given):
            raise bad_request("the body must be a JSON object")
        self._given = given

    def text(self, name: str, most: int = MOST_NAME) -> str:
        """Return a text that must be there."""
        found = self.text_or_none(name, most)
        if found is None:
            raise bad_request(f"{name} is missing")
        return found

    def text_or_none(self, name: str, most: int = MOST_NAME) -> str | None:
        """Return a text of up to `most` characters, or None if there is none."""
        found = self._given.get(name)
        if found is None:
            return None
        if not isinstance(found, str) or not found or len(found) > most:
            raise bad_request(f"{name} must be a text of 1 to {most} characters")
        return found

    def flag(self, name: str) -> bool:
        """Return a flag; false if it is not there."""
        found = self._given.get(name, False)
        if not isinstance(found, bool):
            raise bad_request(f"{name} must be true or false")
        return found

    def when(self) -> When:
        """Return when a prompt shall reach the model."""
        found = self._given.get("when", "later")
        if not _is_when(found):
            raise bad_request("when must be one of later, next, now")
        return found

    def objects(self, name: str, most: int) -> list[JsonDict]:
        """Return a list of up to `most` objects; empty if it is not there."""
        found = self._given.get(name, [])
        if not _json.is_array(found) or not all(map(_json.is_object, found)):
            raise bad_request(f"{name} must be a list of objects")
        if len(found) > most:
            raise bad_request(f"{name} must have at most {most} items")
        return found

    def object(self, name: str) -> JsonDict:
        """Return an object that must be there."""
        found = self._given.get(name)
        if not _json.is_object(found):
            raise bad_request(f"{name} must be an object")
        return found

    def has(self, name: str) -> bool:
        """Whether the field is there."""
        return name in self._given


def prompt_of(fields: Fields, limits: WebLimits) -> Prompt | None:
    """Return the prompt in `text` and `attachments`; None if there is neither."""
    text = fields.text_or_none("text", limits.attachments)
    if text is not None and len(text.encode("utf-8", "surrogatepass")) > limits.body:
        words = f"a text may have {limits.body} bytes; attach what is larger"
        raise Refusal(413, "too_large", words, most=limits.body)
    attached = [_block_of(Fields(each), limits) for each in fields.objects("attachments", 100)]
    if not attached:
        return text
    return [*attached, *([] if text is None else [prompts.text(text)])]


def _block_of(attachment: Fields, limits: WebLimits) -> JsonDict:
    kind = attachment.text("media_type")
    name = attachment.text_or_none("name")
    try:
        data = base64.b64decode(attachment.text("data", 2 * limits.attachments), validate=True)
    except (binascii.Error, ValueError):
        raise bad_request("data of an attachment must be base64") from None
    if kind.startswith("image/"):
        return prompts.image(data, kind)
    if kind == "application/pdf":
        return prompts.document(data, title=name)
    if kind != "text/plain":
        words = "attachments may be PNG, JPEG, GIF, WebP, PDF, or text/plain"
        raise bad_request(words)
    try:
        content = data.decode()
    except UnicodeDecodeError:
        raise bad_request("an attachment of text/plain must be UTF-8") from None
    source = {"type": "text", "media_type": "text/plain", "data": content}
    return {"type": "document", "source": source, "title": name or "text"}


def _is_when(found: object) -> TypeGuard[When]:
    return found in get_args(When)
