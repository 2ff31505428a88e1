"""Limits as a job row has them."""

from __future__ import annotations

import json

from steersman.fleet.specs import limits_fields, limits_of, usd_of
from steersman.options import Caps, Limits


def test_limits_are_the_same_after_a_row() -> None:
    limits = Limits(turn=Caps(usd=0.5, tool_calls=3), session=Caps(seconds=60.0), warn_at=0.5)
    fields = json.loads(json.dumps(limits_fields(limits)))

    assert limits_of(fields) == limits
    assert (usd_of(fields), usd_of(None), limits_fields(None)) == (0.5, None, None)
