"""One process of a scripted CLI: lines of stdin in, frames out, turns in between."""

from __future__ import annotations

import asyncio
import os
import traceback
from collections.abc import Callable, Coroutine
from typing import Any, cast

from steersman import _json
from steersman._wire.framing import LineFramer
from steersman.ports import Launch
from steersman.testing.scripted_control import Control, greeting
from steersman.testing.scripted_history import History
from steersman.testing.scripted_hooks import HookRunner, read_hooks
from steersman.testing.scripted_host import Host
from steersman.testing.scripted_launch import Settings, read_launch
from steersman.testing.scripted_ledger import Ledger
from steersman.testing.scripted_mcp import McpServers
from steersman.testing.scripted_output import Frame, Output, new_id
from steersman.testing.scripted_permissions import Permissions
from steersman.testing.scripted_queue import PRIORITIES, Prompt, PromptQueue
from steersman.testing.scripted_results import Results
from steersman.testing.scripted_stage import Stage, StartPhase
from steersman.testing.scripted_tools import ToolRunner
from steersman.testing.scripted_turn import Shared, Turn
from steersman.transports.memory import Wire

__all__ = ["ScriptedProcess"]
