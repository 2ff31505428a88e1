"""What may be sent as a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from steersman.errors import UsageError

__all__ = ["Prompt", "content_of"]

Prompt = str | Sequence[Mapping[str, Any]]
"""A text, or content blocks as the Messages API takes them."""

ALLOWED = 'a non-empty text, or a list of content blocks such as {"type": "text", "text": ...}'


def content_of(prompt: object) -> str | list[dict[str, Any]]:
    """The content of the user message that says `prompt`. Raises `UsageError`."""
    if isinstance(prompt, str):
        if not prompt.strip():
            raise UsageError("prompt", prompt, ALLOWED)
        return prompt
    if not isinstance(prompt, Sequence) or isinstance(prompt, bytes | bytearray) or not prompt:
        raise UsageError("prompt", prompt, ALLOWED)
    blocks = cast("Sequence[Any]", prompt)
    return [_block_of(position, block) for position, block in enumerate(blocks)]


def _block_of(position: int, block: Any) -> dict[str, Any]:
    fields = cast("Mapping[str, Any]", block) if isinstance(block, Mapping) else {}
    if not isinstance(fields.get("type"), str):
        raise UsageError(f"prompt[{position}]", block, "a mapping with a type")
    return dict(fields)
