"""Starts that fail: no CLI, a bad folder, a CLI that ends at once, options that it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from steersman.testing.script import say
from tests.compat.programs.catalogue import program
from tests.compat.programs.stage import Stage


async def starting(sdk: Any, stage: Stage, *, loosely: bool = False, **options: Any) -> None:
    """Try a one-shot and a client with options, and record how both fail."""
    given = stage.options(**options)
    asking = stage.read(sdk.query(prompt="go", options=given))
    await stage.trying("query", asking, loosely=loosely)
    client = sdk.ClaudeSDKClient(given)
    await stage.trying("connect", client.connect(), loosely=loosely)
    await stage.trying("disconnect", client.disconnect())


def command(stage: Stage, lines: str) -> Path:
    path = stage.write("claude", f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)
    return path


@program()
async def start_without_a_cli(sdk: Any, stage: Stage) -> None:
    await starting(sdk, stage, cli_path=str(stage.cwd / "missing"))


@program()
async def start_in_a_folder_that_is_not_there(sdk: Any, stage: Stage) -> None:
    await starting(sdk, stage, cwd=str(stage.cwd / "missing"))


@program()
async def start_of_a_file_that_is_no_program(sdk: Any, stage: Stage) -> None:
    await starting(sdk, stage, cli_path=str(stage.write("claude", "not a program")))


@program()
async def start_of_a_cli_that_ends_at_once(sdk: Any, stage: Stage) -> None:
    path = command(stage, "echo 'no licence' >&2; exit 3")
    await starting(sdk, stage, loosely=True, cli_path=str(path))


@program()
async def start_of_a_cli_that_ends_well_at_once(sdk: Any, stage: Stage) -> None:
    await starting(sdk, stage, loosely=True, cli_path=str(command(stage, "exit 0")))


@program()
async def start_of_a_cli_that_writes_something_else(sdk: Any, stage: Stage) -> None:
    lines = "echo 'Welcome!'; echo '{broken'; exit 0"
    await starting(sdk, stage, loosely=True, cli_path=str(command(stage, lines)))


@program()
async def start_with_an_unknown_flag(sdk: Any, stage: Stage) -> None:
    seen: list[str] = []
    await starting(sdk, stage, extra_args={"no-such-flag": "1"}, stderr=seen.append)
    stage.note("stderr", sorted(set(seen)))


@program()
async def start_with_settings_that_are_not_there(sdk: Any, stage: Stage) -> None:
    seen: list[str] = []
    await starting(sdk, stage, settings=str(stage.cwd / "missing.json"), stderr=seen.append)
    stage.note("stderr", sorted(set(seen)))


@program()
async def start_with_a_session_that_is_not_there(sdk: Any, stage: Stage) -> None:
    await starting(sdk, stage, resume="00000000-0000-4000-8000-000000000009")


@program()
async def start_in_bypass_mode_as_root(sdk: Any, stage: Stage) -> None:
    await starting(sdk, stage, permission_mode="bypassPermissions")


@program(say("one"))
async def start_with_the_id_of_another_session(sdk: Any, stage: Stage) -> None:
    own = "00000000-0000-4000-8000-000000000007"
    options = stage.options(session_id=own)
    await stage.read(sdk.query(prompt="first", options=options))
    await stage.trying("again", stage.read(sdk.query(prompt="second", options=options)))


@program()
async def start_with_wrong_options(sdk: Any, stage: Stage) -> None:
    wrong: tuple[tuple[str, Any], ...] = (("permission_mode", "nonsense"), ("effort", "none"))
    for name, value in wrong:
        client = sdk.ClaudeSDKClient(stage.options(**{name: value}))
        await stage.trying(name, client.connect(), loosely=True)
        await client.disconnect()
