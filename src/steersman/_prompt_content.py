"""Checks prompts and converts them to the content and the fields of a user message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from steersman import _json
from steersman._json import JsonDict, JsonObject, is_mapping, is_sequence
from steersman.errors import Described, UsageError
from steersman.options.checks import plain

Prompt = str | Sequence[JsonObject]
"""A text, or content blocks of the Messages API, which `steersman.prompts` builds."""

LARGEST = 32 * 1024 * 1024
"""The API's limit for one request, in bytes."""

OWN_FIELDS = {
    "type": "nothing: it is always `user`",
    "message": "prompt",
    "uuid": "uuid=",
    "priority": "when=",
    "shouldQuery": "query=",
    "client_composed": "the option verbatim_prompts=",
}
"""Fields of a user message that we write, and what sets them."""

ALLOWED = 'a non-empty text, or a list of content blocks such as {"type": "text", "text": ...}'

ALLOWED_EMPTY = 'a text, or a list of content blocks such as {"type": "text", "text": ...}'


def prompt_content(prompt: object, *, may_be_empty: bool = False) -> str | list[JsonDict]:
    """Return `prompt` as the content of a user message. Raises `UsageError`."""
    if isinstance(prompt, str) and (may_be_empty or prompt.strip()):
        _refuse_large(len(prompt.encode("utf-8", "surrogatepass")))
        return prompt
    if not is_sequence(prompt) or not (may_be_empty or prompt):
        raise UsageError("prompt", prompt, ALLOWED_EMPTY if may_be_empty else ALLOWED)
    blocks = [_block_of(position, block) for position, block in enumerate(prompt)]
    _refuse_large(len(_json.dumps(blocks)))
    return blocks


def line_fields(given: object) -> JsonDict:
    """Return further fields of a user message. Raises `UsageError` for those that we write."""
    if not is_mapping(given):
        raise UsageError("fields", given, "a mapping of further fields of the user message")
    for name, instead in OWN_FIELDS.items():
        if name in given:
            raise UsageError(
                f"fields[{name!r}]",
                given[name],
                "a field that steersman does not write itself",
                hint=f"what sets it is {instead}",
            )
    return cast("JsonDict", plain("fields", given))


def _block_of(position: int, block: object) -> JsonDict:
    if not is_mapping(block) or not isinstance(block.get("type"), str):
        raise UsageError(f"prompt[{position}]", block, "a mapping with a type")
    return cast("JsonDict", plain(f"prompt[{position}]", block))


def _refuse_large(size: int) -> None:
    if size > LARGEST:
        raise UsageError(
            "prompt", Described(f"{size} bytes"), f"at most {LARGEST} bytes: the API's own limit"
        )
