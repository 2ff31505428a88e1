"""What every verb has, and what every answer has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, ClassVar, Generic, TypeVar, cast, get_args

from msgspec import Struct

from steersman import _json
from steersman._values import Wire, read_leniently, source_of
from steersman.control.checks import check, fields_of

__all__ = ["Answer", "Part", "Verb"]

AnswerT = TypeVar("AnswerT")

Reader = Callable[[Any], list[Any]]
Readers = Mapping[str, Reader]


class Part(Wire, frozen=True, kw_only=True, rename="camel"):
    """Something that an answer tells of; `raw` has its object as it came."""

    def adopt(self) -> None:
        """Tell the parts inside where they stand, unless they know."""
        for name, place in _places_of_parts(type(self)):
            for part, path in _parts_in(getattr(self, name), (place,)):
                if source_of(part) is None:
                    part.came_from((self, path))


class Answer(Part, frozen=True, kw_only=True):
    """What a CLI answers: all fields optional, `raw` has the whole, which is often nothing."""


class Verb(
    Struct, Generic[AnswerT], frozen=True, kw_only=True, tag_field="subtype", omit_defaults=True
):
    """An order or a question; `AnswerT` is what comes back.

    Making one with a value that the CLI could not take raises `UsageError`, naming the field.
    """

    ANSWER: ClassVar[type[Answer]] = Answer
    TIMEOUT: ClassVar[float | None] = None
    """Seconds that the answer may take, where that is more than the session's `request_timeout`."""
    CAPABILITY: ClassVar[str | None] = None
    """The name in `capabilities` of `system/init` by which a CLI tells that it knows this verb."""
    FIELD_CAPABILITIES: ClassVar[Mapping[str, str]] = {}
    """The same for fields that came later than their verb."""

    def __post_init__(self) -> None:
        check(self)

    @property
    def operation(self) -> str:
        """The CLI's name for it."""
        return str(self.__struct_config__.tag)

    @property
    def needs(self) -> frozenset[str]:
        """The capabilities that a CLI must tell of to do all that this value asks."""
        own = () if self.CAPABILITY is None else (self.CAPABILITY,)
        used = (word for name, word in self.FIELD_CAPABILITIES.items() if getattr(self, name))
        return frozenset((*own, *used))

    @property
    def patience(self) -> float | None:
        """`TIMEOUT`, unless a field says more."""
        return self.TIMEOUT


def many(part: type[Part]) -> Reader:
    """A reader of lists in which a strange item does not hide the others."""

    def read(found: Any) -> list[Any]:
        if not _json.is_array(found):
            return []
        objects = (each for each in found if _json.is_object(each))
        return [[read_leniently(part, each).came_from(each) for each in objects]]

    return read


@cache
def _places_of_parts(cls: type[Part]) -> tuple[tuple[str, str], ...]:
    """The fields that can hold parts, and their names on the wire: most classes have none."""
    fields = fields_of(cls)
    return tuple((each.name, each.encode_name) for each in fields if _can_hold(each.type))


def _can_hold(wanted: Any) -> bool:
    is_part = isinstance(wanted, type) and issubclass(wanted, Part)
    return is_part or any(_can_hold(each) for each in get_args(wanted))


def _parts_in(found: object, path: tuple[str | int, ...]) -> Iterator[tuple[Part, tuple[Any, ...]]]:
    if isinstance(found, Part):
        yield found, path
    elif isinstance(found, list):
        for position, each in enumerate(cast("list[object]", found)):
            yield from _parts_in(each, (*path, position))
