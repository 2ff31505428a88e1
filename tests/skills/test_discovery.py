from __future__ import annotations

from pathlib import Path

import pytest

from steersman.errors import UsageError
from steersman.skills import Skill, discover, read_skill, user_directory


def write(root: Path, name: str, text: str) -> Path:
    file = root / "skills" / name / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    return file


PDF = """---
name: pdf
description: Read PDF files.
when_to_use: When a PDF is mentioned.
argument-hint: [file]
allowed-tools: Read, Bash(pdftotext -layout:*) Grep
model: haiku
disable-model-invocation: true
user-invocable: false
license: MIT
metadata:
  author: me
---
Do this.
"""


def test_a_skill_says_what_it_is(tmp_path: Path) -> None:
    file = write(tmp_path, "pdf", PDF)

    skill = read_skill(file.parent)

    assert skill == Skill(
        name="pdf",
        description="Read PDF files.",
        path=file,
        when_to_use="When a PDF is mentioned.",
        argument_hint="[file]",
        allowed_tools=("Read", "Bash(pdftotext -layout:*)", "Grep"),
        model="haiku",
        is_for_model=False,
        is_for_people=False,
        fields=skill.fields,
        body="Do this.",
    )
    assert (skill.fields["license"], skill.fields["metadata"]) == ("MIT", {"author": "me"})


def test_skills_of_project_and_user_are_found_by_name(tmp_path: Path) -> None:
    project, user = tmp_path / "project", tmp_path / "user"
    write(project / ".claude", "zebra", "---\ndescription: z\n---\n")
    write(project / ".claude", "both", "---\ndescription: of the project\n---\n")
    write(user, "both", "---\ndescription: of the user\n---\n")
    (user / "skills" / "empty").mkdir()
    (user / "skills" / "a-file").write_text("x")

    found = discover(project=project, user=user)

    assert [(skill.name, skill.source, skill.description) for skill in found] == [
        ("both", "project", "of the project"),
        ("both", "user", "of the user"),
        ("zebra", "project", "z"),
    ]


def test_where_there_are_no_skills_none_are_found(tmp_path: Path) -> None:
    assert discover() == []
    assert discover(project=tmp_path / "nowhere", user=tmp_path) == []


def test_a_skill_without_a_head_is_named_by_its_directory_and_described_by_its_text(
    tmp_path: Path,
) -> None:
    write(tmp_path, "plain", "# Plain\n\nDo it\nplainly.\n\nAnd so on.")

    (skill,) = discover(user=tmp_path)

    assert (skill.name, skill.description) == ("plain", "Do it plainly.")


@pytest.mark.parametrize(
    ("head", "place"),
    [
        ("name: 'a,b'\ndescription: d", ": name"),
        ("name: " + "x" * 65 + "\ndescription: d", ": name"),
        ("name: [a]\ndescription: d", ": name"),
        ("description: ''", ": description"),
        ("description: [a]", ": description"),
        ("description: d\nmodel: true", ": model"),
        ("description: d\nallowed-tools: Bash(a", ": allowed-tools[0]"),
        ("description: d\nallowed-tools:\n  a: b", ": allowed-tools"),
        ("description: d\nuser-invocable: perhaps", ": user-invocable"),
        ("description: d\ncontext: elsewhere", ": context"),
        ("description: d\nmetadata: x", ": metadata"),
        ("description: d\nnot a field", ": line 3"),
    ],
)
def test_an_error_names_the_file_and_the_field(tmp_path: Path, head: str, place: str) -> None:
    file = write(tmp_path, "broken", f"---\n{head}\n---\n")

    with pytest.raises(UsageError) as caught:
        discover(user=tmp_path)

    assert caught.value.argument == f"{file}{place}"
    assert caught.value.allowed


def test_a_skill_that_says_nothing_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "mute", "---\nname: mute\n---\n# Title\n")

    with pytest.raises(UsageError, match=r"mute/SKILL\.md: description: got nothing"):
        discover(user=tmp_path)


def test_one_broken_skill_need_not_hide_the_others(tmp_path: Path) -> None:
    write(tmp_path, "good", "---\ndescription: d\n---\n")
    file = write(tmp_path, "bad", "---\ndescription: d\n")
    errors: list[UsageError] = []

    found = discover(user=tmp_path, on_error=errors.append)

    assert [skill.name for skill in found] == ["good"]
    assert [error.argument for error in errors] == [f"{file}: line 1"]


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x" * (1024 * 1024 + 1)])
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "SKILL.md"
    file.write_bytes(content)

    with pytest.raises(UsageError) as caught:
        read_skill(file)

    assert caught.value.argument == str(file)


def test_a_skill_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere: got .* allowed: a readable SKILL\.md"):
        read_skill(tmp_path / "nowhere")


def test_the_users_directory_is_where_the_cli_looks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    assert user_directory() == tmp_path / ".claude"

    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/elsewhere")
    assert user_directory() == Path("/elsewhere")
