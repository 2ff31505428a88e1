"""What every verb has."""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

from msgspec import Struct

from steersman._values import Wire

__all__ = ["Answer", "Verb"]

AnswerT = TypeVar("AnswerT")


class Answer(Wire, frozen=True, kw_only=True, rename="camel"):
    """What a CLI answers: all fields optional, `raw` has the whole, which is often nothing."""


class Verb(
    Struct, Generic[AnswerT], frozen=True, kw_only=True, tag_field="subtype", omit_defaults=True
):
    """An order or a question; `AnswerT` is what comes back."""

    ANSWER: ClassVar[type[Answer]] = Answer

    @property
    def operation(self) -> str:
        """The CLI's name for it."""
        return str(self.__struct_config__.tag)
