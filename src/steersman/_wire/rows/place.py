"""Where the CLI runs, and with which settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman import _json
from steersman._wire.draft import LONGEST_LIST, Draft, Row, ours, size_of, value, variable
from steersman.errors import UsageError
from steersman.options import checks

__all__ = ["PLACE", "RESERVED"]

RESERVED = frozenset(
    {
        "await-initialize",
        "include-partial-messages",
        "input-format",
        "managed-settings-in-initialize",
        "output-format",
        "permission-prompt-tool",
        "print",
        "replay-user-messages",
        "session-id",
        "verbose",
    }
)
"""Flags that the protocol hangs on, or that have their option."""


def _add_settings(draft: Draft, settings: Any) -> None:
    if isinstance(settings, Mapping):
        draft.settings |= checks.plain("settings", settings)
    elif isinstance(settings, str) and settings.lstrip().startswith("{"):
        draft.settings |= _settings_text(settings)
    elif settings is not None:
        draft.settings_path = str(settings)


def _settings_text(text: str) -> dict[str, Any]:
    try:
        found = _json.loads(text.encode("utf-8", "surrogatepass"))
    except ValueError as error:
        raise UsageError(
            "settings", "a text that is not JSON", f"JSON or a path ({error})"
        ) from None
    if not _json.is_object(found):
        raise UsageError("settings", "JSON that is no object", "a JSON object or a path")
    return found


def _add_managed(draft: Draft, settings: Mapping[str, Any] | None) -> None:
    """By the greeting: on argv, where the CLI also takes them, anyone could read them."""
    if settings is not None:
        draft.await_initialize()
        draft.argv.append("--managed-settings-in-initialize")
        draft.initialize["managed_settings"] = checks.plain("managed_settings", settings)


def _add_sources(draft: Draft, sources: tuple[str, ...]) -> None:
    draft.argv.append(f"--setting-sources={','.join(sources)}")


def _add_directories(draft: Draft, directories: tuple[Any, ...]) -> None:
    paths = [str(each) for each in directories]
    flags = [f"--add-dir={each}" for each in paths]
    if size_of(flags) <= LONGEST_LIST:
        draft.argv += flags
    else:
        draft.add_rules("additionalDirectories", paths)


def _add_extra(draft: Draft, extra: Mapping[str, str | None]) -> None:
    for flag in RESERVED.intersection(extra):
        raise UsageError("extra_args key", flag, "a flag that is not steersman's own")
    draft.argv += [
        f"--{flag}" if value is None else f"--{flag}={value}" for flag, value in extra.items()
    ]


def _as_given(text: str | None) -> str | None:
    return text


PLACE: Mapping[str, Row] = {
    "settings": Row("`--settings`; what is no path in a private file", _add_settings),
    "managed_settings": Row(
        "`--managed-settings-in-initialize` and initialize: `managed_settings`", _add_managed
    ),
    "setting_sources": Row("`--setting-sources`", _add_sources),
    "cwd": ours("the process's directory"),
    "add_dirs": Row("`--add-dir`; a long list by `--settings`", _add_directories),
    "project_config_root": value("--project-config-root"),
    "cli_path": ours("the program"),
    "user": ours("the process's user"),
    "env": ours("the process's environment"),
    "inherit_env": ours("the process's environment"),
    "client_app": variable("CLAUDE_AGENT_SDK_CLIENT_APP", _as_given),
    "extra_args": Row("as they are", _add_extra),
}
