"""The logins of examples and pages, attacked: nobody who is not known comes in."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from tests.docs.snippets import ROOT, snippets_of
from tests.web.staging import scripted_agent

LOGIN = re.compile(r"authenticate=|password|set_cookie|Authorization", re.IGNORECASE)
HERE = {"Origin": "http://127.0.0.1:8000"}

GUESSES: list[dict[str, Any]] = [
    {"name": "mallory", "password": ""},
    {"name": "mallory", "password": "mallory"},
    {"name": "", "password": ""},
    {"name": "ann", "password": ""},
    {"name": "ann", "password": "open"},
    {"name": "ANN", "password": "sesame"},
    {"name": "ann", "password": "sesame "},
    {"name": "ann", "password": "s\u00e9same"},
    {"name": "ann", "password": ["sesame"]},
    {"name": None, "password": None},
    {"name": "ann"},
]
COOKIES = ["", "login=", "login=ann", 'login=""', "login=None", "login=guess; login=", "user=ann"]


def example(folder: Path) -> Any:
    """The application of the example."""
    fastapi_app: Any = pytest.importorskip("examples.fastapi_app", exc_type=ImportError)
    return fastapi_app.make_app(
        str(folder / "kept"), str(folder / "work"), lambda work: scripted_agent(cwd=work)
    )


def page(folder: Path) -> Any:
    """The application of `docs/web.md`, with the host of this test."""
    (text,) = (each.text for each in snippets_of("docs/web.md") if "authenticate=" in each.text)
    (folder / "project").mkdir()
    (folder / "kept").mkdir()
    names: dict[str, Any] = {}
    exec(text.replace('"app.example.org"', '"127.0.0.1"'), names)
    return names["app"]


LOGINS: dict[str, Callable[[Path], Any]] = {"examples/fastapi_app.py": example, "docs/web.md": page}


def test_every_login_of_an_example_or_a_page_is_attacked() -> None:
    examples = [*(ROOT / "examples").glob("*.py")]
    pages = [f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")]
    found = {f"examples/{path.name}" for path in examples if "Bridge(" in path.read_text("utf-8")}
    for name in ("README.md", *pages):
        code = "".join(each.text for each in snippets_of(name))
        if "Bridge(" in code or "uvicorn" in code or "FastAPI(" in code:
            found |= {name} if LOGIN.search(code) else set()

    assert found == {*LOGINS}


@asynccontextmanager
async def visiting(app: Starlette) -> AsyncGenerator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:8000", headers=HERE
        ) as client,
    ):
        yield client


@pytest.mark.parametrize("name", LOGINS)
async def test_a_guess_a_name_or_an_empty_cookie_lets_nobody_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    async with visiting(LOGINS[name](tmp_path)) as client:
        entered = [await client.post("/login", json=guess) for guess in GUESSES]
        inside = [
            await client.get(f"/agents/{path}", headers={"Cookie": cookie})
            for cookie in COOKIES
            for path in ("me", "sessions", "asks")
        ]
        begun = await client.post("/agents/sessions", json={"text": "hi"})

    assert {each.status_code for each in entered} <= {401, 404, 422}
    assert all("set-cookie" not in each.headers for each in entered)
    assert {each.status_code for each in inside} == {401}
    assert begun.status_code == 401
