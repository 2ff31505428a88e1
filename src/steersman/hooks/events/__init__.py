"""Hook events: one class per moment the CLI lets us look in.

To add an event, write its class in the file of its topic. Its name is the CLI's name for it.
"""

from __future__ import annotations

from steersman.hooks.events import event, places, prompts, sessions, tools, work
from steersman.hooks.events.event import *
from steersman.hooks.events.places import *
from steersman.hooks.events.prompts import *
from steersman.hooks.events.sessions import *
from steersman.hooks.events.tools import *
from steersman.hooks.events.work import *

__all__: list[str] = []
__all__ += event.__all__
__all__ += places.__all__
__all__ += prompts.__all__
__all__ += sessions.__all__
__all__ += tools.__all__
__all__ += work.__all__
