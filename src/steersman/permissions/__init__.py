"""What the CLI asks a person or a policy, and the answers."""

from steersman.permissions import decisions, questions
from steersman.permissions.decisions import *
from steersman.permissions.questions import *

__all__: list[str] = []
__all__ += decisions.__all__
__all__ += questions.__all__
