"""Verbs about the model that answers."""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import UNSET, UnsetType

from steersman._struct import Readers, many_objects
from steersman.control.verbs import Answer, Count, Part, Text, Verb

__all__ = [
    "ListModels",
    "ModelInfo",
    "ModelSet",
    "Models",
    "SetMaxThinkingTokens",
    "SetModel",
    "ThinkingDisplay",
]

ThinkingDisplay = Literal["summarized", "omitted", "highlights"]


class ModelInfo(Part, frozen=True, kw_only=True):
    """A model that this account may use."""

    value: str = ""
    """What `SetModel` and `Options.model` take: an alias, such as `opus`."""
    resolved_model: str = ""
    display_name: str = ""
    description: str = ""
    supports_effort: bool = False
    supported_effort_levels: list[str] = []
    supports_adaptive_thinking: bool = False
    supports_fast_mode: bool = False
    supports_auto_mode: bool = False
    supports_thinking_off: bool = True


class Models(Answer, frozen=True, kw_only=True):
    """The models that this account may use."""

    READERS: ClassVar[Readers] = {"models": many_objects(ModelInfo)}

    models: list[ModelInfo] = []


class ListModels(Verb[Models], frozen=True, kw_only=True, tag="list_models"):
    """Ask which models there are."""


class ModelSet(Answer, frozen=True, kw_only=True):
    """The model that the name stands for."""

    model: str = ""


class SetModel(Verb[ModelSet], frozen=True, kw_only=True, tag="set_model"):
    """Use another model from the next API call on; a wrong name shows only then."""

    model: Text | None
    """An alias, or a full name; `None` is the default one."""


class SetMaxThinkingTokens(Verb[Answer], frozen=True, kw_only=True, tag="set_max_thinking_tokens"):
    """Let the model think more, less or not at all; what is left out stays as it is."""

    max_thinking_tokens: Count | UnsetType | None = UNSET
    """`None` takes the limit away."""
    thinking_display: ThinkingDisplay | UnsetType | None = UNSET
