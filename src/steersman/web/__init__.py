"""Sessions behind HTTP: a bridge that any ASGI framework mounts, and a client of it.

Needs the extra `web`. The routes and frames are described in `docs/web-protocol.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy import by_name

if TYPE_CHECKING:
    from steersman.web.bridge import Bridge
    from steersman.web.client import Begun, Client, Follow, Outcome, Page, Summary, WebError
    from steersman.web.limits import WebLimits
    from steersman.web.viewers import Action, Authenticate, Permission, Viewer
else:
    __getattr__, __dir__ = by_name(
        __name__,
        {
            "bridge": ("Bridge",),
            "client": ("Begun", "Client", "Follow", "Outcome", "Page", "Summary", "WebError"),
            "limits": ("WebLimits",),
            "viewers": ("Action", "Authenticate", "Permission", "Viewer"),
        },
    )

__all__ = [
    "Action",
    "Authenticate",
    "Begun",
    "Bridge",
    "Client",
    "Follow",
    "Outcome",
    "Page",
    "Permission",
    "Summary",
    "Viewer",
    "WebError",
    "WebLimits",
]
