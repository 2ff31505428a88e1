"""The Python snippets on the pages, and how those of a page are run.

A page is run as a reader would type it: its snippets in order, in one module, in a folder of their
own. `Agent()` finds a scripted CLI there, so nothing needs a key or a network.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import sys
import textwrap
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.typing.pages import head_of

ROOT = Path(__file__).parents[2]
SNIPPET = re.compile(r"^( *)```python\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
LIMIT = 30.0
"""Seconds for a snippet; each needs a small part of it."""
GRACE = 0.3
"""Seconds for a snippet without an end that prints nothing."""

Names = dict[str, Any]
Stage = Callable[[Names], AsyncGenerator[None]]
"""Prepares names before the snippets of a page run, yields, and uses what they define."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """A Python snippet on a page."""

    page: str
    line: int
    text: str

    @property
    def place(self) -> str:
        """The page and the line, as a traceback names them."""
        return f"{self.page}:{self.line}"

    @property
    def is_test(self) -> bool:
        """Whether the snippet defines tests, which pytest runs."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        return any(
            isinstance(node, kinds) and node.name.startswith("test_")
            for node in ast.parse(self.text).body
        )


def snippets_of(page: str) -> list[Snippet]:
    """Return the snippets of a page, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        Snippet(page, text.count("\n", 0, found.start()) + 1, textwrap.dedent(found[2]))
        for found in SNIPPET.finditer(text)
    ]


class Shown:
    """What the snippets of a page print."""

    def __init__(self) -> None:
        self.text = ""
        self._news = asyncio.Event()

    def print(self, *values: object, sep: str = " ", end: str = "\n", **_given: object) -> None:
        """Keep what is printed; a snippet calls this as `print`."""
        self.text += sep.join(map(str, values)) + end
        self._news.set()

    async def until(self, expected: str) -> None:
        """Wait until a text has been printed; if it is empty, for a moment."""
        if not expected:
            await asyncio.sleep(GRACE)
        while expected not in self.text:
            self._news.clear()
            await self._news.wait()


def run_page(
    page: str, snippets: list[Snippet], stage: Stage | None, endless: Mapping[str, str]
) -> str:
    """Run the snippets of a page, and return what they print.

    `endless` names snippets that do not end, by a phrase in them, and what they print at last. One
    that prints nothing is run for a moment.
    """
    name = re.sub(r"\W", "_", page)
    module = sys.modules[name] = ModuleType(name)
    names, shown = module.__dict__, Shown()
    exec(compile(head_of(page), f"before {page}", "exec"), names)
    names["print"] = shown.print
    try:
        with asyncio.Runner() as runner:
            around = stage(names) if stage else _nothing()
            runner.run(_bounded(anext(around)))
            for snippet in snippets:
                try:
                    _run(runner, snippet, names, shown, endless)
                except BaseException as error:
                    error.add_note(f"{snippet.place}: tests/docs/stages.py has what a page needs")
                    raise
            runner.run(_bounded(anext(around, None)))
            runner.run(_close(names))
    finally:
        del sys.modules[name]
    return shown.text


def _run(
    runner: asyncio.Runner,
    snippet: Snippet,
    names: Names,
    shown: Shown,
    endless: Mapping[str, str],
) -> None:
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    # Empty lines, so that a traceback shows the line of the page.
    text = "\n" * snippet.line + snippet.text
    code = compile(text, str(ROOT / snippet.page), "exec", flags=flags, dont_inherit=True)
    last = [expected for phrase, expected in endless.items() if phrase in snippet.text]
    if not code.co_flags & inspect.CO_COROUTINE:
        exec(code, names)
    elif last:
        runner.run(_bounded(_cut(eval(code, names), shown.until(last[0]))))
    else:
        runner.run(_bounded(eval(code, names)))


async def _cut(endless: Any, until: Any) -> None:
    """Run a snippet without an end, until it has done its part."""
    running, enough = asyncio.ensure_future(endless), asyncio.ensure_future(until)
    done, _ = await asyncio.wait([running, enough], return_when=asyncio.FIRST_COMPLETED)
    running.cancel()
    enough.cancel()
    with suppress(asyncio.CancelledError):
        await running
    assert enough in done, "the snippet has ended, but it is in the list of those that do not"


async def _bounded(awaitable: Any) -> None:
    async with asyncio.timeout(LIMIT):
        await awaitable


async def _nothing() -> AsyncGenerator[None]:
    yield


async def _close(names: Names) -> None:
    """Close stores that a page leaves open: it shows a part of a program."""
    for value in list(names.values()):
        aclose = getattr(value, "aclose", None)
        if aclose is not None and not inspect.isclass(value):
            await aclose()
