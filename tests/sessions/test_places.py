"""Where sessions are looked for: directories, projects, worktrees, and nowhere else."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from steersman.errors import SessionNotFound, UsageError
from steersman.sessions import Sessions
from steersman.sessions.places import worktrees_of
from steersman.transcripts.keys import project_key
from tests.sessions.made import ID, OTHER, conversation, number, write


def test_a_project_is_a_directory_under_any_of_its_names(config: Path, tmp_path: Path) -> None:
    project = tmp_path / "work"
    project.mkdir()
    (tmp_path / "link").symlink_to(project)
    write(config, conversation("hi"), project=project_key(str(project.resolve())))
    write(config, conversation("hi"), OTHER, project="-elsewhere")

    for given in (project, str(project), tmp_path / "link", f"{project}/../work/"):
        assert [each.session_id for each in Sessions(project=given).list()] == [ID]
    assert len(Sessions().list()) == 2


def test_the_directory_of_the_configuration_can_be_given(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "given", conversation("hi"))
    write(tmp_path / "home" / ".claude", conversation("hi"), OTHER)

    given = Sessions(config=tmp_path / "given").list()
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")

    assert [each.session_id for each in given] == [ID]
    assert [each.session_id for each in Sessions().list()] == [OTHER]


def test_a_long_path_is_found_however_the_cli_has_hashed_it(config: Path, tmp_path: Path) -> None:
    project = tmp_path / ("long" * 40) / ("er" * 60)
    project.mkdir(parents=True)
    key = project_key(str(project.resolve()))
    write(config, conversation("hi"), project=key[:200] + "-otherhash")

    assert [each.session_id for each in Sessions(project=project).list()] == [ID]


def test_the_folder_of_a_project_can_have_a_name_of_its_own(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(config, conversation("hi"), project="my-name")
    monkeypatch.setenv("CLAUDE_CODE_PROJECT_DIR_NAME", "my-name")

    assert [each.session_id for each in Sessions(project=tmp_path).list()] == [ID]


@pytest.mark.process
def test_sessions_of_other_worktrees_belong_to_the_project(config: Path, tmp_path: Path) -> None:
    main, linked = tmp_path / "main", tmp_path / "linked"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    for command in (
        [*git, "init", "-q", str(main)],
        [*git, "-C", str(main), "commit", "-q", "--allow-empty", "-m", "x"],
        [*git, "-C", str(main), "worktree", "add", "-q", str(linked)],
    ):
        subprocess.run(command, check=True, timeout=30, capture_output=True)
    for index, place in enumerate((main, linked)):
        write(config, conversation("hi"), number(index), project=project_key(str(place)), age=index)
    (main / "inside").mkdir()

    both = [number(0), number(1)]
    assert worktrees_of(str(linked)) == worktrees_of(str(main)) == [str(main), str(linked)]
    for place in (main, linked):
        assert [each.session_id for each in Sessions(project=place).list()] == both
    assert [each.session_id for each in Sessions(project=main / "inside").list()] == both
    assert [each.session_id for each in Sessions(project=linked).list(worktrees=False)] == both[1:]


def test_a_directory_outside_of_a_repository_has_no_worktrees(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /nowhere/at/all")

    assert worktrees_of("/") == []
    assert worktrees_of(str(tmp_path)) == [str(tmp_path)]


@pytest.mark.parametrize(
    "bad", ["", "x", "../" + ID, f"{ID}/../{OTHER}", ID.upper() + "x", "*", None, 5, ID + "\n"]
)
def test_what_is_no_id_is_refused_and_no_path_is_made_of_it(config: Path, bad: str) -> None:
    write(config, conversation("hi"))
    sessions = Sessions()

    for call in (sessions.info, sessions.messages, sessions.entries, sessions.agents):
        with pytest.raises(UsageError, match="session_id"):
            call(bad)
    for change in (sessions.archive, sessions.delete, sessions.fork, sessions.follow):
        with pytest.raises(UsageError, match="session_id"):
            change(bad)
    with pytest.raises(UsageError, match="session_id"):
        sessions.rename(bad, "x")
    with pytest.raises(UsageError, match="session_id"):
        sessions.copy_to(sessions, bad)


def test_an_unknown_id_is_not_found(config: Path) -> None:
    sessions = Sessions()

    for call in (sessions.info, sessions.messages, sessions.entries, sessions.agents):
        with pytest.raises(SessionNotFound) as caught:
            call(ID)
        assert caught.value.session_id == ID
    for change in (sessions.archive, sessions.delete, sessions.fork):
        with pytest.raises(SessionNotFound):
            change(ID)
    with pytest.raises(SessionNotFound):
        sessions.tag(ID, "x")


def test_a_session_of_another_project_is_not_found(config: Path, tmp_path: Path) -> None:
    write(config, conversation("hi"))

    for session_id, project, of in ((ID, tmp_path, f" of {tmp_path}"), (OTHER, None, "")):
        with pytest.raises(SessionNotFound) as caught:
            Sessions(project=project).info(session_id)
        assert f"in the sessions{of} below {config / 'projects'}" in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_says_so(config: Path) -> None:
    write(config, conversation("hi")).chmod(0)

    with pytest.raises(SessionNotFound, match="Permission denied"):
        Sessions().info(ID)
    with pytest.raises(SessionNotFound, match="Permission denied"):
        Sessions().messages(ID)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"config": 5}, "config"),
        ({"project": ""}, "project"),
        ({"project": "a\0b"}, "project"),
        ({"store": object()}, "store"),
    ],
)
def test_what_is_no_place_is_refused(arguments: dict[str, object], name: str) -> None:
    with pytest.raises(UsageError, match=f"^{name}:"):
        Sessions(**arguments)  # type: ignore[arg-type]  # bad on purpose
