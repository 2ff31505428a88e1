"""The page of the console and its files, which `make console` builds into `static/`."""

from __future__ import annotations

import hashlib
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from steersman.web.failures import Refusal
from steersman.web.security import PAGE_HEADERS

FOLDER = Path(__file__).parent / "static"

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".map": "application/json",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}

NOT_BUILT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>steersman</title></head>
<body><h1>The console is not built</h1>
<p>The bridge works, but this checkout has no console. Build it with <code>make console</code>,
or install the wheel, which contains it.</p></body></html>
"""


def static_response(request: Request, name: str, folder: Path = FOLDER) -> Response:
    """Return a file of the console. Raises `Refusal` if there is none with this name."""
    kind = KINDS.get(Path(name).suffix)
    # A plain name: nothing above the folder and nothing hidden can be asked for.
    is_plain = name == Path(name).name and not name.startswith(".") and "\\" not in name
    data = _read(folder / name) if kind is not None and is_plain else None
    if data is None and name == "index.html":
        return Response(NOT_BUILT, 200, PAGE_HEADERS, KINDS[".html"])
    if data is None:
        raise Refusal(404, "not_found", "there is no such file")
    tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
    headers = {**PAGE_HEADERS, "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(None, 304, headers)
    return Response(data, 200, headers, kind)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (OSError, ValueError):
        # A name with a NUL is no file name.
        return None
