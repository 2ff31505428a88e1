"""Checks of arguments that several rooms need: callbacks, and misspelt names."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature, signature

from steersman.errors import Described, UsageError

_MARKS: Mapping[object, str] = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}


def check_callback(argument: str, given: object, *called_with: str) -> None:
    """Refuse what cannot be called with these arguments, which are passed by position.

    Raises `UsageError`, which names the function. A callable that has no signature is accepted.
    """
    allowed = f"a function of {_listed(called_with)}"
    if not callable(given):
        raise UsageError(argument, given, allowed)
    if not can_be_called_with(given, len(called_with)):
        raise UsageError(argument, shown(given), allowed)


def can_be_called_with(function: Callable[..., object], count: int) -> bool:
    """Return whether `function` takes `count` arguments by position; True if that is not known."""
    found = signature_of(function)
    if found is None:
        return True
    try:
        found.bind(*(None,) * count)
    except TypeError:
        return False
    return True


def shown(function: Callable[..., object]) -> Described:
    """Return the name of a function with its parameters, such as `check(event, *, strict)`."""
    name, found = name_of(function), signature_of(function)
    return Described(name if found is None else f"{name}({', '.join(_parameters(found))})")


def name_of(function: object) -> str:
    """Return the name of a function or method; that of its class for another callable."""
    # A `functools.partial` has no name of its own.
    function = getattr(function, "func", function)
    name = getattr(function, "__qualname__", None) or type(function).__name__
    return name.rpartition("<locals>.")[2]


def did_you_mean(given: object, known: Sequence[str]) -> str:
    """Return a hint that lists up to three names similar to `given`; empty if none is similar."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for a mistake

    near = get_close_matches(str(given), known, n=3)
    return f"did you mean {' or '.join(near)}?" if near else ""


def signature_of(function: Callable[..., object]) -> Signature | None:
    """Return the signature of a callable; None if it has none, as some built-in functions."""
    try:
        return signature(function)
    except (TypeError, ValueError):
        return None
    except NameError:
        # Python 3.14 evaluates annotations here, and some name what only type checkers import.
        return _signature_without_annotations(function)


def _signature_without_annotations(function: Callable[..., object]) -> Signature | None:
    if sys.version_info >= (3, 14):
        from annotationlib import Format  # noqa: PLC0415 - only for a few functions

        return signature(function, annotation_format=Format.STRING)
    return None


def _parameters(found: Signature) -> list[str]:
    shown: list[str] = []
    is_marked = False
    for each in found.parameters.values():
        if each.kind is Parameter.KEYWORD_ONLY and not is_marked:
            shown.append("*")
        is_marked = is_marked or each.kind in (Parameter.VAR_POSITIONAL, Parameter.KEYWORD_ONLY)
        default = "" if each.default is Parameter.empty else "=..."
        shown.append(f"{_MARKS.get(each.kind, '')}{each.name}{default}")
    return shown


def _listed(called_with: Sequence[str]) -> str:
    return called_with[0] if len(called_with) == 1 else f"({', '.join(called_with)})"
