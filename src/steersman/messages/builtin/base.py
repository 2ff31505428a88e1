"""The base classes of inputs and outputs of built-in tools."""

from __future__ import annotations

from steersman._struct import WireStruct

__all__ = ["Part", "ToolInput", "ToolOutput"]


class Part(WireStruct, frozen=True, kw_only=True):
    """A value inside an input or an output."""


class ToolInput(Part, frozen=True, kw_only=True):
    """The input that the model gives to a tool. A field that the CLI does not require may be None.

    The CLI has not checked it yet: a malformed field has its default, and `raw` has its value.
    """


class ToolOutput(Part, frozen=True, kw_only=True, rename="camel"):
    """The output of a tool, beside the text for the model. A field that is not there is None."""
