"""Reads the file of the wheel at the start of Python, as an installed package has it read."""

import site
import tempfile
from pathlib import Path

with tempfile.TemporaryDirectory() as place:
    source = Path(__file__).parents[4] / "src" / "steersman-compat.pth"
    (Path(place) / source.name).write_bytes(source.read_bytes())
    site.addsitedir(place)
