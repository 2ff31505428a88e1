"""What became of a prompt, as the CLI's own session file tells it.

A file holds one JSON object per line. Each entry names the one before it, so what belongs to a
prompt are its descendants, up to the next prompt. Lines that are torn or unknown are passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from steersman import _json

__all__ = ["answer_to", "has_prompt", "was_folded"]

PARAGRAPH = "\n\n"
"""Stands between the texts of two messages of one turn."""

SYNTHETIC = "<synthetic>"
"""The model of messages that the CLI wrote itself."""


def answer_to(lines: Iterable[bytes], uuid: str) -> str:
    """All that the main agent wrote about the prompt of that uuid; empty if there is nothing."""
    chain: set[str] = set()
    texts: dict[str, str] = {}
    for entry in _entries(lines):
        if _names(entry, uuid):
            chain.add(str(entry.get("uuid")))
        elif entry.get("parentUuid") in chain and not _is_prompt(entry):
            chain.add(str(entry.get("uuid")))
            for message_id, text in _texts(entry):
                texts[message_id] = texts.get(message_id, "") + text
    return PARAGRAPH.join(text for text in texts.values() if text)


def has_prompt(lines: Iterable[bytes], uuid: str) -> bool:
    """Whether the CLI has taken the prompt of that uuid up."""
    return any(_names(entry, uuid) for entry in _entries(lines))


def was_folded(lines: Iterable[bytes], uuid: str) -> bool:
    """Whether it became part of a turn that was under way; the CLI does not know its uuid again."""
    return any(_folds(entry, uuid) for entry in _entries(lines))


def _entries(lines: Iterable[bytes]) -> Iterator[Mapping[str, Any]]:
    for line in lines:
        try:
            entry = _json.loads(line)
        except ValueError:
            continue
        if _json.is_object(entry):
            yield entry


def _names(entry: Mapping[str, Any], uuid: str) -> bool:
    return (entry.get("type") == "user" and entry.get("uuid") == uuid) or _folds(entry, uuid)


def _folds(entry: Mapping[str, Any], uuid: str) -> bool:
    folded = entry.get("attachment") if entry.get("type") == "attachment" else None
    return _json.is_object(folded) and folded.get("source_uuid") == uuid


def _is_prompt(entry: Mapping[str, Any]) -> bool:
    """Whether somebody said something new, and it is no tool's result nor the CLI's own note."""
    if entry.get("type") != "user" or entry.get("isMeta"):
        return False
    return not any(block.get("type") == "tool_result" for block in _blocks(entry))


def _texts(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    message = entry.get("message")
    is_said = entry.get("type") == "assistant" and not entry.get("isApiErrorMessage")
    if not is_said or not _json.is_object(message) or message.get("model") == SYNTHETIC:
        return
    for block in _blocks(entry):
        if block.get("type") == "text":
            yield str(message.get("id")), str(block.get("text", ""))


def _blocks(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    message = entry.get("message")
    content = message.get("content") if _json.is_object(message) else None
    return [block for block in content if _json.is_object(block)] if _json.is_array(content) else []
