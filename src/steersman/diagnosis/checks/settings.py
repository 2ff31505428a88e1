"""Can the settings files be read, and do they hold what sessions do not read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from steersman import _json
from steersman._json import JsonDict
from steersman.diagnosis.machine import Machine
from steersman.diagnosis.values import Check, Finding, failed, ok, warned

HELPER = "apiKeyHelper"


async def _run(machine: Machine) -> Iterable[Finding]:
    files = {
        "user": machine.config / "settings.json",
        "project": machine.cwd / ".claude" / "settings.json",
        "local": machine.cwd / ".claude" / "settings.local.json",
    }
    found: dict[str, JsonDict] = {}
    for source, path in files.items():
        try:
            settings = _read(path)
        except (OSError, ValueError) as error:
            return failed(
                f"{path} cannot be read: {error}", "mend the file: it must be a JSON object"
            )
        if settings is not None:
            found[source] = settings
    is_read = "user" in machine.options.sources
    if HELPER in found.get("user", {}) and not is_read:
        return warned(
            f"user settings hold an {HELPER} that sessions do not read",
            'pass setting_sources=("user",), or unset it',
        )
    read = ", ".join(each for each in found if each in machine.options.sources)
    return ok(f"sessions read: {read}" if read else "sessions read no settings files")


def _read(path: Path) -> JsonDict | None:
    """Return the settings in a file; None without one. Raises `ValueError`, without the content."""
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        found = _json.loads(content)
    except ValueError:
        raise ValueError("it is not JSON") from None
    if not _json.is_object(found):
        raise ValueError("it is not a JSON object")
    return found


SETTINGS = Check("settings", _run)
