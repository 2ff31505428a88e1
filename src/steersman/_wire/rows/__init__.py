"""The launch table: each option's row, by topic. Read top to bottom."""

from __future__ import annotations

from collections.abc import Mapping

from steersman._wire.draft import Row
from steersman._wire.rows.conversation import CONVERSATION
from steersman._wire.rows.model import MODEL
from steersman._wire.rows.place import PLACE
from steersman._wire.rows.telling import TELLING
from steersman._wire.rows.tools import TOOLS

__all__ = ["ROWS"]

ROWS: Mapping[str, Row] = {**PLACE, **MODEL, **TOOLS, **CONVERSATION, **TELLING}
"""The place comes first, because rules and the sandbox are added to its settings."""
