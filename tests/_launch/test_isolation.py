"""What is closed for every agent unless an option opens it."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from typing import Any

import pytest

from steersman._launch.plan import LaunchPlan, plan, redacted, without_waiting
from steersman.errors import UsageError
from steersman.options import Options
from steersman.ports import FileArgument

NEW = "0a1b2c3d-1111-4222-8333-123456789abc"
OPEN: dict[str, Any] = {"memory": True, "skill_commands": True}


def planned(env: dict[str, str] | None = None, **options: Any) -> LaunchPlan:
    return plan(Options(**options), program="claude", host_env=env or {}, new_session_id=NEW)


def settings_of(found: LaunchPlan) -> Any:
    inline = [str(each)[11:] for each in found.launch.argv if str(each).startswith("--settings={")]
    assert len(inline) + ("settings.json" in found.launch.files) <= 1
    return json.loads(inline[0] if inline else found.launch.files.get("settings.json", b"{}"))


def denied(found: LaunchPlan) -> list[str]:
    """Return the deny rules, except those about the directories of other sessions."""
    rules = settings_of(found).get("permissions", {}).get("deny", [])
    return [each for each in rules if not each.endswith("]*/**)")]


PRIVATE = [
    "Read(~/.claude/projects/**/memory/**)",
    "Read(~/.claude/projects/**/*.jsonl)",
    "Edit(~/.claude/projects/**)",
    "Read(~/.claude/steersman/**/*.jsonl)",
    "Edit(~/.claude/steersman/**)",
    "Read(~/.claude/projects/**/session-memory/**)",
    "Read(~/.claude/agent-memory/**)",
    "Edit(~/.claude/agent-memory/**)",
    "Read(~/.claude/tasks/**)",
    "Read(~/.claude/teams/**)",
]
IN_PROJECTS = [
    "Read(//**/.claude/agent-memory/**)",
    "Edit(//**/.claude/agent-memory/**)",
    "Read(//**/.claude/agent-memory-local/**)",
    "Edit(//**/.claude/agent-memory-local/**)",
]


def test_memory_and_transcripts_are_closed_by_default() -> None:
    found = planned()

    assert found.launch.env["CLAUDE_CODE_DISABLE_AUTO_MEMORY"] == "1"
    assert denied(found) == PRIVATE + IN_PROJECTS
    assert list(found.launch.files) == ["settings.json"]


def test_errors_do_not_repeat_what_every_session_has() -> None:
    assert "--settings=<file>" in redacted(planned().launch)
    assert "--settings=…" in redacted(planned(memory=True).launch)


def test_memory_can_be_opened() -> None:
    found = planned(memory=True)

    assert "CLAUDE_CODE_DISABLE_AUTO_MEMORY" not in found.launch.env
    assert denied(found) == []


def test_the_callers_own_variable_wins_and_the_rules_stay() -> None:
    found = planned(env={"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "0"}, inherit_env=True)
    assert found.launch.env["CLAUDE_CODE_DISABLE_AUTO_MEMORY"] == "1"

    options = Options(env={"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "0"})
    found = plan(options, program="claude", host_env={}, new_session_id=NEW)

    assert found.launch.env["CLAUDE_CODE_DISABLE_AUTO_MEMORY"] == "0"
    assert denied(found) == PRIVATE + IN_PROJECTS


def test_a_configuration_directory_elsewhere_is_closed_too() -> None:
    found = planned(env={"CLAUDE_CONFIG_DIR": "/srv/a[b]*/"})

    at = len(PRIVATE)
    assert denied(found)[:at] == PRIVATE
    assert denied(found)[at] == r"Read(//srv/a\[b\]\*/projects/**/memory/**)"
    assert denied(found)[2 * at :] == IN_PROJECTS


def test_commands_in_skills_are_closed_by_default_and_can_be_opened() -> None:
    assert settings_of(planned())["disableSkillShellExecution"] is True
    assert "disableSkillShellExecution" not in settings_of(planned(skill_commands=True))
    assert not [each for each in planned(**OPEN).launch.argv if "settings=" in str(each)]


def test_the_callers_settings_stay_and_the_rules_are_added_to_theirs() -> None:
    settings = {"permissions": {"deny": ["Bash"]}, "disableSkillShellExecution": False}

    found = planned(settings=settings)

    assert FileArgument("--settings=", "settings.json") in found.launch.argv
    assert denied(found) == ["Bash", *PRIVATE, *IN_PROJECTS]
    assert settings_of(found)["disableSkillShellExecution"] is False
    assert settings == {"permissions": {"deny": ["Bash"]}, "disableSkillShellExecution": False}


def test_beside_a_settings_file_all_is_closed_by_managed_settings() -> None:
    found = planned(settings="/x.json", managed_settings={"permissions": {"deny": ["Bash"]}})

    assert "--settings=/x.json" in found.launch.argv
    assert found.launch.argv.count("--managed-settings-in-initialize") == 1
    assert "--await-initialize" in found.launch.argv
    managed = found.initialize.managed_settings or {}
    assert managed["permissions"]["deny"][: 1 + len(PRIVATE)] == ["Bash", *PRIVATE]
    assert managed["disableSkillShellExecution"] is True


def test_an_agent_with_a_memory_needs_the_option() -> None:
    agents = {"a": {"description": "d", "prompt": "p", "memory": "user"}}

    with pytest.raises(UsageError, match=r"agents\['a'\].memory.*memory=True"):
        planned(agents=agents)
    assert planned(agents=agents, memory=True).initialize.agents


@pytest.mark.parametrize(
    "options", [{"resume": NEW}, {"continue_conversation": True}], ids=["resume", "continue"]
)
def test_a_resumed_cli_waits_for_our_hooks_unless_it_is_too_old(options: dict[str, Any]) -> None:
    found = planned(**options)
    assert "--await-initialize" in found.launch.argv

    without = without_waiting(found)

    assert without is not None
    assert "--await-initialize" not in without.launch.argv
    assert {*found.launch.argv} - {*without.launch.argv} == {"--await-initialize"}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"resume": NEW, "managed_settings": {}},
        {"resume": NEW, "plugins": ["/x"], "plugin_delivery": "initialize"},
        {"resume": NEW, "settings": "/x.json"},
    ],
)
def test_a_launch_that_needs_to_wait_has_no_other_form(options: dict[str, Any]) -> None:
    assert without_waiting(planned(**options)) is None


def test_a_turn_is_never_run_again_without_waiting() -> None:
    options = Options(resume=NEW)
    found = plan(options, program="claude", host_env={}, new_session_id=NEW, reruns=True)

    assert without_waiting(found) is None


def closed_sessions(**options: Any) -> set[str]:
    """Return those of the sessions whose directories are closed."""
    place = "Read(~/.claude/projects/*/"
    rules = settings_of(planned(**options))["permissions"]["deny"]
    patterns = [each.split("/")[4] for each in rules if each.startswith(place)]
    return {each for each in SESSIONS if any(fnmatchcase(each, found) for found in patterns)}


OLD = "0a1b2c3d-1111-4222-8333-123456789abd"
SESSIONS = {NEW, OLD, "1a1b2c3d-1111-4222-8333-123456789abc", "memory", "x"}


def test_the_directories_of_all_other_sessions_are_closed() -> None:
    assert closed_sessions() == SESSIONS - {NEW}
    assert closed_sessions(session_id=OLD) == SESSIONS - {OLD}
    assert closed_sessions(resume=OLD) == SESSIONS - {OLD}
    assert closed_sessions(resume=OLD, fork_session=True) == SESSIONS - {OLD, NEW}


def test_if_the_session_is_not_known_the_directories_are_open() -> None:
    assert closed_sessions(continue_conversation=True) == set()
    assert closed_sessions(resume="a title") == set()


def test_the_temporary_files_of_other_sessions_are_closed() -> None:
    def folders(env: dict[str, str]) -> set[str]:
        rules = settings_of(planned(env=env))["permissions"]["deny"]
        return {each.partition("/claude-*")[0] for each in rules if "/claude-*/*/" in each}

    assert folders({}) == {"Read(//tmp"}
    assert folders({"TMPDIR": "/var/t"}) == {"Read(//var/t", "Read(//tmp"}
