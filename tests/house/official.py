"""What can be seen of a package's public names at run time, as plain text to compare.

Classes are named without their module, so that two packages with the same shapes say the same.
Source files and docstrings are never read.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Facts = dict[str, str]
"""What was seen, by what it is about."""

NAMES: Mapping[str, Any] = {
    **vars(collections.abc),
    "Any": Any,
    "Path": Path,
}
"""Names in annotations that a module may import for type checkers only."""

COMPARED = ("claude_agent_sdk", "steersman")
"""Packages whose methods are looked at; what a base of another package has is the same in both."""


def facts(value: object, names: Mapping[str, Any]) -> Facts:
    """Return the visible form of `value`; `names` are those that annotations may use."""
    if typing.is_typeddict(value):
        return _keys(typing.cast("type", value), names)
    if inspect.isclass(value):
        return {
            **_bases(value),
            **_fields(value, names),
            **_model_fields(value),
            **_methods(value, names),
        }
    if inspect.isroutine(value):
        return _signature("call", value, names)
    return {"value": form(value)}


def form(annotation: object) -> str:
    """Return an annotation or a plain value as text that is the same in both packages."""
    if annotation is None or annotation is types.NoneType:
        return "None"
    if annotation is Any:
        return "Any"
    origin = typing.get_origin(annotation)
    if origin is None:
        return annotation.__name__ if inspect.isclass(annotation) else _plain(annotation)
    arguments = typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(form(each) for each in arguments)
    name = getattr(origin, "__name__", None) or str(origin).rpartition(".")[2]
    inside = ", ".join(
        f"[{', '.join(form(part) for part in typing.cast('list[object]', each))}]"
        if isinstance(each, list)
        else form(each)
        for each in arguments
    )
    return f"{name}[{inside}]"


def _plain(value: object) -> str:
    if isinstance(value, frozenset):
        return f"frozenset({sorted(map(repr, typing.cast('frozenset[object]', value)))})"
    return repr(value)


def _hints(value: Callable[..., object] | type, names: Mapping[str, Any]) -> dict[str, Any]:
    return typing.get_type_hints(value, localns={**NAMES, **names}, include_extras=True)


def _keys(value: type, names: Mapping[str, Any]) -> Facts:
    required: frozenset[str] = getattr(value, "__required_keys__", frozenset[str]())
    return {
        f"key {name}": f"{_unwrapped(hint)}{'' if name in required else ', optional'}"
        for name, hint in _hints(value, names).items()
    }


def _unwrapped(hint: object) -> str:
    """Return a key's type; whether it is required is known from the class."""
    if typing.get_origin(hint) in (typing.Required, typing.NotRequired):
        (hint,) = typing.get_args(hint)
    return form(hint)


def _bases(value: type) -> Facts:
    found = [base.__name__ for base in value.__mro__[1:]]
    abstract: frozenset[str] = getattr(value, "__abstractmethods__", frozenset[str]())
    return {"bases": str(found), "abstract": str(sorted(abstract))}


def _fields(value: type, names: Mapping[str, Any]) -> Facts:
    if not dataclasses.is_dataclass(value):
        return {}
    hints = _hints(value, names)
    found = {"dataclass": str(getattr(value, "__dataclass_params__", None))}
    for each in dataclasses.fields(value):
        found[f"field {each.name}"] = f"{form(hints[each.name])} = {_default(each)}"
    found["order of fields"] = str([each.name for each in dataclasses.fields(value)])
    return found


def _model_fields(value: type) -> Facts:
    """Return the fields of a pydantic model."""
    found: dict[str, Any] = getattr(value, "model_fields", {})
    return {
        f"model field {name}": f"{form(each.annotation)} = {each.default!r} as {each.alias}"
        for name, each in found.items()
    }


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return _shown(field.default)
    if field.default_factory is not dataclasses.MISSING:
        return _shown(field.default_factory())
    return "none"


def _shown(default: object) -> str:
    """Return a default as text. The official one for standard error is from its import."""
    return "stderr" if hasattr(default, "write") else repr(default)


def _methods(value: type, names: Mapping[str, Any]) -> Facts:
    found: Facts = {}
    for base in reversed(value.__mro__):
        if base.__module__.partition(".")[0] not in COMPARED:
            continue
        members: dict[str, Any] = dict(vars(base))
        for name, member in members.items():
            if name.startswith("_") and name not in ("__init__", "__aenter__", "__aexit__"):
                continue
            if name == "__init__" and _is_made(base):
                continue
            if isinstance(member, property):
                found[f"property {name}"] = form(_hints(_getter(member), names).get("return"))
            elif kind := _kind(member):
                found |= _signature(f"{kind} {name}", getattr(value, name), names)
    return found


def _kind(member: object) -> str:
    kinds = (classmethod, staticmethod, types.FunctionType)
    return next((kind.__name__ for kind in kinds if isinstance(member, kind)), "")


def _is_made(base: type) -> bool:
    """Return whether Python wrote the `__init__` of a class; fields say all about it."""
    return hasattr(base, "__dataclass_fields__") or bool(getattr(base, "_is_protocol", False))


def _getter(member: property) -> Callable[..., object]:
    assert member.fget is not None
    return member.fget


def _signature(label: str, value: Callable[..., object], names: Mapping[str, Any]) -> Facts:
    hints = _hints(value, names)
    found = {
        f"{label} is": str(
            [
                check.__name__
                for check in (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
                if check(value)
            ]
        )
    }
    parameters = inspect.signature(value).parameters
    for each in parameters.values():
        default = "" if each.default is each.empty else f" = {each.default!r}"
        hint = form(hints[each.name]) if each.name in hints else "-"
        found[f"{label}({each.name})"] = f"{each.kind.name} {hint}{default}"
    found[f"{label} parameters"] = str(list(parameters))
    if not label.endswith("__init__"):
        found[f"{label} returns"] = form(hints["return"]) if "return" in hints else "-"
    return found
