"""Verbs: what we may ask of a running CLI.

A verb is a frozen struct; its type parameter is the answer it gets, so
`await session.call(SetModel(model="opus"))` is typed without a line of glue.
"""

from steersman.control import session, verbs
from steersman.control.session import *
from steersman.control.verbs import *

__all__: list[str] = []
__all__ += session.__all__
__all__ += verbs.__all__
