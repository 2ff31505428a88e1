"""The tree drawn in `steersman.errors` is the real one, and every error can be looked up."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from steersman import errors
from steersman.errors import SteersmanError

ROOT = Path(__file__).parents[2]

Branch = tuple[int, str]


def drawn() -> list[Branch]:
    lines = (errors.__doc__ or "").split("\n\n")[1].splitlines()
    found = [re.match(r"([│├└─ ]*)(\w+)", line) for line in lines]
    return [(len(each[1]) // 4, each[2]) for each in found if each]


def real(error: type[SteersmanError], depth: int = 0) -> Iterator[Branch]:
    yield depth, error.__name__
    for child in error.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from real(child, depth + 1)


def classes() -> list[type[SteersmanError]]:
    return [getattr(errors, name) for _, name in real(SteersmanError)]


def test_the_drawn_tree_is_the_real_one() -> None:
    assert drawn() == list(real(SteersmanError))


def test_every_error_is_exported() -> None:
    assert {error.__name__ for error in classes()} <= set(errors.__all__)


def test_every_error_has_a_code_of_its_own() -> None:
    assert all("code" in vars(error) for error in classes())
    assert Counter(error.code for error in classes()).most_common(1)[0][1] == 1


def test_the_docs_explain_every_code_once() -> None:
    page = (ROOT / "docs/errors.md").read_text(encoding="utf-8")

    explained = re.findall(r"^\| `(\w+)` \| `(\w+)`", page, re.MULTILINE)

    assert explained == [(error.code, error.__name__) for error in classes()]
