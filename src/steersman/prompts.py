"""Content blocks for prompts: text, images, documents, files.

Each function returns a content block of the Messages API; `session.send([...])` takes a list of
them. A block that is too large for the API is refused here, before it is sent.
"""

from __future__ import annotations

import base64
from pathlib import Path

from steersman._json import JsonDict
from steersman.errors import Described, UsageError

__all__ = ["document", "file", "image", "text"]

LARGEST_IMAGE = 5 * 1024 * 1024
LARGEST_DOCUMENT = 24 * 1024 * 1024
"""A request may have 32 MB, and base64 makes data a third larger."""

_IMAGES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}
"""The first bytes of each kind of image."""


def text(words: str) -> JsonDict:
    """Return a text block."""
    if not (isinstance(words, str) and words.strip()):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("words", words, "a text that is not empty")
    return {"type": "text", "text": words}


def image(source: bytes | str | Path, media_type: str | None = None) -> JsonDict:
    """Return an image block for a PNG, JPEG, GIF or WebP, given as bytes or by its path."""
    data = _read("source", source, LARGEST_IMAGE)
    known = next((kind for start, kind in _IMAGES.items() if data.startswith(start)), None)
    kind = media_type or known
    if kind not in _IMAGES.values():
        allowed = f"one of {', '.join(_IMAGES.values())}"
        if media_type is None:
            raise UsageError("source", Described("another kind of file"), allowed)
        raise UsageError("media_type", kind, allowed)
    return {"type": "image", "source": _encoded(kind or "", data)}


def document(source: bytes | str | Path, *, title: str | None = None) -> JsonDict:
    """Return a document block for a PDF, given as bytes or by its path."""
    data = _read("source", source, LARGEST_DOCUMENT)
    if not data.startswith(b"%PDF-"):
        raise UsageError(
            "source", Described("another kind of file"), "a PDF; use `file()` for plain text"
        )
    _check_title(title)
    named = {} if title is None else {"title": title}
    return {"type": "document", "source": _encoded("application/pdf", data), **named}


def file(path: str | Path, *, title: str | None = None) -> JsonDict:
    """Return a document block for a plain text file; the title is the name of the file."""
    _check_title(title)
    data = _read("path", path, LARGEST_DOCUMENT)
    try:
        content = data.decode()
    except UnicodeDecodeError:
        allowed = "a file of UTF-8 text; use `image()` or `document()` for other files"
        raise UsageError("path", str(path), allowed) from None
    source = {"type": "text", "media_type": "text/plain", "data": content}
    return {"type": "document", "source": source, "title": title or Path(path).name}


def _check_title(title: object) -> None:
    if not (title is None or isinstance(title, str)):
        raise UsageError("title", title, "a text, or None")


def _read(name: str, source: object, most: int) -> bytes:
    if isinstance(source, bytes):
        data = source
    elif isinstance(source, str | Path):
        try:
            data = Path(source).read_bytes()
        except OSError as error:
            raise UsageError(name, str(source), f"a file that can be read: {error}") from None
    else:
        raise UsageError(name, source, "bytes or a path")
    if not data or len(data) > most:
        raise UsageError(name, Described(f"{len(data)} bytes"), f"1 to {most} bytes")
    return data


def _encoded(media_type: str, data: bytes) -> dict[str, str]:
    encoded = base64.b64encode(data).decode()
    return {"type": "base64", "media_type": media_type, "data": encoded}
