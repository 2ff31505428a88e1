"""What stands in the files of the repository is true on every machine."""

from __future__ import annotations

import pkgutil
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

NOT_OURS = {".git", ".venv", "__pycache__", "build", "dist", "node_modules"}
CACHES = re.compile(r"\..*_cache|\.hypothesis|.*\.egg-info")
TEXT = {".py", ".md", ".toml", ".yml", ".cfg", ".txt", ""}

MACHINE_PATH = re.compile(r"(?<![\w.])/(work|farm|root)/")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["towncrier"]
TYPES = "|".join(each["directory"] for each in SETTINGS["type"])
FRAGMENT = re.compile(rf"[a-z0-9-]+\.({TYPES})\.md")


def files(folder: Path = ROOT) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in NOT_OURS or CACHES.fullmatch(path.name):
            continue
        if path.is_dir():
            yield from files(path)
        elif path.suffix in TEXT:
            yield path


def pages() -> list[Path]:
    return [path for path in files() if path.suffix == ".md"]


def test_no_file_names_a_path_of_one_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if MACHINE_PATH.search(line)
    ]

    assert found == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    local = [target.partition("#")[0] for target in targets if "://" not in target]

    assert [target for target in local if target and not (page.parent / target).exists()] == []


def test_changelog_fragments_are_named_for_what_they_tell() -> None:
    """`make release` gathers them into CHANGELOG.md, and finds no others."""
    kept = Path(SETTINGS["template"]).name
    names = [path.name for path in (ROOT / "changelog.d").iterdir() if path.name != kept]

    assert TYPES == "added|changed|fixed|removed"
    assert [name for name in names if not FRAGMENT.fullmatch(name)] == []


def test_the_readme_names_commands_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))

    wanted = {
        word
        for page in ("README.md", "CONTRIBUTING.md")
        for words in re.findall(
            r"^make ([a-z ]+?)\s*(?:#|$)", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE
        )
        for word in words.split()
    }

    assert {"demo", "test"} <= wanted <= targets


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_module_that_a_page_names_is_there(page: Path) -> None:
    named = re.findall(r"`([a-z_]+/[a-z_/]+\.py|[a-z_]+\.py)`", page.read_text(encoding="utf-8"))
    homes = (page.parent, ROOT / "src/steersman", ROOT)

    assert [name for name in named if not any((home / name).exists() for home in homes)] == []


def test_every_dotted_name_in_the_pages_can_be_imported() -> None:
    named = {
        name
        for page in pages()
        for name in re.findall(r"`(steersman(?:\.\w+)+)", page.read_text(encoding="utf-8"))
    }

    assert named
    assert [name for name in sorted(named) if not is_importable(name)] == []


def is_importable(dotted: str) -> bool:
    try:
        pkgutil.resolve_name(dotted)
    except (ImportError, AttributeError):
        return False
    return True
