"""Resources: what the model may read without calling a tool.

A text, bytes, or a function that gives them, under an address; an address with `{names}` is a
template, and its function takes what stands in their place.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import unquote

from steersman.errors import UsageError
from steersman.ports import JsonObject
from steersman.tools._mcp.jsonrpc import (
    RESOURCE_NOT_FOUND,
    Answers,
    Refused,
    refuse_cursor,
    text_of,
)
from steersman.tools._run.threads import Handler, handler_of, parameter_names, run_handler
from steersman.tools._schema.docstrings import read_docstring
from steersman.tools.results import is_bytes, plain_text
from steersman.tools.toolbox import NamedItems

__all__ = ["Resource", "resource", "resource_answers"]

Content = str | bytes | Callable[..., Any]

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.+", re.DOTALL)
PLACE = re.compile(r"\{(\+?)(\w+)\}")


@dataclass(frozen=True, slots=True)
class Resource:
    """Something to read. `{name}` in the address stands for one step of a path, `{+name}` for any.

    A function that gives neither text nor bytes gives a value, which is read as JSON.
    """

    uri: str
    content: Content = field(repr=False)
    name: str = ""
    """ExposedTools to the model; the address if left empty."""
    description: str = ""
    mime_type: str | None = None
    """`None`: text/plain, application/octet-stream or application/json, by what it is."""
    _pattern: re.Pattern[str] = field(init=False, repr=False, compare=False)
    _handler: Handler | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.uri), str) or not SCHEME.fullmatch(self.uri):
            raise UsageError("uri", self.uri, "an address with a scheme, such as note://today")
        for about in ("name", "description"):
            if not isinstance(getattr(self, about), str):
                raise UsageError(about, getattr(self, about), "text")
        object.__setattr__(self, "_pattern", _pattern_of(self.uri))
        object.__setattr__(self, "_handler", self._checked_handler())

    @property
    def is_template(self) -> bool:
        """Whether the address stands for many."""
        return bool(self._pattern.groups)

    def listed(self) -> JsonObject:
        """Describe it for `resources/list` or `resources/templates/list`."""
        listed = {"uriTemplate" if self.is_template else "uri": self.uri}
        listed["name"] = self.name or self.uri
        if self.description:
            listed["description"] = self.description
        if self.mime_type:
            listed["mimeType"] = self.mime_type
        return listed

    def match(self, uri: str) -> Mapping[str, str] | None:
        """What stands in the places of the address; `None` if it is another address."""
        found = self._pattern.fullmatch(uri)
        if found is None:
            return None
        return {name: unquote(text) for name, text in found.groupdict().items()}

    async def read(self, uri: str, places: Mapping[str, str]) -> JsonObject:
        """Give one entry of `contents`."""
        content = self.content
        if self._handler is not None:
            content = await run_handler(self._handler, places)
        if is_bytes(content):
            blob = base64.b64encode(content).decode()
            kind = self.mime_type or "application/octet-stream"
            return {"uri": uri, "mimeType": kind, "blob": blob}
        is_text = isinstance(content, str)
        kind = self.mime_type or ("text/plain" if is_text else "application/json")
        return {"uri": uri, "mimeType": kind, "text": plain_text(content)}

    def _checked_handler(self) -> Handler | None:
        places = set(self._pattern.groupindex)
        if isinstance(self.content, (str, bytes)):
            if places:
                raise UsageError("content", self.content, f"a function of {', '.join(places)}")
            return None
        if not callable(cast("object", self.content)):
            raise UsageError("content", self.content, "text, bytes or a function")
        if set(parameter_names(self.content)) != places:
            takes = ", ".join(sorted(places)) or "nothing"
            raise UsageError("content", self.content, f"a function of {takes}, as in {self.uri}")
        return handler_of(self.content)


def resource(
    uri: str,
    *,
    name: str | None = None,
    description: str | None = None,
    mime_type: str | None = None,
) -> Callable[[Callable[..., Any]], Resource]:
    """Make a resource of a function: its name and its docstring, under this address."""

    def decorate(function: Callable[..., Any]) -> Resource:
        called = getattr(function, "__name__", "") if name is None else name
        about = read_docstring(function.__doc__).description if description is None else description
        return Resource(uri, function, called, about, mime_type)

    return decorate


def resource_answers(shelf: NamedItems[Resource]) -> Answers:
    """Answer for the resources of a toolbox."""

    def listed(params: Mapping[str, Any]) -> JsonObject:
        refuse_cursor(params)
        return {"resources": [each.listed() for each in shelf if not each.is_template]}

    def listed_templates(params: Mapping[str, Any]) -> JsonObject:
        refuse_cursor(params)
        return {"resourceTemplates": [each.listed() for each in shelf if each.is_template]}

    async def read(params: Mapping[str, Any]) -> JsonObject:
        uri = text_of(params, "uri")
        # A plain address goes before a template that it also fits.
        for each in sorted(shelf, key=lambda each: each.is_template):
            places = each.match(uri)
            if places is not None:
                return {"contents": [await each.read(uri, places)]}
        raise Refused(RESOURCE_NOT_FOUND, f"uri: there is no resource {uri!r}")

    return {
        "resources/list": listed,
        "resources/templates/list": listed_templates,
        "resources/read": read,
    }


def _pattern_of(uri: str) -> re.Pattern[str]:
    pattern, end = "", 0
    for place in PLACE.finditer(uri):
        pattern += re.escape(uri[end : place.start()])
        pattern += f"(?P<{place[2]}>{'.+' if place[1] else '[^/?#]+'})"
        end = place.end()
    try:
        return re.compile(pattern + re.escape(uri[end:]), re.DOTALL)
    except re.error as error:
        raise UsageError("uri", uri, "an address whose {names} differ", hint=str(error)) from error
