"""Spellings of real files: none of them passes a denial, and no other file is allowed."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from steersman.permissions import Match, Place, ToolCall, parse_rule

CASES = 2_000
FILES = ("conf/keys/a.pem", "conf/b", "src/deep/er/c", ".env", "src/.env", "d")
DIRECTORIES = ("", "conf", "conf/keys", "src", "src/deep", "src/deep/er")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path.resolve() / "home" / "ann" / "project"
    for file in FILES:
        (project / file).parent.mkdir(parents=True, exist_ok=True)
        (project / file).write_text(file)
    (project.parent.parent.parent / "elsewhere").mkdir()
    return project


def spelled(chance: random.Random, file: Path, cwd: Path, home: Path) -> str:
    """Return another spelling of the path: relative, from the home directory, with detours."""
    start = chance.choice(["absolute", "relative", "home"])
    path = {
        "absolute": str(file),
        "relative": os.path.relpath(file, cwd),
        "home": f"~/{os.path.relpath(file, home)}",
    }[start]
    for _ in range(chance.randint(0, 4)):
        slashes = [at for at, each in enumerate(path) if each == "/"] or [len(path)]
        at = chance.choice(slashes)
        detour = chance.choice(["/", "/.", "//.", "/./.", "/xyz/..", "/x/../y/..", "/.//x/.."])
        path = path[:at] + detour + path[at:] if path[at:] else f"./{path}"
    if start == "absolute" and chance.random() < 0.2:
        path = chance.choice(["/", "//", "/..", "/../..", "/."]) + path
    return path


def opened(path: str, cwd: Path, home: Path) -> Path:
    """Return the file that a tool opens."""
    expanded = f"{home}{path[1:]}" if path.startswith("~/") else path
    return Path(
        os.path.normpath(
            cwd / expanded.lstrip("/")
            if not expanded.startswith("/")
            else "/" + expanded.lstrip("/")
        )
    )


def patterns_for(project: Path, file: Path, home: Path) -> list[str]:
    inside = file.relative_to(project)
    return [
        str(inside) if len(inside.parts) > 1 else f"/{inside}",
        f"/{inside}",
        f"/{file}",
        f"~/{file.relative_to(home)}",
        file.name,
        f"**/{file.name}",
        f"/{str(inside).partition('/')[0]}",
        f"/{project}/**",
        str(inside).upper() if len(inside.parts) > 1 else f"/{str(inside).upper()}",
    ]


def test_no_spelling_of_a_real_file_passes_a_denial_of_it(project: Path) -> None:
    chance = random.Random(13)
    home = project.parent
    for _ in range(CASES):
        file = project / chance.choice(FILES)
        now = project / chance.choice(DIRECTORIES)
        path = spelled(chance, file, now, home)
        assert opened(path, now, home) == file, path
        place = Place(str(project), str(home), str(now))
        for pattern in patterns_for(project, file, home):
            for tool, rule in (("Write", "Edit"), ("Read", "Read"), ("Write", "Read")):
                call = ToolCall(tool, {"file_path": path}, place=place)
                found = parse_rule(f"{rule}({pattern})").match(call, "deny")
                assert found is Match.YES, (tool, rule, pattern, path, str(now))


def test_an_approval_of_a_directory_covers_no_spelling_of_a_file_elsewhere(project: Path) -> None:
    chance = random.Random(13)
    home, granted = project.parent, 0
    for _ in range(CASES):
        file = project / chance.choice(FILES)
        now = project / chance.choice(DIRECTORIES)
        allowed = project / chance.choice(DIRECTORIES[1:])
        path = spelled(chance, file, now, home)
        call = ToolCall(
            "Write", {"file_path": path}, place=Place(str(project), str(home), str(now))
        )
        found = parse_rule(f"Edit(/{allowed.relative_to(project)}/**)").match(call, "allow")
        is_inside = allowed in file.parents
        granted += found is Match.YES
        assert found is (Match.YES if is_inside else Match.NO), (path, str(now), str(allowed))
    assert granted > CASES // 10
