"""Verbs about models and thinking."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

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
    """A model that the account may use."""

    value: str = ""
    """The alias for `SetModel` and `Options.model`, such as `opus`."""
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
    """The models that the account may use."""

    models: list[ModelInfo] = []


class ListModels(Verb[Models], frozen=True, kw_only=True, tag="list_models"):
    """Request the models that the account may use."""


class ModelSet(Answer, frozen=True, kw_only=True):
    """The full name of the model."""

    model: str = ""


class SetModel(Verb[ModelSet], frozen=True, kw_only=True, tag="set_model"):
    """Use another model from the next API call on. A wrong name fails only in that call."""

    model: Text | None
    """An alias or a full name; `None` selects the default model."""


class SetMaxThinkingTokens(Verb[Answer], frozen=True, kw_only=True, tag="set_max_thinking_tokens"):
    """Limit the model's thinking. A field that is not given stays unchanged."""

    max_thinking_tokens: Count | UnsetType | None = UNSET
    """`None` removes the limit."""
    thinking_display: ThinkingDisplay | UnsetType | None = UNSET
