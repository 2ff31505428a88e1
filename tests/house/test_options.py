"""An option is one field and one row; a custom one also has a function."""

from __future__ import annotations

import dataclasses

from steersman._launch.table import CUSTOM, ROWS
from steersman.options import Options
from steersman.options.table import TABLE, Custom

FIELDS = [field.name for field in dataclasses.fields(Options)]


def test_every_option_has_exactly_one_row() -> None:
    """That every option is checked is the business of `test_bad_input`."""
    assert sorted(TABLE) == sorted(FIELDS)
    assert list(ROWS) == list(TABLE)


def test_every_custom_option_has_a_function_and_no_other_has_one() -> None:
    custom = [name for name, spec in TABLE.items() if isinstance(spec.travels, Custom)]

    assert sorted(CUSTOM) == sorted(custom)


def test_every_option_has_a_description_of_how_it_reaches_the_cli() -> None:
    assert [name for name, row in ROWS.items() if not row.carrier] == []
