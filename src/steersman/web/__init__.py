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
    from steersman.web.viewers import Act, Authenticate, May, Viewer
else:
    __getattr__, __dir__ = by_name(
        __name__,
        {
            "bridge": ("Bridge",),
            "client": ("Begun", "Client", "Follow", "Outcome", "Page", "Summary", "WebError"),
            "limits": ("WebLimits",),
            "viewers": ("Act", "Authenticate", "May", "Viewer"),
        },
    )

__all__ = [
    "Act",
    "Authenticate",
    "Begun",
    "Bridge",
    "Client",
    "Follow",
    "May",
    "Outcome",
    "Page",
    "Summary",
    "Viewer",
    "WebError",
    "WebLimits",
]
