"""An editor offers the options, and the words and keys that they accept."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from steersman.options import Options, PermissionMode
from tests.typing.checkers import ROOT
from tests.typing.language_server import LanguageServer

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]

LIMIT = 200.0
HEAD = "from steersman import Agent, Options\nfrom steersman.permissions import deny\n"
NAMES = {f"{each.name}=" for each in dataclasses.fields(Options)}


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LanguageServer]:
    """A language server that reads the source of this checkout."""
    folder: Path = tmp_path_factory.mktemp("editor")
    settings = {"extraPaths": [str(ROOT / "src")], "pythonVersion": "3.11"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    with LanguageServer(folder, LIMIT) as server:
        yield server


def test_an_editor_offers_every_option_and_its_words(editor: LanguageServer) -> None:
    """One test, so that the server is started once."""
    for call in ("Agent(|)", "Agent().session(|)", "Options(|)", "Options().replace(|)"):
        assert set(editor.completions(HEAD + call)) >= NAMES, call
    assert {"because=", "when=", "agents="} <= set(editor.completions(HEAD + 'deny("Read", |)'))

    assert quoted(editor.completions(HEAD + "Agent(permission_mode=|)")) == set(
        get_args(PermissionMode)
    )
    keys = quoted(editor.completions(HEAD + 'Agent(thinking={"|"})'))
    assert keys >= {"type", "budget_tokens", "display"}


def quoted(labels: list[str]) -> set[str]:
    """The labels that are strings, without their quotes."""
    return {each[1:-1] for each in labels if each[0] in "\"'"}
