"""Looks up in the CLI's session file what became of a prompt.

A file has one JSON object per line. Each entry names its parent, so the descendants of a prompt, up
to the next prompt, belong to it. Lines that are cut off or unknown are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from steersman import _json
from steersman._json import JsonObject

Ending = Literal["unknown", "unfinished", "interrupted", "failed", "answered"]
"""How a turn ended; `unknown` if the file does not have the prompt."""

PARAGRAPH = "\n\n"
"""Separates the texts of two messages of one turn."""

STOPPED = "[Request interrupted by user"
"""The beginning of the note that the CLI writes when a turn is interrupted."""

SYNTHETIC = "<synthetic>"
"""The `model` of messages that the CLI wrote itself.

An error of the API is one. Another is put behind a prompt that was never answered, when the
conversation is resumed: "No response requested."
"""

TOO_MANY_TURNS = "max_turns_reached"
"""The attachment that the CLI writes when a turn has reached `max_turns`."""


DEFERRED = "hook_deferred_tool"
"""The attachment that the CLI writes when a hook has deferred a call."""


def answer_to(lines: Iterable[bytes], *uuids: str) -> str:
    """Return the text that the main agent wrote for the prompts `uuids`; empty if there is none."""
    texts: dict[str, str] = {}
    for entry in _belonging(lines, uuids):
        for message_id, text in _texts(entry):
            texts[message_id] = texts.get(message_id, "") + text
    return PARAGRAPH.join(text for text in texts.values() if text)


def is_unfinished(lines: Iterable[bytes], *uuids: str) -> bool:
    """Whether the CLI began to answer these prompts and did not finish, because it was lost."""
    return ending_of(lines, *uuids) == "unfinished"


def ending_of(lines: Iterable[bytes], *uuids: str) -> Ending:
    """Return how the turn of these prompts ended."""
    last = _last(lines, uuids)
    if last is None:
        return "unknown"
    if _is_stop(last):
        return "interrupted"
    if last.get("isApiErrorMessage") or _attached(last) == TOO_MANY_TURNS:
        return "failed"
    message = last.get("message")
    goes_on = _json.is_object(message) and message.get("stop_reason") == "tool_use"
    if last.get("type") == "user" or goes_on or _has(last, "tool_use"):
        return "unfinished"
    return "answered"


def failure_of(lines: Iterable[bytes], *uuids: str) -> str:
    """Return why the turn of these prompts failed, as the CLI wrote it; empty if it did not."""
    last = _last(lines, uuids)
    if last is None:
        return ""
    if _attached(last) == TOO_MANY_TURNS:
        return "the turn reached its maximum number of turns"
    texts = [str(block.get("text", "")) for block in _blocks(last)]
    return "\n".join(texts) if last.get("isApiErrorMessage") else ""


def deferred_tool(lines: Iterable[bytes], *uuids: str) -> str | None:
    """Return the tool whose call was deferred in the turn of these prompts; None if none waits.

    Without `uuids` the turn does not matter.
    A CLI that resumes the conversation asks about that call, and continues the turn by itself.
    """
    found: dict[str, str] = {}
    for entry in _belonging(lines, uuids) if uuids else _entries(lines):
        attachment = entry.get("attachment")
        if _attached(entry) == DEFERRED and _json.is_object(attachment):
            found[str(attachment.get("toolUseID"))] = str(attachment.get("toolName"))
        for block in _blocks(entry):
            if block.get("type") == "tool_result":
                found.pop(str(block.get("tool_use_id")), None)
    return next(reversed(found.values()), None)


def has_prompt(lines: Iterable[bytes], uuid: str) -> bool:
    """Whether the CLI has stored the prompt with this uuid."""
    return any(_names(entry, uuid) for entry in _entries(lines))


def was_folded(lines: Iterable[bytes], uuid: str) -> bool:
    """Whether the prompt was folded into a running turn.

    The CLI stores such a prompt as an attachment and does not recognise its uuid after a resume.
    """
    return any(_folds(entry, uuid) for entry in _entries(lines))


def was_followed(lines: Iterable[bytes], *uuids: str) -> bool:
    """Whether another prompt stands behind the last of these: the model has left their turn."""
    is_known = is_other = False
    for entry in _entries(lines):
        if any(_names(entry, uuid) for uuid in uuids):
            is_known, is_other = True, False
        elif _is_prompt(entry) and not entry.get("isSidechain"):
            is_other = is_known
    return is_other


def _last(lines: Iterable[bytes], uuids: Sequence[str]) -> JsonObject | None:
    """Return the entry that shows how the turn of these prompts ended."""
    last: JsonObject | None = None
    for entry in _belonging(lines, uuids):
        is_message = entry.get("type") in ("user", "assistant") and not _is_filler(entry)
        if is_message or _attached(entry) == TOO_MANY_TURNS:
            last = entry
    return last


def _belonging(lines: Iterable[bytes], uuids: Sequence[str]) -> Iterator[JsonObject]:
    """Yield the prompts and their descendants."""
    chain: set[str] = set()
    for entry in _entries(lines):
        is_ours = entry.get("parentUuid") in chain and not _is_prompt(entry)
        if is_ours or any(_names(entry, uuid) for uuid in uuids):
            chain.add(str(entry.get("uuid")))
            yield entry


def _entries(lines: Iterable[bytes]) -> Iterator[JsonObject]:
    for line in lines:
        try:
            entry = _json.loads(line)
        except ValueError:
            continue
        if _json.is_object(entry):
            yield entry


def _names(entry: JsonObject, uuid: str) -> bool:
    return (entry.get("type") == "user" and entry.get("uuid") == uuid) or _folds(entry, uuid)


def _folds(entry: JsonObject, uuid: str) -> bool:
    folded = entry.get("attachment") if entry.get("type") == "attachment" else None
    return _json.is_object(folded) and folded.get("source_uuid") == uuid


def _is_prompt(entry: JsonObject) -> bool:
    """Whether `entry` is a new prompt, and not a tool result or a note of the CLI."""
    if entry.get("type") != "user" or entry.get("isMeta") or _is_stop(entry):
        return False
    return not _has(entry, "tool_result")


def _is_stop(entry: JsonObject) -> bool:
    """Whether `entry` is the CLI's note that the turn was interrupted."""
    texts = [str(block.get("text", "")) for block in _blocks(entry)]
    return entry.get("type") == "user" and any(text.startswith(STOPPED) for text in texts)


def _is_filler(entry: JsonObject) -> bool:
    """Whether `entry` is what the CLI put in the place of an answer that never came."""
    return _is_synthetic(entry) and not entry.get("isApiErrorMessage")


def _is_synthetic(entry: JsonObject) -> bool:
    message = entry.get("message")
    return _json.is_object(message) and message.get("model") == SYNTHETIC


def _attached(entry: JsonObject) -> object:
    """Return the kind of an attachment; None for other entries."""
    attachment = entry.get("attachment") if entry.get("type") == "attachment" else None
    return attachment.get("type") if _json.is_object(attachment) else None


def _has(entry: JsonObject, kind: str) -> bool:
    return any(block.get("type") == kind for block in _blocks(entry))


def _texts(entry: JsonObject) -> Iterator[tuple[str, str]]:
    message = entry.get("message")
    is_assistant = entry.get("type") == "assistant" and not entry.get("isApiErrorMessage")
    if not is_assistant or not _json.is_object(message) or _is_synthetic(entry):
        return
    for block in _blocks(entry):
        if block.get("type") == "text":
            yield str(message.get("id")), str(block.get("text", ""))


def _blocks(entry: JsonObject) -> list[JsonObject]:
    message = entry.get("message")
    content = message.get("content") if _json.is_object(message) else None
    return [block for block in content if _json.is_object(block)] if _json.is_array(content) else []
