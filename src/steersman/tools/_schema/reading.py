"""Plain JSON to typed values.

A type goes in, a reader comes out; what it refuses, it refuses with the path and the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from steersman._json import is_object
from steersman.tools._schema.stand_ins import Foreign, name_of, new_class, read_foreign
from steersman.tools.records import complete, known_fields, leaves_defaults_out, record_classes

__all__ = ["Choice", "choice_of", "reader_of"]

Read = Callable[[Any], Any]


class Choice(Foreign):
    """A union that msgspec refuses; its members are tried one by one."""

    members: ClassVar[tuple[Any, ...]]


def reader_of(wanted: Any) -> Read:
    """Make the reader of a readable type; it raises `ValueError` with the path and the reason."""

    def read(value: Any) -> Any:
        try:
            return msgspec.convert(value, wanted, dec_hook=read_foreign, str_keys=True)
        except msgspec.ValidationError as error:
            raise ValueError(_explain(str(error))) from error

    def read_completely(value: Any) -> Any:
        result = read(value)
        complete(result)
        return result

    return read_completely if any(map(leaves_defaults_out, record_classes(wanted))) else read


def choice_of(members: tuple[Any, ...]) -> type[Choice]:
    """Stand in for a union; of several members that fit, the one that loses least is taken."""
    readers = [(member, known_fields(member), reader_of(member)) for member in members]

    def read(value: Any) -> Any:
        fitting: list[tuple[int, Any]] = []
        reasons: list[str] = []
        for member, known, read_member in readers:
            try:
                fitting.append((_lost(value, known), read_member(value)))
            except ValueError as misfit:
                reasons.append(f"{name_of(member)} ({misfit})")
        if not fitting:
            raise ValueError("fits none of " + ", ".join(reasons))
        return min(fitting, key=lambda fit: fit[0])[1]

    return new_class(Choice, "Choice", read=staticmethod(read), members=members)


def _explain(message: str) -> str:
    """Put msgspec's path first: "Expected `int`, got `str` - at `$.a`" -> "a: Expected ..."."""
    reason, separator, path = message.rpartition(" - at `$")
    if not separator:
        return message
    path = path.removesuffix("`").removeprefix(".")
    return f"{path}: {reason}" if path else reason


def _lost(value: Any, known: frozenset[str] | None) -> int:
    return len(value.keys() - known) if known is not None and is_object(value) else 0
