"""Checks plugin directories before a CLI is started with them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from steersman._json import Json, JsonDict, JsonObject, is_object, loads
from steersman.errors import Described, UsageError
from steersman.options import Options, checks
from steersman.options.plugins import plugin_of

MANIFEST = Path(".claude-plugin", "plugin.json")
PARTS = ("commands", "agents", "skills", "hooks", "output-styles", ".mcp.json", ".lsp.json")


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
