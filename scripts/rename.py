"""Apply a rename map to the working tree: `python scripts/rename.py MAP.toml [FOLDER ...]`.

A map has four tables. `[modules]` moves modules: the file, its dotted path, and
`from package import module`. `[names]` replaces whole words in Python files and pages.
Each `[[scoped]]` has `files` (globs from the root of the checkout) and `names` that are replaced in
those files only, for words that mean something else elsewhere. Each `[[patterns]]` has `files` and
`rules`, regular expressions for what no whole word can say.

Applying a map twice changes nothing the second time, so a branch that was cut before the renames
can apply it before it is rebased. With FOLDERs, only the text of files below them is changed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PLACES = ("src", "tests", "docs", "examples", "benchmarks", "scripts", "packages")
LOOSE = ("README.md", "CONTRIBUTING.md", "pyproject.toml", ".importlinter", "Makefile")
SUFFIXES = frozenset({".py", ".md", ".toml", ".pyi"})
MAPS = ROOT / "scripts" / "renames"
"""Never changed: a map that is applied to itself loses its old names."""
WORDS = ROOT / "tests" / "house" / "words.toml"
"""Never changed either: it lists the old names, which must not occur."""


def main(arguments: list[str]) -> None:
    """Move the modules of a map, then replace its words."""
    found = tomllib.loads(Path(arguments[0]).read_text())
    folders = [Path(folder).resolve() for folder in arguments[1:]]
    modules: dict[str, str] = found.get("modules", {})
    if not folders:
        for old, new in modules.items():
            _move(old, new)
    files = [file for file in _files() if not folders or _is_below(file, folders)]
    words = _words(found.get("names", {}))
    paths = [_module_rules(old, new) for old, new in modules.items()]
    for file in files:
        text = before = file.read_text()
        for rules in paths:
            for pattern, replacement in rules:
                text = pattern.sub(replacement, text)
        text = _replace(text, words, found.get("names", {}))
        for scope in found.get("scoped", ()):
            text = _replace_scoped(file, text, scope)
        for scope in found.get("patterns", ()):
            text = _replace_patterns(file, text, scope)
        if text != before:
            file.write_text(text)


def _files() -> Iterable[Path]:
    for place in PLACES:
        for file in sorted((ROOT / place).rglob("*")):
            is_text = file.suffix in SUFFIXES and "__pycache__" not in file.parts
            if is_text and MAPS not in file.parents and file != WORDS:
                yield file
    yield from (ROOT / name for name in LOOSE if (ROOT / name).exists())


def _is_below(file: Path, folders: list[Path]) -> bool:
    return any(folder == file or folder in file.parents for folder in folders)


def _move(old: str, new: str) -> None:
    for source, target in ((_file(old), _file(new)), (_test(old), _test(new))):
        if source.exists() and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["git", "mv", source, target], cwd=ROOT, check=True)  # noqa: S603, S607


def _file(module: str) -> Path:
    return ROOT / "src" / Path(*module.split(".")).with_suffix(".py")


def _test(module: str) -> Path:
    *rooms, name = module.split(".")[1:]
    return ROOT / "tests" / Path(*rooms) / f"test_{name.lstrip('_')}.py"


def _module_rules(old: str, new: str) -> list[tuple[re.Pattern[str], str]]:
    old_room, _, old_name = old.rpartition(".")
    new_room, _, new_name = new.rpartition(".")
    rules = [(re.compile(rf"\b{re.escape(old)}\b"), new)]
    # `from room import a, module` is not changed: only a module that is alone on its line.
    alone = rf"from {re.escape(old_room)} import {re.escape(old_name)}$"
    rules.append((re.compile(alone, re.MULTILINE), f"from {new_room} import {new_name}"))
    old_path = re.escape(old.replace(".", "/"))
    rules.append((re.compile(rf"\b{old_path}\.py\b"), new.replace(".", "/") + ".py"))
    short = "/".join(old.split(".")[1:])
    if "/" in short:
        rules.append(
            (
                re.compile(rf"(?<![\w/]){re.escape(short)}\.py\b"),
                "/".join(new.split(".")[1:]) + ".py",
            )
        )
    return rules


def _words(names: Mapping[str, str]) -> re.Pattern[str] | None:
    if not names:
        return None
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile(r"(?<![\w])(" + "|".join(map(re.escape, longest_first)) + r")(?![\w])")


def _replace(text: str, words: re.Pattern[str] | None, names: Mapping[str, str]) -> str:
    return text if words is None else words.sub(lambda found: names[found[1]], text)


def _replace_scoped(file: Path, text: str, scope: Mapping[str, Any]) -> str:
    place = file.relative_to(ROOT)
    if not any(place.match(glob) for glob in scope["files"]):
        return text
    return _replace(text, _words(scope["names"]), scope["names"])


def _replace_patterns(file: Path, text: str, scope: Mapping[str, Any]) -> str:
    place = file.relative_to(ROOT)
    if any(place.match(glob) for glob in scope["files"]):
        for rule in scope["rules"]:
            text = re.sub(rule["find"], rule["replace"], text, flags=re.MULTILINE)
    return text


if __name__ == "__main__":
    main(sys.argv[1:])
