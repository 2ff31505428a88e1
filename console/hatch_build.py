"""Says so if a wheel or an sdist is built without the console."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILT = "src/steersman/web/static/console.js"
MISSING = (
    "This build has no console: src/steersman/web/static is missing. "
    "`make console-build` makes it; without it, `steersman console` serves no page."
)


class ConsoleHook(BuildHookInterface):  # type: ignore[type-arg]  # its parameter is of no use here
    """Looks for the built console. An editable installation uses the source, so it needs none."""

    def initialize(self, version: str, _build_data: dict[str, Any]) -> None:
        """Print a warning if the console was not built."""
        if version != "editable" and not (Path(self.root) / BUILT).is_file():
            self.app.display_warning(MISSING)
