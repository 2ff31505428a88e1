"""What every input and output of a built-in tool has."""

from __future__ import annotations

from steersman._struct import WireStruct

__all__ = ["Part", "ToolInput", "ToolOutput"]


class Part(WireStruct, frozen=True, kw_only=True):
    """Something inside an input or an output; what stands inside it learns where."""


class ToolInput(Part, frozen=True, kw_only=True):
    """What the model gives a tool. Fields that the CLI does not require are None if left out.

    It is the model's word, not yet checked: what does not fit is its default, and in `raw`.
    """


class ToolOutput(Part, frozen=True, kw_only=True, rename="camel"):
    """What a tool gave back, beside the text for the model. What is not there is None."""
