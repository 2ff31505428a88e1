"""The stage of the live tests, here too."""

from __future__ import annotations

from tests.live.conftest import cli, sandbox, scripted

__all__ = ["cli", "sandbox", "scripted"]
