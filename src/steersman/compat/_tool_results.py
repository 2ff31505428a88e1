"""What a tool of the official form returns → the result of a call."""

from __future__ import annotations

import logging
from typing import Any

from steersman._json import JsonDict, is_mapping
from steersman.tools.results import ToolResult, plain_text, text_block

logger = logging.getLogger("steersman.compat")


NOT_READ = frozenset({"_meta", "structuredContent"})
"""Fields of a result that are not sent, as in the official SDK."""


def result_of(given: Any) -> object:
    """Return the result that the model gets, or what `wire_result` can read.

    Links and texts of resources become text, as in the official SDK. Other blocks have no form that
    the model reads; they are left out, which is logged.
    """
    if not is_mapping(given):
        return given
    for name in NOT_READ & given.keys():
        logger.warning("a tool returned %r, which the model does not read: it is left out", name)
    content = given.get("content", ())
    blocks = [content] if isinstance(content, str) else content
    found = [_block(each) for each in blocks or ()]
    return ToolResult(
        [block for block in found if block is not None], is_error=bool(given.get("is_error"))
    )


def _block(given: Any) -> JsonDict | None:
    if isinstance(given, str):
        return text_block(given)
    if not is_mapping(given):
        given = given.model_dump(mode="json", by_alias=True, exclude_none=True)
    kind = given.get("type")
    if kind == "text":
        text = given["text"]
        return text_block(text if isinstance(text, str) else plain_text(text))
    if kind == "image":
        return {"type": "image", "data": given["data"], "mimeType": given["mimeType"]}
    if kind == "resource_link":
        parts = [given.get(name) for name in ("name", "uri", "description")]
        return text_block("\n".join(str(each) for each in parts if each) or "Resource link")
    resource: Any = given.get("resource")
    if kind == "resource" and is_mapping(resource) and "text" in resource:
        return text_block(str(resource["text"]))
    logger.warning("a tool returned a block of the type %r, which is left out", kind)
    return None
