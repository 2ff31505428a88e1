"""An option is a field, its check and its row in the launch table."""

from __future__ import annotations

import dataclasses

from steersman._wire.launch import ROWS
from steersman.options import Options


def test_every_option_says_how_it_reaches_the_cli() -> None:
    """That every option is checked is the business of `test_bad_input`."""
    assert sorted(ROWS) == sorted(field.name for field in dataclasses.fields(Options))
