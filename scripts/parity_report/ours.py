"""What steersman has, found by inspection.

This module holds no list of names, so it finds classes that are added and misses removed ones.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import pkgutil
import textwrap
from collections.abc import Iterable, Iterator
from functools import cache
from types import ModuleType

import steersman
from scripts.parity_report.marks import union_members
from steersman import control, hooks, messages
from steersman._launch.plan import ROWS
from steersman.agent import Agent, Session, Turn
from steersman.options import Options

__all__ = [
    "METHOD_OWNERS",
    "blocks",
    "dotted_name",
    "events",
    "field_names",
    "inbound",
    "messages_by_kind",
    "methods_that_call",
    "option_names",
    "outputs",
    "public",
    "tagged",
    "texts_in_source",
    "verbs",
]

NOT_SURFACE = ("steersman.cli", "steersman.compat", "steersman.testing")
"""Packages that are not looked at; the names of `compat` are official, and a table of their own."""

METHOD_OWNERS = (Session, Agent, Turn)
"""Classes whose methods correspond to methods of the official clients."""


def option_names() -> set[str]:
    """Return the options that a caller may set and that have a row in the launch table."""
    return {each.name for each in dataclasses.fields(Options)} & ROWS.keys()


def verbs() -> dict[str, type]:
    """Return the verb classes by subtype."""
    return _by_tag(_descendants(control.Verb))


def inbound() -> dict[str, type]:
    """Return the classes of control requests from the CLI, by subtype."""
    return {
        _tag(each): each
        for each in _public_classes()
        if _tag_field(each) == "subtype" and each.__module__.startswith("steersman.permissions.")
    }


def messages_by_kind() -> dict[str, type]:
    """Return the message classes by type, or by `system/subtype`."""
    found = union_members(messages.Message)
    return {
        f"system/{_tag(each)}" if _tag_field(each) == "subtype" else _tag(each): each
        for each in found
        if _tag(each)
    }


def blocks() -> dict[str, type]:
    """Return the content blocks by type."""
    return _by_tag(union_members(messages.Block))


def tagged(room: str) -> dict[str, type]:
    """Return every tagged class of a package, by tag."""
    home = f"steersman.{room}."
    return _by_tag(each for each in _public_classes() if each.__module__.startswith(home))


def events() -> dict[str, type]:
    """Return the hook events by the CLI's name."""
    return _by_tag(_descendants(hooks.HookEvent))


def outputs() -> dict[str, type]:
    """Return the event-specific outputs of hook replies, by the CLI's name of the event."""
    return _by_tag(_descendants(hooks.replies.Output))


@cache
def public() -> dict[str, list[object]]:
    """Return the classes and functions of the public modules, by name."""
    found: dict[str, list[object]] = {}
    for module in _public_modules():
        for name, thing in vars(module).items():
            is_ours = getattr(thing, "__module__", "") == module.__name__
            if is_ours and not name.startswith("_") and hasattr(thing, "__qualname__"):
                found.setdefault(name, []).append(thing)
    return found


def dotted_name(thing: object) -> str:
    """Return the shortest public path from which `thing` can be imported."""
    module, name = (str(getattr(thing, each)) for each in ("__module__", "__qualname__"))
    parts = module.split(".")
    homes = (".".join(parts[:size]) for size in range(1, len(parts)))
    found = [each for each in homes if getattr(importlib.import_module(each), name, None) is thing]
    return f"{found[0] if found else module}.{name}"


def field_names(cls: type) -> set[str]:
    """Return the fields of a wire class, as the CLI writes them."""
    return set(getattr(cls, "__struct_encode_fields__", ()))


def methods_that_call(verb: type, subtype: str) -> list[str]:
    """Return the session method with the name of this verb, or else those that send it."""
    own = [name for name in dir(Session) if not name.startswith("_")]
    if subtype in own:
        return [subtype]
    return [name for name in own if verb.__name__ in _names_in(Session, name)]


@cache
def texts_in_source(below: str = "steersman.") -> frozenset[str]:
    """Return every string literal in the code of the package, or of the modules `below` a name."""
    texts: set[str] = set()
    for module in _modules():
        if not module.__name__.startswith(below):
            continue
        nodes = ast.walk(ast.parse(inspect.getsource(module)))
        texts.update(
            each.value
            for each in nodes
            if isinstance(each, ast.Constant) and isinstance(each.value, str)
        )
    return frozenset(texts)


@cache
def _names_in(owner: type, name: str) -> frozenset[str]:
    thing = inspect.getattr_static(owner, name)
    if not inspect.isfunction(thing):
        return frozenset()
    nodes = ast.walk(ast.parse(textwrap.dedent(inspect.getsource(thing))))
    called = [each.func for each in nodes if isinstance(each, ast.Call)]
    return frozenset(each.id for each in called if isinstance(each, ast.Name))


def _modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(steersman.__path__, "steersman."):
        if not found.name.startswith(NOT_SURFACE) and not found.name.endswith(".__main__"):
            yield importlib.import_module(found.name)


def _public_modules() -> list[ModuleType]:
    return [each for each in _modules() if "._" not in each.__name__]


def _public_classes() -> list[type]:
    return [each for things in public().values() for each in things if isinstance(each, type)]


def _descendants(cls: type) -> Iterator[type]:
    below: list[type] = cls.__subclasses__()
    for each in below:
        if each.__module__.startswith("steersman."):
            yield each
            yield from _descendants(each)


def _by_tag(classes: Iterable[type]) -> dict[str, type]:
    return {_tag(each): each for each in classes if _tag(each)}


def _tag(cls: type) -> str:
    config = getattr(cls, "__struct_config__", None)
    return str(config.tag) if config is not None and config.tag is not None else ""


def _tag_field(cls: type) -> str:
    config = getattr(cls, "__struct_config__", None)
    return str(config.tag_field) if config is not None else ""
