"""Parts of prompts are what the API takes, and too much is refused before it is sent."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from steersman import prompts
from steersman._prompt_content import LARGEST, prompt_content
from steersman.errors import UsageError

PNG = b"\x89PNG\r\n\x1a\n rest"


def test_an_image_says_what_kind_it_is(tmp_path: Path) -> None:
    path = tmp_path / "picture"
    path.write_bytes(PNG)

    assert prompts.image(path) == prompts.image(PNG)
    assert prompts.image(PNG)["source"] == {
        "type": "base64",
        "media_type": "image/png",
        "data": base64.b64encode(PNG).decode(),
    }


@pytest.mark.parametrize(
    ("start", "kind"), [(b"\xff\xd8\xff", "jpeg"), (b"GIF89a", "gif"), (b"RIFF....WEBP", "webp")]
)
def test_the_usual_kinds_are_known_by_how_they_begin(start: bytes, kind: str) -> None:
    assert prompts.image(start)["source"]["media_type"] == f"image/{kind}"


def test_a_text_file_comes_under_its_name(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Ünïcode")

    part = prompts.file(path)

    assert part["title"] == "notes.txt"
    assert part["source"] == {"type": "text", "media_type": "text/plain", "data": "Ünïcode"}


def test_a_pdf_may_have_a_title() -> None:
    part = prompts.document(b"%PDF-1.7 ...", title="The plan")

    assert (part["type"], part["title"]) == ("document", "The plan")
    assert part["source"]["media_type"] == "application/pdf"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda _: prompts.text("  "), "words"),
        (lambda _: prompts.image(b"no image"), "source"),
        (lambda _: prompts.image(PNG, "image/bmp"), "media_type"),
        (lambda _: prompts.image(b""), "1 to"),
        (lambda _: prompts.image(PNG + bytes(5 * 1024 * 1024)), "5242880"),
        (lambda _: prompts.image(5), "bytes or a path"),  # type: ignore[arg-type]
        (lambda here: prompts.image(here / "missing.png"), "can be read"),
        (lambda _: prompts.document(b"plain"), "a PDF"),
        (lambda _: prompts.document(b"%PDF-", title=5), "title"),  # type: ignore[arg-type]
        (lambda here: prompts.file(here, title=5), "title"),  # type: ignore[arg-type]
        (lambda here: prompts.file(_binary(here)), "UTF-8"),
    ],
)
def test_what_cannot_be_sent_is_refused_by_name(make: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=says):
        make(tmp_path)


def _binary(folder: Path) -> Path:
    path = folder / "binary"
    path.write_bytes(b"\xff\xfe\x00")
    return path


def test_a_prompt_that_the_api_would_refuse_for_its_size_is_not_sent() -> None:
    with pytest.raises(UsageError, match="prompt"):
        prompt_content("x" * (LARGEST + 1))
    with pytest.raises(UsageError, match="prompt"):
        prompt_content([{"type": "text", "text": "x" * LARGEST}])
