"""Words and names that the source does not use; `words.toml` holds them.

`python -m tests.house.words [ROOM ...]` lists what is found in src/steersman, or in some of its
rooms. With `--texts` it also lists other strings of several words: error texts, hints, logs.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from tests.house.objects import all_objects_kept
from tests.house.surface import surface

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCE = ROOT / "src/steersman"

WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
QUOTED = re.compile(r"```.*?```|``.*?``|`[^`]*`|\"[^\"]*\"|(?<!\w)'[^'\n]*'(?!\w)", re.DOTALL)
NOTES = re.compile(r"^#+\s*|\b(?:noqa|(?:type|pyright): ignore)\S*")


@cache
def rules() -> dict[str, Any]:
    """The data."""
    return tomllib.loads((HERE / "words.toml").read_text(encoding="utf-8"))


@cache
def promised() -> frozenset[str]:
    """Public names, as `name`, `Class.member` and `callable(parameter)`."""
    found: set[str] = set()
    for room, names in surface().items():
        found |= set(room.split("."))
        for path, described in names.items():
            name = path.rpartition(".")[2]
            found.add(name)
            found |= _promised_by(name, described)
    return frozenset(found)


def _promised_by(name: str, described: Any) -> set[str]:
    if isinstance(described, str):
        return {f"{name}({parameter})" for parameter in re.findall(r"\w+", described)}
    found = {f"{name}({each})" for each in re.findall(r"\w+", described.get("new", ""))}
    for keys in ("values", "required", "optional"):
        found |= {f"{name}.{each}" for each in described.get(keys, ())}
    for member, kind in described.get("members", {}).items():
        found.add(f"{name}.{member}")
        found |= {f"{member}({parameter})" for parameter in re.findall(r"\w+", kind)}
    return found


# --- Files -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Module:
    """A file of the source."""

    path: str
    """Below src/steersman, such as `tools/run.py`."""
    text: str
    tree: ast.Module = field(compare=False)

    @property
    def name(self) -> str:
        return self.path.removesuffix(".py")

    def at(self, line: int, what: str) -> str:
        return f"src/steersman/{self.path}:{line}: {what}"


def modules(*rooms: str) -> list[Module]:
    """All of them, or those of some rooms."""
    return [each for each in _modules() if not rooms or any(_is_in(each.path, r) for r in rooms)]


@cache
def _modules() -> list[Module]:
    with all_objects_kept():
        return [
            module_of(path.relative_to(SOURCE).as_posix(), path.read_text(encoding="utf-8"))
            for path in sorted(SOURCE.rglob("*.py"))
        ]


def module_of(path: str, text: str) -> Module:
    """A module with this text."""
    return Module(path, text, ast.parse(text))


def _is_in(path: str, room: str) -> bool:
    return not room or path in (room, f"{room}.py") or path.startswith(f"{room}/")


# --- Prose -------------------------------------------------------------------------------


def docstrings(module: Module) -> Iterator[tuple[int, str]]:
    """Strings that are statements: docstrings of modules, classes, functions and fields."""
    for node in ast.walk(module.tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text
            case _:
                pass


def comments(module: Module) -> Iterator[tuple[int, str]]:
    """Comments, each block as one text; notes to tools are left out."""
    block: list[str] = []
    first = last = 0
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type == tokenize.COMMENT:
            line = token.start[0]
            if block and line != last + 1:
                yield first, " ".join(block)
                block = []
            first = first if block else line
            last = line
            block.append(NOTES.sub("", token.string))
    if block:
        yield first, " ".join(block)


def texts(module: Module) -> Iterator[tuple[int, str]]:
    """Strings of several words that are no docstrings."""
    alone = {text for _, text in docstrings(module)}
    for node in ast.walk(module.tree):
        match node:
            case ast.Constant(value=str(text)) if text not in alone and len(text.split()) > 2:
                yield node.lineno, text
            case _:
                pass


def bad_beginnings(module: Module) -> list[str]:
    """Docstrings that begin without their subject."""
    return [
        module.at(line, f"begins with {beginning.strip()!r}")
        for line, text in docstrings(module)
        for beginning in rules()["beginnings"]
        if text.lstrip().startswith(beginning)
    ]


def bad_words(module: Module, prose: Iterable[tuple[int, str]] | None = None) -> list[str]:
    """Words in docstrings and comments that have a plain word instead."""
    given = [*docstrings(module), *comments(module)] if prose is None else prose
    return [
        module.at(line + before, f"{word!r}: write {instead}")
        for line, text in given
        for before, word, instead in found_in(text, allowed_words(module.path))
    ]


def found_in(text: str, allowed: Iterable[str] = ()) -> list[tuple[int, str, str]]:
    """Which words of a text are not used: line within it, the word, and what to write."""
    # Blanked, so that line numbers stay.
    plain = QUOTED.sub(lambda code: re.sub(r"[^\n]", "\0", code[0]), text)
    permitted = [re.compile(pattern, re.IGNORECASE) for pattern in allowed]
    return [
        (plain.count("\n", 0, found.start()), " ".join(found[0].split()), word["write"])
        for word, pattern in patterns()
        if not ("unless" in word and re.search(word["unless"], text))
        for found in pattern.finditer(plain)
        if not any(each.fullmatch(found[0]) for each in permitted)
    ]


@cache
def patterns() -> list[tuple[Mapping[str, Any], re.Pattern[str]]]:
    """Each word with what finds it: whole, in any case, with line breaks for blanks."""
    return [
        (word, re.compile(rf"(?<![\w-])(?:{_any_blank(word['pattern'])})(?![\w-])", re.IGNORECASE))
        for word in rules()["word"]
    ]


def _any_blank(pattern: str) -> str:
    return pattern.replace("[- ]", r"[-\s]+").replace(" ", r"\s+")


def allowed_words(path: str) -> list[str]:
    """Patterns that may stand in a file."""
    return [word for entry in _allowed(path) for word in entry.get("words", ())]


def _allowed(path: str) -> Iterator[Mapping[str, Any]]:
    return (
        entry
        for entry in rules()["allowed"]
        if any(fnmatch(path, pattern) for pattern in entry["files"])
    )


# --- Names -------------------------------------------------------------------------------


def words_of(name: str) -> list[str]:
    """The words of a name: `goes_on` and `GoesOn` have two."""
    return [word.lower() for word in WORDS.findall(name)]


def bad_names(module: Module) -> list[str]:
    """Names with a word that has a plain word instead; public names are promises."""
    allowed = {name for entry in _allowed(module.path) for name in entry.get("names", ())}
    found = [(1, module.path.rsplit("/", 1)[-1].removesuffix(".py"), "module")]
    return [
        module.at(line, f"the name {name} has {word!r}: write {instead}")
        for line, name, owned in [*found, *defined(module.tree)]
        if owned not in promised()
        if not any(fnmatch(name.lower(), each) for each in allowed)
        for word, instead in not_used(name)
    ]


def not_used(name: str) -> Iterator[tuple[str, str]]:
    """The words of a name that are not used, with what to write instead."""
    words = words_of(name)
    joined = f" {' '.join(words)} "
    for rule in rules()["word"]:
        for word in rule.get("names", ()):
            if word in words:
                yield word, rule["write"]
        for phrase in rule.get("phrases", ()):
            if f" {phrase} " in joined:
                yield phrase, rule["write"]


def defined(tree: ast.AST, owner: str = "") -> Iterator[tuple[int, str, str]]:
    """What a tree defines: line, name, and the name with its owner, as in `promised`."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.ClassDef():
                yield node.lineno, node.name, node.name
                yield from defined(node, node.name)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.lineno, node.name, f"{owner}.{node.name}" if owner else node.name
                yield from _parameters(node, owner)
                yield from _attributes(node, owner)
            case ast.Assign() | ast.AnnAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name):
                        yield node.lineno, target.id, f"{owner}.{target.id}" if owner else target.id
            case ast.If() | ast.Try() | ast.With():
                yield from defined(node, owner)
            case _:
                pass


def _parameters(
    function: ast.FunctionDef | ast.AsyncFunctionDef, owner: str
) -> Iterator[tuple[int, str, str]]:
    called = owner if function.name == "__init__" else function.name
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    for each in every:
        if each is not None:
            yield each.lineno, each.arg, f"{called}({each.arg})"


def _attributes(function: ast.AST, owner: str) -> Iterator[tuple[int, str, str]]:
    for node in ast.walk(function):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
        ):
            yield node.lineno, node.attr, f"{owner}.{node.attr}"


# --- Modules -----------------------------------------------------------------------------


def twice(paths: Iterable[str]) -> list[str]:
    """Module names that one room has more than once."""
    allowed = rules()["twice"]
    names = Counter(
        f"{path.partition('/')[0]}/{path.rsplit('/', 1)[-1].removesuffix('.py')}"
        for path in paths
        if "/" in path and not path.rsplit("/", 1)[-1].startswith("__")
    )
    return sorted(name for name, count in names.items() if count > 1 and name not in allowed)


def main(arguments: list[str]) -> int:
    """List everything that is found."""
    rooms = [each for each in arguments if not each.startswith("--")]
    found = modules(*rooms)
    checks = [bad_beginnings, bad_words, bad_names]
    for check in checks:
        lines = [line for module in found for line in check(module)]
        sys.stdout.write("\n".join((f"--- {check.__name__}: {len(lines)}", *lines, "")))
    lines = twice(each.path for each in found)
    sys.stdout.write("\n".join((f"--- twice: {len(lines)}", *lines, "")))
    if "--texts" in arguments:
        lines = [line for module in found for line in bad_words(module, texts(module))]
        sys.stdout.write("\n".join((f"--- texts: {len(lines)}", *lines, "")))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
