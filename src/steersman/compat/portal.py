"""Where the code of the caller runs: in the event loop of the session, or in trio.

A session needs asyncio. Under trio it runs in the event loop of a thread (`_trio.py`).
"""

from __future__ import annotations

import sys

from steersman.compat._runtime import SAME_LOOP, Runtime


def current_runtime() -> Runtime:
    """Return the runtime of the caller, who awaits in asyncio or in trio."""
    # trio imports sniffio, so a program that has imported neither does not run in trio.
    sniffio = sys.modules.get("sniffio")
    if sniffio is None or "trio" not in sys.modules:
        return SAME_LOOP
    try:
        name = sniffio.current_async_library()
    except sniffio.AsyncLibraryNotFoundError:
        return SAME_LOOP
    if name != "trio":
        return SAME_LOOP
    from steersman.compat._trio import TrioRuntime  # noqa: PLC0415 - only programs that run in trio

    return TrioRuntime()
