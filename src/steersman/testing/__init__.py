"""The test kit: a script for the model, and three ways to play it.

A `Script` describes what the model does. `ScriptedCLI` plays it in memory, `executable` in a
separate process, `ScriptedModel` under the stock CLI. Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy import by_name

if TYPE_CHECKING:
    from steersman.testing.cassettes import Cassette as Cassette
    from steersman.testing.cassettes import Recorder as Recorder
    from steersman.testing.executable import executable as executable
    from steersman.testing.model import ScriptedModel as ScriptedModel
    from steersman.testing.plugin import MakeAgent as MakeAgent
    from steersman.testing.plugin import MakeModel as MakeModel
    from steersman.testing.request import ModelRequest as ModelRequest
    from steersman.testing.sandbox import CliSandbox as CliSandbox
    from steersman.testing.sandbox import find_stock_cli as find_stock_cli
    from steersman.testing.script import Script as Script
    from steersman.testing.script import Usage as Usage
    from steersman.testing.script import call as call
    from steersman.testing.script import calls as calls
    from steersman.testing.script import cut as cut
    from steersman.testing.script import fail as fail
    from steersman.testing.script import say as say
    from steersman.testing.script import stall as stall
    from steersman.testing.script import think as think
    from steersman.testing.script import when as when
    from steersman.testing.scripted.cli import Faults as Faults
    from steersman.testing.scripted.cli import ScriptedCLI as ScriptedCLI
else:
    __getattr__, __dir__ = by_name(
        __name__,
        {
            "cassettes": ("Cassette", "Recorder"),
            "executable": ("executable",),
            "model": ("ScriptedModel",),
            "plugin": ("MakeAgent", "MakeModel"),
            "request": ("ModelRequest",),
            "sandbox": ("CliSandbox", "find_stock_cli"),
            "script": (
                "Script",
                "Usage",
                "call",
                "calls",
                "cut",
                "fail",
                "say",
                "stall",
                "think",
                "when",
            ),
            "scripted.cli": ("Faults", "ScriptedCLI"),
        },
    )

__all__ = [
    "Cassette",
    "CliSandbox",
    "Faults",
    "MakeAgent",
    "MakeModel",
    "ModelRequest",
    "Recorder",
    "Script",
    "ScriptedCLI",
    "ScriptedModel",
    "Usage",
    "call",
    "calls",
    "cut",
    "executable",
    "fail",
    "find_stock_cli",
    "say",
    "stall",
    "think",
    "when",
]
