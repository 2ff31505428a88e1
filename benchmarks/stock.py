"""Runs an order on the stock CLI, in a sandbox, with a model on loopback that writes at a pace.

The environment is built from nothing: no login, no settings, no network. The model runs in this
process, so its time is in no figure.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.entrants import Entrant, run_order
from steersman.errors import CliNotFound
from steersman.testing.model import ScriptedModel
from steersman.testing.sandbox import CliSandbox, find_stock_cli
from steersman.testing.script import Script, Step, Text, Usage, when

TOKENS = 1_000
GAP = 0.002
"""Seconds between two tokens: about 450 tokens a second."""


class Paced(tuple[str, ...]):
    """Chunks of a text that come one after the other."""

    __slots__ = ()

    def __iter__(self) -> Iterator[str]:
        """Yield the chunks, each after a pause."""
        for chunk in super().__iter__():
            time.sleep(GAP)
            yield chunk


def script(tokens: int, times: int = 1) -> Script:
    """Return a script with `tokens` for each measured prompt; every other one is echoed."""
    step = Step((Text(Paced(["word "] * tokens)),), Usage(output_tokens=tokens))
    return Script(when("measured", *[step] * times))


def run_stock(entrant: Entrant, order: Mapping[str, Any], tokens: int = TOKENS) -> dict[str, Any]:
    """Run `order` with the stock CLI. Return its report, or a note why there is none."""
    try:
        program = str(find_stock_cli())
    except CliNotFound:
        return {"note": "the stock CLI is not installed"}
    played = script(tokens, order.get("count", 1))
    with CliSandbox() as sandbox, ScriptedModel(played) as model:
        more = {"program": program, "folder": str(sandbox.project)}
        return run_order(entrant, {**order, **more}, sandbox.env(model.url))
