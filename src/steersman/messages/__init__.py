"""What Claude says, and what the CLI says about itself.

To add a message, write its class in the file of its topic and name it in that file's union.
"""

from steersman.messages import content, parsing, system, tasks, turns
from steersman.messages.content import *
from steersman.messages.parsing import *
from steersman.messages.system import *
from steersman.messages.tasks import *
from steersman.messages.turns import *

__all__: list[str] = []
__all__ += content.__all__
__all__ += parsing.__all__
__all__ += system.__all__
__all__ += tasks.__all__
__all__ += turns.__all__
