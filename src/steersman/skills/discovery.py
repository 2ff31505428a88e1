"""Reads skills from their directories, of a project or a user, and checks those of plugins.

A skill is `<root>/skills/<name>/SKILL.md`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from steersman._json import Json, JsonDict, JsonObject, is_object, is_sequence, loads
from steersman.errors import Described, UsageError
from steersman.options import Options, checks
from steersman.options.plugins import plugin_of
from steersman.skills.front_matter import FrontMatterError, split_front_matter

Source = Literal["project", "user", "elsewhere"]

FILE = "SKILL.md"
LONGEST_NAME = 64
LONGEST_FILE = 1024 * 1024

MANIFEST = Path(".claude-plugin", "plugin.json")
PARTS = ("commands", "agents", "skills", "hooks", "output-styles", ".mcp.json", ".lsp.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """The front matter and the body of a `SKILL.md`. The option `skills` takes the `name`."""

    name: str
    description: str
    path: Path
    """The path of the file."""
    source: Source = "elsewhere"
    when_to_use: str | None = None
    argument_hint: str | None = None
    allowed_tools: tuple[str, ...] = ()
    """Permission rules for tools that run without asking while the skill is used."""
    model: str | None = None
    is_for_model: bool = True
    """Whether the model may use the skill by itself."""
    is_for_people: bool = True
    """Whether the skill is also a slash command."""
    fields: JsonObject = field(default_factory=dict[str, Json], repr=False)
    """The whole front matter, with fields that are not known here."""
    body: str = field(default="", repr=False)
    """The text that the model reads when it uses the skill."""


def discover(
    *,
    project: str | Path | None = None,
    user: str | Path | None = None,
    on_error: Callable[[UsageError], None] | None = None,
) -> list[Skill]:
    """Return the skills of a project directory and of a user's configuration directory, by name.

    The CLI loads them with `setting_sources=("project", "user")`. `user_directory()` returns the
    usual directory of the user. Raises `UsageError`, which names file and field, for the first
    skill that cannot be read. With `on_error`, that is called for each such skill instead, and the
    others are returned.
    """
    roots: list[tuple[Path, Source]] = []
    if project is not None:
        roots.append((Path(project, ".claude", "skills"), "project"))
    if user is not None:
        roots.append((Path(user, "skills"), "user"))
    found: list[Skill] = []
    for root, source in roots:
        for path in _files(root):
            try:
                found.append(read_skill(path, source))
            except UsageError as error:
                if on_error is None:
                    raise
                on_error(error)
    return sorted(found, key=lambda skill: (skill.name, skill.source))


def user_directory() -> Path:
    """Return the user's configuration directory: `CLAUDE_CONFIG_DIR`, or `.claude` at home."""
    given = os.environ.get("CLAUDE_CONFIG_DIR")
    return Path(given) if given else Path.home() / ".claude"


def read_skill(path: str | Path, source: Source = "elsewhere") -> Skill:
    """Read one skill from its file or directory. Raises `UsageError` that names file and field."""
    given = Path(path)
    file = given / FILE if given.is_dir() else given
    fields, body = _read(file)
    for name, check in _CHECKS.items():
        if fields.get(name) is not None:
            check(f"{file}: {name}", fields[name])
    name = fields.get("name") or file.parent.name
    _check_name(f"{file}: name", name)
    return Skill(
        name=name,
        description=_stripped(fields.get("description")) or _first_paragraph(file, body),
        path=file,
        source=source,
        when_to_use=_stripped(fields.get("when_to_use")),
        argument_hint=_stripped(_as_text(fields.get("argument-hint"))),
        allowed_tools=_rules(file, fields.get("allowed-tools")),
        model=fields.get("model"),
        is_for_model=fields.get("disable-model-invocation") is not True,
        is_for_people=fields.get("user-invocable") is not False,
        fields=fields,
        body=body,
    )


def _files(root: Path) -> Iterator[Path]:
    if root.is_dir():
        yield from sorted(each / FILE for each in root.iterdir() if (each / FILE).is_file())


def _read(file: Path) -> tuple[JsonDict, str]:
    try:
        if file.stat().st_size > LONGEST_FILE:
            raise UsageError(str(file), Described("a larger file"), f"at most {LONGEST_FILE} bytes")
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UsageError(str(file), Described("other bytes"), "UTF-8") from None
    except OSError as error:
        raise UsageError(str(file), error.strerror or "no file", f"a readable {FILE}") from None
    try:
        return split_front_matter(text)
    except FrontMatterError as error:
        place = f"{file}: line {error.line}"
        raise UsageError(place, error.problem, "front matter", hint=error.hint) from None


def _are_texts(given: object) -> bool:
    items = given if is_sequence(given) else [given]
    return all(isinstance(each, str) for each in items)


_TEXT_OR_LIST = checks.must_be("a text, or a list of texts", _are_texts)
_CHECKS: Mapping[str, checks.Check] = {
    "name": checks.skill_name,
    "description": checks.non_empty,
    "when_to_use": checks.text,
    "argument-hint": _TEXT_OR_LIST,
    "allowed-tools": _TEXT_OR_LIST,
    "model": checks.word,
    "disable-model-invocation": checks.flag,
    "user-invocable": checks.flag,
    "paths": _TEXT_OR_LIST,
    "context": checks.one_of("fork", "inline"),
    "agent": checks.word,
    "metadata": checks.mapping,
    "hooks": checks.mapping,
}


def _check_name(place: str, name: str) -> None:
    checks.skill_name(place, name)
    if len(name) > LONGEST_NAME:
        raise UsageError(place, name, f"at most {LONGEST_NAME} characters")


def _first_paragraph(file: Path, body: str) -> str:
    """Return the first paragraph, which the CLI uses if there is no description."""
    for paragraph in body.split("\n\n"):
        text = " ".join(line for line in paragraph.split("\n") if not line.startswith("#")).strip()
        if text:
            return text
    raise UsageError(
        f"{file}: description", Described("nothing"), "a description, or a first paragraph"
    )


def _rules(file: Path, given: str | list[str] | None) -> tuple[str, ...]:
    texts = given if isinstance(given, list) else _split_rules(given or "")
    checks.each(checks.rule)(f"{file}: allowed-tools", texts)
    return tuple(texts)


def _split_rules(text: str) -> list[str]:
    """Split a text into rules, at commas and spaces outside brackets."""
    found, rule, depth = list[str](), "", 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character in ", " and depth == 0:
            found.append(rule)
            rule = ""
        else:
            rule += character
    return [each for each in (*found, rule) if each]


def _as_text(given: str | list[str] | None) -> str | None:
    # YAML reads `argument-hint: [file]` as a list; its author meant a text.
    return f"[{', '.join(given)}]" if isinstance(given, list) else given


def _stripped(text: str | None) -> str | None:
    """Return a text without the line break that ends a block scalar."""
    return None if text is None else text.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginManifest:
    """The manifest of a plugin. Its commands and skills are called `name:...`."""

    name: str
    path: Path
    """The plugin's directory."""
    description: str = ""
    version: str = ""
    fields: JsonObject = field(default_factory=dict[str, Json], repr=False)
    """The whole manifest; empty if the plugin has none."""


def check_plugins(options: Options) -> None:
    """Check that the plugins of `options` are on this machine. Raises `UsageError`.

    The CLI itself starts without a missing plugin, and reports that only in `system/init`.
    """
    for position, given in enumerate(options.plugins):
        place = f"plugins[{position}]"
        path = Path(options.cwd or ".", plugin_of(place, given).path)
        if path.suffix == ".zip" and path.is_file():
            continue
        if path.is_dir() and not _is_plugin(path) and _children(path):
            continue
        read_plugin(path, place)


def read_plugin(path: str | Path, place: str = "plugin") -> PluginManifest:
    """Read the manifest of a plugin directory. Raises `UsageError` that names file and field."""
    root = Path(path)
    if not root.is_dir():
        raise UsageError(place, str(path), "a directory that exists, with a plugin in it")
    if not _is_plugin(root):
        raise UsageError(
            place, str(path), f"a directory with {MANIFEST}, or with one of {', '.join(PARTS)}"
        )
    if not (root / MANIFEST).is_file():
        return PluginManifest(name=root.name, path=root)
    fields = _manifest(place, root / MANIFEST)
    checks.skill_name(f"{place}: {root / MANIFEST}: name", fields.get("name"))
    for name in ("description", "version"):
        if name in fields:
            checks.text(f"{place}: {root / MANIFEST}: {name}", fields[name])
    return PluginManifest(
        name=fields["name"],
        path=root,
        description=fields.get("description", ""),
        version=fields.get("version", ""),
        fields=fields,
    )


def _is_plugin(root: Path) -> bool:
    return any((root / part).exists() for part in (MANIFEST, *PARTS))


def _children(root: Path) -> list[Path]:
    """Return the plugins in a folder of plugins."""
    return [each for each in root.iterdir() if each.is_dir() and _is_plugin(each)]


def _manifest(place: str, file: Path) -> JsonDict:
    try:
        found = loads(file.read_bytes())
    except OSError as error:
        raise UsageError(f"{place}: {file}", error.strerror or "no file", "readable") from None
    except ValueError as error:
        raise UsageError(
            f"{place}: {file}", Described(f"no JSON: {error}"), "a JSON object"
        ) from None
    if not is_object(found):
        raise UsageError(f"{place}: {file}", Described("other JSON"), "a JSON object")
    return found
