"""MCP resources: texts and bytes that the model may read without calling a tool.

A resource is a text, bytes, or a function that returns them, under a URI. A URI with `{names}` is
a template, and its function takes one argument for each name.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast
from urllib.parse import unquote

from steersman.errors import UsageError
from steersman.ports import JsonObject
from steersman.tools._mcp.jsonrpc import (
    RESOURCE_NOT_FOUND,
    JsonRpcError,
    Method,
    check_no_cursor,
    required_text,
)
from steersman.tools._schema.docstrings import read_docstring
from steersman.tools._threads import Function, Handler, handler_of, parameter_names, run_handler
from steersman.tools.results import is_bytes, plain_text

Content: TypeAlias = str | bytes | Callable[..., Any]

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.+", re.DOTALL)
PLACE = re.compile(r"\{(\+?)(\w+)\}")


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource. `{name}` in the URI matches one segment of a path, `{+name}` any text.

    If a function returns neither text nor bytes, the value is sent as JSON.
    """

    uri: str
    content: Content = field(repr=False)
    name: str = ""
    """Shown to the model; if empty, the URI is shown."""
    description: str = ""
    mime_type: str | None = None
    """`None`: text/plain, application/octet-stream or application/json, by the type of content."""
    _pattern: re.Pattern[str] = field(init=False, repr=False, compare=False)
    _handler: Handler | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.uri), str) or not SCHEME.fullmatch(self.uri):
            raise UsageError("uri", self.uri, "a URI with a scheme, such as note://today")
        for about in ("name", "description"):
            if not isinstance(getattr(self, about), str):
                raise UsageError(about, getattr(self, about), "text")
        object.__setattr__(self, "_pattern", _pattern_of(self.uri))
        object.__setattr__(self, "_handler", self._checked_handler())

    @property
    def is_template(self) -> bool:
        """Whether the URI has `{names}`."""
        return bool(self._pattern.groups)

    def listed(self) -> JsonObject:
        """Return the entry for `resources/list` or `resources/templates/list`."""
        listed = {"uriTemplate" if self.is_template else "uri": self.uri}
        listed["name"] = self.name or self.uri
        if self.description:
            listed["description"] = self.description
        if self.mime_type:
            listed["mimeType"] = self.mime_type
        return listed

    def match(self, uri: str) -> Mapping[str, str] | None:
        """Return the values of the `{names}` in `uri`; `None` if it does not match."""
        found = self._pattern.fullmatch(uri)
        if found is None:
            return None
        return {name: unquote(text) for name, text in found.groupdict().items()}

    async def read(self, uri: str, places: Mapping[str, str]) -> JsonObject:
        """Return the entry of `contents` for `resources/read`."""
        content: object = self.content
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
) -> Callable[[Function], Resource]:
    """Make a resource from a function, by its name and docstring, under this URI."""

    def decorate(function: Function) -> Resource:
        called = getattr(function, "__name__", "") if name is None else name
        about = read_docstring(function.__doc__).description if description is None else description
        return Resource(uri, function, called, about, mime_type)

    return decorate


def resource_methods(resources: Iterable[Resource]) -> dict[str, Method]:
    """Return the MCP methods that serve `resources`, which are read anew at each request."""

    def listed(params: JsonObject) -> JsonObject:
        check_no_cursor(params)
        return {"resources": [each.listed() for each in resources if not each.is_template]}

    def listed_templates(params: JsonObject) -> JsonObject:
        check_no_cursor(params)
        return {"resourceTemplates": [each.listed() for each in resources if each.is_template]}

    async def read(params: JsonObject) -> JsonObject:
        uri = required_text(params, "uri")
        # A plain URI is preferred to a template that matches it too.
        for each in sorted(resources, key=lambda each: each.is_template):
            places = each.match(uri)
            if places is not None:
                return {"contents": [await each.read(uri, places)]}
        raise JsonRpcError(RESOURCE_NOT_FOUND, f"uri: there is no resource {uri!r}")

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
        raise UsageError("uri", uri, "a URI whose {names} differ", hint=str(error)) from error
