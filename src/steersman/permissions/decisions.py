"""Answers to permission requests, elicitations and dialogs, in the form that the CLI reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from msgspec import Struct

from steersman._json import Json, JsonDict, JsonObject, is_mapping, is_sequence
from steersman.errors import UsageError
from steersman.permissions.updates import PermissionUpdate

__all__ = ["Allow", "Classification", "Decision", "Deny", "DialogAnswer", "ElicitationAnswer"]

UNKNOWN = "_unknown"
"""The attribute of an answer for the fields that this release does not know."""


class _Kept:
    """A slot that is no field: it is neither compared nor sent."""

    __slots__ = (UNKNOWN,)


class Answered(_Kept, Struct, frozen=True):
    """The base of answers that are an object in JSON."""

    @property
    def unknown(self) -> JsonObject:
        """The fields of the JSON it was read from that this release does not know."""
        found: JsonObject = getattr(self, UNKNOWN, {})
        return found


Classification = Literal["user_temporary", "user_permanent", "user_reject"]


class Allow(
    Answered,
    frozen=True,
    tag_field="behavior",
    tag="allow",
    rename="camel",
    omit_defaults=True,
):
    """Allow the tool, optionally with changed input and permission updates."""

    # The CLI rejects an answer with a null here and denies the tool, so None is not sent.
    updated_input: JsonDict | None = None
    updated_permissions: Sequence[PermissionUpdate | JsonObject] | None = None
    decision_classification: Classification | None = None
    """What the user chose, for the CLI's statistics."""

    def __post_init__(self) -> None:
        _check_classification(self.decision_classification)
        if not (self.updated_input is None or is_mapping(self.updated_input)):
            raise UsageError("updated_input", self.updated_input, "a mapping, or None")
        if self.updated_permissions is None:
            return
        if not is_sequence(self.updated_permissions):
            raise UsageError("updated_permissions", self.updated_permissions, "a list, or None")
        for each in self.updated_permissions:
            if not (isinstance(each, PermissionUpdate) or is_mapping(each)):
                raise UsageError(
                    "updated_permissions", each, "values such as AddRules(...) or SetMode(...)"
                )


class Deny(
    Answered, frozen=True, tag_field="behavior", tag="deny", rename="camel", omit_defaults=True
):
    """Deny the tool, give the model a reason, and optionally end the turn."""

    # The CLI rejects a denial without a message, so the message is required.
    message: str
    interrupt: bool = False
    decision_classification: Classification | None = None
    """What the user chose, for the CLI's statistics."""

    def __post_init__(self) -> None:
        _check_classification(self.decision_classification)
        if not isinstance(self.message, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("message", self.message, "a text with the reason for the model")
        if not isinstance(self.interrupt, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("interrupt", self.interrupt, "True or False")


Decision = Allow | Deny


def _check_classification(given: object) -> None:
    if given is not None and given not in get_args(Classification):
        allowed = f"one of {', '.join(get_args(Classification))}, or None"
        raise UsageError("decision_classification", given, allowed)


class ElicitationAnswer(Answered, frozen=True, omit_defaults=True):
    """The user's answer to an MCP server: `accept` with content, `decline`, or `cancel`."""

    action: Literal["accept", "decline", "cancel"]
    content: JsonDict | None = None

    def __post_init__(self) -> None:
        if self.action not in ("accept", "decline", "cancel"):
            raise UsageError("action", self.action, "one of accept, decline, cancel")
        if not (self.content is None or is_mapping(self.content)):
            raise UsageError("content", self.content, "a mapping, or None")


class DialogAnswer(Answered, frozen=True, omit_defaults=True):
    """The user's answer to a dialog of the CLI."""

    behavior: str
    result: Json = None
