"""Every Python snippet on the pages runs, without a key and without a network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from steersman.testing import Script, executable, say
from tests.docs.snippets import ROOT, Snippet, run_page, snippets_of
from tests.docs.stages import ELSEWHERE, ENDLESS, ONLY_CHECKED, PRINTED, SCRIPTS, STAGES, TEST_HEADS
from tests.typing.pages import head_of

pytestmark = pytest.mark.process

PAGES = (
    "README.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")),
    "src/steersman/testing/README.md",
)
SNIPPETS = {page: found for page in PAGES if page not in ELSEWHERE and (found := snippets_of(page))}
SECRETS = re.compile(r"(ANTHROPIC|CLAUDE|AWS|GOOGLE|STEERSMAN)_.*|\w*(KEY|TOKEN)")

INI = "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"
CONFTEST = """
def pytest_collection_modifyitems(items):
    # The contracts have tests of their own, with every adapter: here one of each is enough.
    first = {}
    for item in items:
        first.setdefault((item.path, item.originalname), item)
    items[:] = first.values()
"""


def is_only_checked(snippet: Snippet) -> bool:
    return any(snippet.page == page and phrase in snippet.text for page, phrase in ONLY_CHECKED)


def to_run(page: str) -> list[Snippet]:
    return [each for each in SNIPPETS[page] if not (each.is_test or is_only_checked(each))]


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, a home, and an environment without a login and with a proxy that is not there."""
    for name in [each for each in os.environ if SECRETS.fullmatch(each)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


@pytest.mark.parametrize("page", [page for page in SNIPPETS if to_run(page)])
def test_the_snippets_of_a_page_run(
    page: str, alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script(*SCRIPTS.get(page, [say("Done.")] * 9))
    monkeypatch.setenv("STEERSMAN_CLI", str(executable(script, alone)))

    shown = run_page(page, to_run(page), STAGES.get(page), ENDLESS.get(page, {}))

    assert [text for text in PRINTED.get(page, ()) if text not in shown] == [], shown


def test_the_snippets_that_are_tests_pass(alone: Path) -> None:
    tested = {page: tests for page in SNIPPETS if (tests := _tests_of(page))}
    for page, tests in tested.items():
        head = head_of(page) + TEST_HEADS.get(page, "")
        text = "\n".join((head, *(each.text for each in tests)))
        (alone / "here" / _file_of(page)).write_text(text, encoding="utf-8")
    Path("pytest.ini").write_text(INI, encoding="utf-8")
    Path("conftest.py").write_text(CONFTEST, encoding="utf-8")

    command = (sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider")
    done = subprocess.run(
        [*command, "-p", "steersman.testing.plugin"] if not _has_plugin() else command,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert {page for page in tested if f"PASSED {_file_of(page)}" not in done.stdout} == set()


@pytest.mark.parametrize("table", [ENDLESS, PRINTED, SCRIPTS, STAGES, TEST_HEADS])
def test_each_page_of_a_table_has_snippets(table: dict[str, object]) -> None:
    assert table.keys() - SNIPPETS.keys() == set()


def test_each_phrase_names_one_snippet() -> None:
    phrases = [*ONLY_CHECKED, *((page, each) for page, found in ENDLESS.items() for each in found)]

    named = {
        (page, phrase): [each.place for each in SNIPPETS.get(page, []) if phrase in each.text]
        for page, phrase in phrases
    }

    assert {phrase: places for phrase, places in named.items() if len(places) != 1} == {}
    assert [name for name in ELSEWHERE.values() if not (ROOT / name).is_file()] == []
    assert [key for key, reason in ONLY_CHECKED.items() if len(reason) < 10] == []


def _tests_of(page: str) -> list[Snippet]:
    return [each for each in SNIPPETS[page] if each.is_test and not is_only_checked(each)]


def _file_of(page: str) -> str:
    return "test_" + re.sub(r"\W", "_", page.removesuffix(".md")).lower() + ".py"


def _has_plugin() -> bool:
    from importlib.metadata import entry_points  # noqa: PLC0415

    return any(each.value == "steersman.testing.plugin" for each in entry_points(group="pytest11"))
