"""What a test needs: one script, and three stages that play it.

`script` says what the model does. `ScriptedCLI` plays it in memory, `executable` in a process of
its own, `ScriptedModel` under the stock CLI. The names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steersman.testing.cassettes import Cassette as Cassette
    from steersman.testing.cassettes import Recorder as Recorder
    from steersman.testing.executable import executable as executable
    from steersman.testing.model import ScriptedModel as ScriptedModel
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

_HOMES = {
    "Cassette": "cassettes",
    "CliSandbox": "sandbox",
    "Faults": "scripted.cli",
    "ModelRequest": "request",
    "Recorder": "cassettes",
    "Script": "script",
    "ScriptedCLI": "scripted.cli",
    "ScriptedModel": "model",
    "Usage": "script",
    "call": "script",
    "calls": "script",
    "cut": "script",
    "executable": "executable",
    "fail": "script",
    "find_stock_cli": "sandbox",
    "say": "script",
    "stall": "script",
    "think": "script",
    "when": "script",
}

__all__ = [
    "Cassette",
    "CliSandbox",
    "Faults",
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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
