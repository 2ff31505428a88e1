"""What was kept of the official package: one file per CLI version, with a trace per program."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "kept"
DIFFERENCES = FOLDER / "differences.json"

Kept = dict[str, Any]


def official_version() -> str:
    """Return the version of the installed official package."""
    return version("claude-agent-sdk")


def place(cli_version: str) -> Path:
    """Return the file of a CLI version."""
    return FOLDER / f"{cli_version}.json"


def kept(cli_version: str) -> Kept:
    """Return the records of the official package with a CLI, by program."""
    data: Kept = json.loads(place(cli_version).read_text(encoding="utf-8"))
    return data


def write(cli_version: str, traces: dict[str, Any]) -> None:
    """Keep the traces of the official package with a CLI."""
    FOLDER.mkdir(exist_ok=True)
    data = {"official": official_version(), "cli": cli_version, "programs": traces}
    place(cli_version).write_text(laid_out(data), encoding="utf-8")


def newest() -> str:
    """Return the newest CLI version that something is kept of."""
    found = [each.stem for each in FOLDER.glob("[0-9]*.json")]
    return max(found, key=lambda each: [int(part) for part in each.split(".")])


def differences(cli_version: str) -> dict[str, list[str]]:
    """Return how ours goes otherwise with a CLI, by program."""
    data: dict[str, dict[str, list[str]]] = json.loads(DIFFERENCES.read_text(encoding="utf-8"))
    return data.get(cli_version, {})


def write_differences(cli_version: str, found: dict[str, list[str]]) -> None:
    """Keep how ours goes otherwise with a CLI."""
    data = json.loads(DIFFERENCES.read_text(encoding="utf-8")) if DIFFERENCES.exists() else {}
    data[cli_version] = found
    text = json.dumps(data, ensure_ascii=False, indent=1, sort_keys=True)
    DIFFERENCES.write_text(text + "\n", encoding="utf-8")


def laid_out(data: Kept) -> str:
    """Return JSON with one line per message, call and note, so that a diff can be read."""

    def line(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    def lane(value: Any) -> str:
        if isinstance(value, list):
            return "[\n    " + ",\n    ".join(map(line, value)) + "\n   ]"
        return line(value)

    def trace(value: dict[str, Any]) -> str:
        lanes = ",\n".join(f"   {line(name)}: {lane(each)}" for name, each in value.items())
        return "{\n" + lanes + "\n  }"

    found = ",\n".join(
        f"  {line(name)}: {trace(each)}" for name, each in sorted(data["programs"].items())
    )
    heads = "".join(f" {line(key)}: {line(data[key])},\n" for key in ("official", "cli"))
    return "{\n" + heads + ' "programs": {\n' + found + "\n }\n}\n"
