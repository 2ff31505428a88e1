"""What a user wrote, as a list of sessions shows it: texts without what the CLI put in them."""

from __future__ import annotations

import re

from steersman import _json
from steersman._json import JsonObject

LONGEST_PROMPT = 200

_BY_THE_CLI = re.compile(
    r"""<(?:local-command-stdout|session-start-hook|tick|goal)>
    |\[Request[ ]interrupted[ ]by[ ]user
    |<ide_(opened_file|selection)>.*</ide_\1>\Z""",
    re.VERBOSE | re.DOTALL,
)


def texts_of(message: JsonObject) -> list[str]:
    """Return the texts of a user's message; none if it has the result of a tool."""
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    blocks = [each for each in content if _json.is_object(each)] if _json.is_array(content) else []
    if any(each.get("type") == "tool_result" for each in blocks):
        return []
    texts = (each.get("text") for each in blocks if each.get("type") == "text")
    return [text for text in texts if isinstance(text, str)]


def command_in(text: str) -> str | None:
    """Return the slash command that the CLI wrote down in `text`; None if there is none."""
    # Not a regular expression: that takes long for a text of many beginnings without an end.
    _, has_begun, rest = text.partition("<command-name>")
    command, has_ended, _ = rest.partition("</command-name>")
    return command if has_begun and has_ended else None


def prompt_in(text: str) -> str:
    """Return `text` on one line, shortened; empty if the CLI wrote it and not the user."""
    prompt = text.replace("\n", " ").strip()
    if not prompt or _BY_THE_CLI.match(prompt):
        return ""
    return prompt if len(prompt) <= LONGEST_PROMPT else prompt[:LONGEST_PROMPT].rstrip() + "…"
