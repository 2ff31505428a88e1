"""A session store whose methods run where the program runs."""

from __future__ import annotations

import functools
from typing import Any

from steersman.compat._calling import Call


class CalledStore:
    """Has the methods of `store`, called through `call`. What the store lacks, it lacks too."""

    def __init__(self, store: Any, call: Call) -> None:
        self._store = store
        self._call = call

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return functools.partial(self._call, found) if callable(found) else found
