"""A conversation as Markdown, HTML or JSON, in chunks, so that a long one is never in memory.

What the conversation holds was written by others. In HTML all of it is escaped, and the page loads
and runs nothing. In Markdown there are no HTML tags but our own, no images, and no links but to the
web. Control and direction characters are shown as escapes in both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from steersman import _json
from steersman._json import Json, JsonDict, JsonObject
from steersman._terminal import one_line, printable
from steersman.transcripts.entries import SessionInfo, StoredMessage
from steersman.transcripts.keys import clean_title

UNTITLED = "Conversation"

HTML_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }}
pre, .text {{ white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; }}
pre, .thinking {{ background: #8881; padding: .5rem; }}
section {{ border-top: 1px solid #8885; }}
h2 {{ font-size: 1rem; }}
time {{ color: #888; font-weight: normal; }}
</style>
</head>
<body>
<h1>{title}</h1>
"""

_FENCE = re.compile(r"(`{3,})[^`\n]*$|(~{3,})")
_END = re.compile(r" {0,3}(`+|~+)[ \t]*")
_LANGUAGE = re.compile(r"[ \t]*[\w+#.-]*")
# The begin of a tag, of an image, and the end of a link's text before an address that is not of the
# web, as it is written: an address may be on the next line, or be made of references.
_UNSAFE = re.compile(
    r"<(?=[A-Za-z/!?])|(?<=!)\[|\](?=\((?!https?://)|:(?![ \t]*https?://))", re.IGNORECASE
)
_REFERENCES = {"<": "&lt;", "[": "&#91;", "]": "&#93;"}
_TICKS = re.compile(r"`+")


def to_html(messages: Iterable[StoredMessage], info: SessionInfo | None = None) -> Iterator[str]:
    """Yield the conversation as one HTML page, which loads and runs nothing."""
    from html import escape  # noqa: PLC0415 - only for this format

    yield HTML_HEAD.format(title=escape(_title(info)))
    for message in messages:
        parts = list(parts_of(message))
        if parts:
            heading, time = escape(role_of(message)), escape(clean_title(message.timestamp))
            yield f"<section>\n<h2>{heading} <time>{time}</time></h2>\n"
            for part in parts:
                yield _html(part, escape(part.text), escape(part.label))
            yield "</section>\n"
    yield "</body>\n</html>\n"


def _html(part: Part, text: str, label: str) -> str:
    if part.kind == "text":
        return f'<div class="text" dir="auto">{text}</div>\n'
    return (
        f'<details class="{part.kind}"><summary>{label}</summary><pre dir="auto">{text}</pre>'
        "</details>\n"
    )


def to_markdown(
    messages: Iterable[StoredMessage], info: SessionInfo | None = None
) -> Iterator[str]:
    """Yield the conversation as Markdown; tool calls, results and thinking are folded."""
    from html import escape  # noqa: PLC0415 - only for this format

    yield f"# {_inert(_title(info))}\n"
    for message in messages:
        parts = list(parts_of(message))
        if parts:
            yield f"\n---\n\n## {role_of(message)}\n"
        for part in parts:
            yield _markdown(part, escape(part.label))


def _markdown(part: Part, label: str) -> str:
    if part.kind == "text":
        return f"\n{_harmless(part.text)}\n"
    fence = "`" * max(3, 1 + max((len(each) for each in _TICKS.findall(part.text)), default=0))
    language = "json" if part.is_json else ""
    return (
        f"\n<details>\n<summary>{label}</summary>\n\n"
        f"{fence}{language}\n{part.text}\n{fence}\n\n</details>\n"
    )


def _inert(text: str) -> str:
    """Return one line of text in which nothing is Markdown or HTML."""
    return re.sub(r"([\\`*_\[\]<>#!|~])", r"\\\1", text)


def _harmless(text: str) -> str:
    """Return Markdown without tags, images, and links to other places than the web.

    Outside of blocks of code, what begins one of these is a character reference, which is never
    Markdown, whatever stands before it. A block is only one whose fence is at the very beginning of
    a line, and gets a fence that nothing in it ends, so that every reader sees the same end.
    """
    lines: list[str] = []
    code: list[str] = []
    fence = ""
    for line in text.split("\n"):
        end = _END.fullmatch(line)
        if fence and end and end[1].startswith(fence):
            lines += _block(fence, code)
            fence = ""
        elif fence:
            code.append(line)
        elif opening := _FENCE.match(line):
            fence = opening[1] or opening[2]
            code = [_LANGUAGE.match(line[len(fence) :])[0]]  # type: ignore[index]  # may be empty
        else:
            lines.append(_UNSAFE.sub(lambda found: _REFERENCES[found[0]], line))
    return "\n".join(lines + _block(fence, code) if fence else lines)


def _block(fence: str, code: list[str]) -> list[str]:
    """Return a block of code; `code` is its language, and its lines."""
    language, *lines = code
    runs = re.findall(f"{fence[0]}+", "\n".join(lines))
    whole = fence[0] * max(len(fence), 1 + max(map(len, runs), default=0))
    return [whole + language, *lines, whole]


def to_json(messages: Iterable[StoredMessage], info: SessionInfo | None = None) -> Iterator[str]:
    """Yield the conversation as one JSON object, with a message on each line."""
    about: JsonDict | None = None
    if info is not None:
        about = {name: getattr(info, name) for name in info.__slots__}
    yield f'{{"session":{_json.dumps(about).decode()},"messages":['
    comma = "\n"
    for each in messages:
        message: JsonDict = {
            "type": each.type,
            "uuid": each.uuid,
            "session_id": each.session_id,
            "timestamp": each.timestamp,
            "parent_tool_use_id": each.parent_tool_use_id,
            "parent_agent_id": each.parent_agent_id,
            "is_meta": each.is_meta,
            "is_compact_summary": each.is_compact_summary,
            "message": each.message or None,
        }
        if each.type == "system":
            message["content"] = each.entry.data.get("content")
        yield comma + _json.dumps(message).decode()
        comma = ",\n"
    yield "\n]}\n"


def _title(info: SessionInfo | None) -> str:
    return (clean_title(info.summary) if info else "") or UNTITLED


Kind = Literal["text", "thinking", "call", "result", "other"]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a message. Its texts have no control or direction characters, but escapes."""

    kind: Kind
    text: str
    label: str = ""
    """The line under which the part is folded; empty for a text."""
    is_json: bool = False


def role_of(message: StoredMessage) -> str:
    """Return who wrote the message, as a heading."""
    if message.is_compact_summary:
        return "Summary of the conversation so far"
    return {"user": "User", "assistant": "Assistant"}.get(message.type, "System")


def parts_of(message: StoredMessage) -> Iterator[Part]:
    """Yield the parts of a message, in order."""
    if message.type == "system":
        content = message.entry.data.get("content")
    else:
        content = message.message.get("content")
    if isinstance(content, str):
        yield Part("text", _shown(content))
    elif _json.is_array(content):
        for block in content:
            yield _part(block) if _json.is_object(block) else _other("content", block)
    elif content is not None:
        yield _other("content", content)


def _part(block: JsonObject) -> Part:
    kind = block.get("type")
    if kind == "text":
        return Part("text", _shown(block.get("text")))
    if kind == "thinking":
        return Part("thinking", _shown(block.get("thinking")), "Thinking")
    if kind == "tool_use":
        label = f"Tool call: {one_line(str(block.get('name', '')))}"
        return Part("call", _pretty(block.get("input")), label, is_json=True)
    if kind == "tool_result":
        label = "Tool result: error" if block.get("is_error") is True else "Tool result"
        return Part("result", _result_text(block.get("content")), label)
    return _other(str(kind), block)


def _result_text(content: Json) -> str:
    if isinstance(content, str):
        return _shown(content)
    if not _json.is_array(content):
        return "" if content is None else _pretty(content)
    texts: list[str] = []
    for block in content:
        is_text = _json.is_object(block) and block.get("type") == "text"
        texts.append(_shown(block.get("text")) if is_text else _other("", block).text)
    return "\n".join(texts)


def _other(kind: str, block: Json) -> Part:
    """Return a part for what has no form of its own; images and documents without their bytes."""
    source = block.get("source") if _json.is_object(block) else None
    if _json.is_object(source) and isinstance(source.get("data"), str):
        about = f"{block.get('type')}, {source.get('media_type')}"
        text = f"[{one_line(about)}, {len(source['data'])} characters]"
        return Part("other", text, one_line(kind))
    return Part("other", _pretty(block), one_line(kind), is_json=True)


def _pretty(value: Json) -> str:
    # Not msgspec: that refuses lone surrogates, which the CLI writes.
    import json  # noqa: PLC0415 - only for exports

    try:
        return _shown(json.dumps(value, indent=2, ensure_ascii=False))
    except RecursionError:
        return "[nested too deeply]"


def _shown(text: Json) -> str:
    # Lines that end as on Windows are common in results of tools, and are no escape.
    return printable(text.replace("\r\n", "\n")) if isinstance(text, str) else ""
