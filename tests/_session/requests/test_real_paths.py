"""A policy decides about a path as it is written and about the file that it leads to."""

from __future__ import annotations

from pathlib import Path

import pytest

from steersman._json import JsonObject, is_mapping
from steersman._session.requests.policy_hook import PolicyHook, readings_of
from steersman.hooks import PreToolUse
from steersman.options import Options
from steersman.permissions import Policy, allow, deny
from steersman.permissions.paths import Place
from steersman.permissions.rules import ToolCall


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path.resolve() / "project"
    (project / "src").mkdir(parents=True)
    (project / "secret").mkdir()
    (project / "src" / "up").symlink_to(project)
    (project / "src" / "hidden").symlink_to(project / "secret")
    (tmp_path.resolve() / "linked").symlink_to(project)
    return project


def decide(policy: Policy, path: str, cwd: Path) -> object:
    event = PreToolUse(
        tool_name="Write",
        tool_input={"file_path": path},
        cwd=str(cwd),
        permission_mode="default",
    )
    found: JsonObject = PolicyHook(Options(policy=policy))(event)
    output = found.get("hookSpecificOutput")
    return output.get("permissionDecision") if is_mapping(output) else None


def test_an_approval_does_not_follow_links(project: Path) -> None:
    policy = Policy(allow("Edit(src/**)"))

    assert decide(policy, "src/a", project) == "allow"
    assert decide(policy, "src/up/a", project) is None
    assert decide(policy, "src/up/src/a", project) == "allow"
    assert decide(policy, "src/hidden/a", project) is None


def test_a_denial_follows_links(project: Path) -> None:
    policy = Policy(allow("Edit(src/**)"), deny("Edit(secret/**)"))

    assert decide(policy, "src/hidden/a", project) == "deny"
    assert decide(Policy(deny("Edit(src/up/**)")), "src/up/a", project) == "deny"


def test_a_project_that_is_itself_behind_a_link_has_the_same_rules(project: Path) -> None:
    linked = project.parent / "linked"
    policy = Policy(allow("Edit(src/**)"))

    assert decide(policy, "src/a", linked) == "allow"
    assert decide(policy, str(linked / "src" / "a"), linked) == "allow"
    assert decide(policy, str(linked / "src" / "up" / "a"), linked) is None


def test_a_path_that_cannot_be_followed_is_decided_as_it_is_written(project: Path) -> None:
    assert decide(Policy(deny("Edit(secret/**)")), "secret/\0", project) == "deny"


@pytest.mark.parametrize(
    ("path", "now"),
    [("src/hidden/a", ""), ("hidden/a", "src"), ("~/src/hidden/a", ""), ("x/../src/hidden/a", "")],
)
def test_a_path_begins_at_the_current_directory_or_at_home(
    project: Path, path: str, now: str
) -> None:
    place = Place(str(project), str(project), str(project / now) if now else "")
    call = ToolCall("Read", {"file_path": path, "limit": 5}, place=place)

    written, real = readings_of(call)

    assert written is call
    assert real.input == {"file_path": str(project / "secret" / "a"), "limit": 5}


def test_a_call_without_links_or_files_is_read_once(project: Path) -> None:
    place = Place(str(project))
    whole = str(project / "src" / "a")

    assert len(readings_of(ToolCall("Read", {"file_path": whole}, place=place))) == 1
    assert len(readings_of(ToolCall("Bash", {"command": "cat src/up/a"}, place=place))) == 1


def test_a_path_above_the_limit_of_rules_is_not_followed(project: Path) -> None:
    place = Place(str(project))
    at_limit, above = ("src/up/" + "a" * (length - 7) for length in (4096, 4097))

    followed = readings_of(ToolCall("Read", {"file_path": at_limit}, place=place))
    left = readings_of(ToolCall("Read", {"file_path": above}, place=place))

    assert (len(followed), len(left)) == (2, 1)


def followed(command: str, cwd: Path) -> dict[str, str]:
    """Return where the words of a command lead to through links."""
    *_, last = readings_of(
        ToolCall("Bash", {"command": command}, place=Place(str(cwd))), follows_words=True
    )
    return dict(last.links)


def test_the_words_of_a_command_are_followed_if_that_is_wanted(project: Path) -> None:
    line = ToolCall("Bash", {"command": "cat src/b && ls src/up"}, place=Place(str(project)))

    written, real = readings_of(line, follows_words=True)

    assert written is line
    assert (real, real.links) == (line, {"src/up": str(project)})
    assert readings_of(line) == (line,)
    assert followed("cat src/b", project) == {}


@pytest.mark.parametrize("word", ["src/hidden/new", "./src/hidden/new/below"])
def test_a_file_that_is_yet_to_be_made_behind_a_link_is_denied(project: Path, word: str) -> None:
    policy = Policy(deny("Edit(secret/**)"))
    event = PreToolUse(
        tool_name="Bash", tool_input={"command": f"echo x > {word}"}, cwd=str(project)
    )

    found = PolicyHook(Options(policy=policy))(event)["hookSpecificOutput"]

    assert found["permissionDecision"] == "deny"


def test_in_a_project_behind_a_link_a_word_that_leads_nowhere_is_not_followed(
    project: Path,
) -> None:
    linked = project.parent / "linked"

    assert followed("echo new src/hidden/new", linked) == {
        "src/hidden/new": str(project / "secret/new")
    }


def test_a_link_to_the_directory_of_a_process_is_not_followed_in_this_one(project: Path) -> None:
    (project / "src" / "here").symlink_to("/proc/self/cwd")
    (project / "src" / "there").symlink_to("here/src")

    for path in ("src/here/a", "src/there/a"):
        assert decide(Policy(allow("Edit(src/**)")), path, project) is None
        assert decide(Policy(deny("Edit(secret/**)"), allow("Edit")), path, project) == "deny"
