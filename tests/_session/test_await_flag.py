"""A CLI that refuses `--await-initialize` is remembered, and started without it."""

from __future__ import annotations

import os
from pathlib import Path

from steersman._launch.plan import LaunchPlan, plan
from steersman._session.programs import AwaitFlag
from steersman.errors import OptionRefused
from steersman.options import Options

ID = "0a1b2c3d-1111-4222-8333-123456789abc"
UNKNOWN = OptionRefused("the CLI refused to start: error: unknown option '--await-initialize'")


def resuming(program: Path) -> LaunchPlan:
    return plan(Options(resume=ID), program=str(program), host_env={}, new_session_id=ID)


def waits(found: LaunchPlan | None) -> bool:
    assert found is not None
    return "--await-initialize" in found.launch.argv


def test_a_program_that_refused_the_flag_is_started_without_it(tmp_path: Path) -> None:
    program = tmp_path / "claude"
    program.write_text("old")
    flag = AwaitFlag()
    assert waits(flag.adapt(resuming(program)))

    assert not waits(flag.without_flag(resuming(program), UNKNOWN))

    assert not waits(flag.adapt(resuming(program)))
    assert waits(flag.adapt(resuming(tmp_path / "other")))


def test_a_program_that_was_updated_is_tried_again(tmp_path: Path) -> None:
    program = tmp_path / "claude"
    program.write_text("old")
    flag = AwaitFlag()
    flag.without_flag(resuming(program), UNKNOWN)

    os.utime(program, ns=(1, 1))

    assert waits(flag.adapt(resuming(program)))


def test_a_program_on_another_machine_is_remembered_by_its_name() -> None:
    flag = AwaitFlag()
    flag.without_flag(resuming(Path("no-such-claude")), UNKNOWN)

    assert not waits(flag.adapt(resuming(Path("no-such-claude"))))


def test_another_refused_option_is_not_about_the_flag(tmp_path: Path) -> None:
    flag = AwaitFlag()
    refused = OptionRefused("the CLI refused to start: error: unknown option '--no-such-flag'")

    assert flag.without_flag(resuming(tmp_path), refused) is None
    assert waits(flag.adapt(resuming(tmp_path)))
