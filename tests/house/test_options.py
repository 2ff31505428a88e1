"""An option is a field, its check and its row in the launch table."""

from __future__ import annotations

import dataclasses

from steersman._wire.launch import ROWS
from steersman.options import Options
from steersman.options.fields import _CHECKS

FIELDS = [field.name for field in dataclasses.fields(Options)]


def test_every_option_says_how_it_reaches_the_cli() -> None:
    assert sorted(ROWS) == sorted(FIELDS)


def test_every_option_is_checked() -> None:
    assert sorted(_CHECKS) == sorted(FIELDS)
