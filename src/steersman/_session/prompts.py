"""What may be sent as a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from steersman._json import is_mapping, is_sequence
from steersman.errors import UsageError
from steersman.options.checks import plain

__all__ = ["Prompt", "content_of"]

Prompt = str | Sequence[Mapping[str, Any]]
"""A text, or content blocks as the Messages API takes them."""

ALLOWED = 'a non-empty text, or a list of content blocks such as {"type": "text", "text": ...}'


def content_of(prompt: object) -> str | list[dict[str, Any]]:
    """The content of the user message that says `prompt`. Raises `UsageError`."""
    if isinstance(prompt, str) and prompt.strip():
        return prompt
    if not is_sequence(prompt) or not prompt:
        raise UsageError("prompt", prompt, ALLOWED)
    return [_block_of(position, block) for position, block in enumerate(prompt)]


def _block_of(position: int, block: object) -> dict[str, Any]:
    if not is_mapping(block) or not isinstance(block.get("type"), str):
        raise UsageError(f"prompt[{position}]", block, "a mapping with a type")
    return cast("dict[str, Any]", plain(f"prompt[{position}]", block))
