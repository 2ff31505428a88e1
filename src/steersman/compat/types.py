"""All shapes of the official module `types`: messages, options, hooks, permissions, stores.

Gathers the modules of `_shapes`, where a further shape goes.
"""

from __future__ import annotations

from steersman.compat._shapes import (
    hooks,
    mcp,
    messages,
    options,
    permissions,
    requests,
    stored_sessions,
    usage,
)
from steersman.compat._shapes.hooks import *  # noqa: F403
from steersman.compat._shapes.mcp import *  # noqa: F403
from steersman.compat._shapes.messages import *  # noqa: F403
from steersman.compat._shapes.options import *  # noqa: F403
from steersman.compat._shapes.permissions import *  # noqa: F403
from steersman.compat._shapes.requests import *  # noqa: F403
from steersman.compat._shapes.stored_sessions import *  # noqa: F403
from steersman.compat._shapes.usage import *  # noqa: F403

__all__: list[str] = []
__all__ += hooks.__all__
__all__ += mcp.__all__
__all__ += messages.__all__
__all__ += options.__all__
__all__ += permissions.__all__
__all__ += requests.__all__
__all__ += stored_sessions.__all__
__all__ += usage.__all__
