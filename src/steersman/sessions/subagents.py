"""The subagents of a session: `<id>/subagents/**/agent-<agent>.jsonl`, with a `.meta.json` each."""

from __future__ import annotations

import os

from steersman._json import JsonObject
from steersman.sessions.changes import read_note
from steersman.transcripts.entries import AgentInfo
from steersman.transcripts.keys import is_safe_subpath

FOLDER = "subagents"
PREFIX = "agent-"
SUFFIX = ".jsonl"
META = ".meta.json"


def agents_in(folder: str) -> list[AgentInfo]:
    """Return the subagents in the folder of a session."""
    found = [
        agent_info(subpath, read_note(os.path.join(folder, subpath) + META))
        for subpath in _subpaths(folder)
    ]
    return sorted(found, key=lambda each: each.subpath)


def agents_of(subpaths: list[str]) -> list[str]:
    """Return those of a store's subpaths that are subagents."""
    return [
        each
        for each in subpaths
        if is_safe_subpath(each) and each.rpartition("/")[2].startswith(PREFIX)
    ]


def agent_info(subpath: str, meta: JsonObject) -> AgentInfo:
    """Return what is known of a subagent."""
    return AgentInfo(
        agent_id=subpath.rpartition("/")[2].removeprefix(PREFIX),
        agent_type=_text(meta, "agentType"),
        description=_text(meta, "description"),
        parent_tool_use_id=_text(meta, "toolUseId"),
        parent_agent_id=_text(meta, "parentAgentId"),
        subpath=subpath,
    )


def _subpaths(folder: str) -> list[str]:
    found: list[str] = []
    for place, _, names in os.walk(os.path.join(folder, FOLDER)):
        inside = os.path.relpath(place, folder).replace(os.sep, "/")
        for name in names:
            subpath = f"{inside}/{name.removesuffix(SUFFIX)}"
            is_agent = name.startswith(PREFIX) and name.endswith(SUFFIX)
            if is_agent and is_safe_subpath(subpath):
                found.append(subpath)
    return found


def _text(meta: JsonObject, name: str) -> str | None:
    found = meta.get(name)
    return found if isinstance(found, str) and found else None
