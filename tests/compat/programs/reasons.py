"""Why a program goes otherwise on ours: each difference is one of those that are on purpose.

`kept/differences.json` has the differences themselves, line by line.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["REASONS"]

REASONS: Mapping[str, str] = {}
"""By program; the words are those of the lists of what is kept and what is better on purpose."""
