"""Changes the input of a tool call in the user's editor."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from steersman import _json
from steersman._json import JsonDict

OTHERWISE = "vi"


class EditFailed(Exception):
    """The editor did not start, or what it left is not an input."""


def edited(given: JsonDict) -> JsonDict:
    """Open `given` as JSON in $VISUAL or $EDITOR and return what is left. Raises `EditFailed`."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or OTHERWISE
    with tempfile.TemporaryDirectory(prefix="steersman-") as folder:
        path = Path(folder, "input.json")
        path.write_text(json.dumps(given, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        try:
            # The user's own editor, on the user's own terminal.
            run = subprocess.run([*shlex.split(editor), str(path)], check=False)  # noqa: S603
        except (OSError, ValueError) as error:
            raise EditFailed(f"{editor} does not start: {error}") from None
        if run.returncode:
            raise EditFailed(f"{editor} failed with status {run.returncode}")
        try:
            found = _json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise EditFailed(f"what is left is not JSON: {error}") from None
    if not _json.is_object(found):
        raise EditFailed("what is left is not a JSON object")
    return found
