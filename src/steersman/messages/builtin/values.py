"""What every input and output of a built-in tool has."""

from __future__ import annotations

from steersman._values import Wire
from steersman.messages.nesting import adopt_inside

__all__ = ["Part", "ToolInput", "ToolOutput"]


class Part(Wire, frozen=True, kw_only=True):
    """Something inside an input or an output; what stands inside it learns where."""

    def adopt(self) -> None:
        """Parts stand in the fields."""
        adopt_inside(self)


class ToolInput(Part, frozen=True, kw_only=True):
    """What the model gives a tool. Fields that the CLI does not require are None if left out.

    It is the model's word, not yet checked: what does not fit is its default, and in `raw`.
    """


class ToolOutput(Part, frozen=True, kw_only=True, rename="camel"):
    """What a tool gave back, beside the text for the model. What is not there is None."""
