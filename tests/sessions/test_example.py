"""`examples/sessions.py` does what its docstring promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.sessions import main
from steersman.transcripts.keys import project_key
from tests.sessions.made import ID, conversation, write


@pytest.fixture(autouse=True)
def project(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    texts = conversation("Fix the login bug", "It is fixed.")
    write(config, texts, project=project_key(str(tmp_path.resolve())))


def test_every_command_of_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    def run(*arguments: str) -> str:
        assert main(arguments) == 0
        return capsys.readouterr().out

    assert f"{ID}  Fix the login bug (" in run("list") == run()
    assert run("show", ID) == "user: Fix the login bug\nassistant: It is fixed.\n"
    assert run("search", "FIXED") == f"{ID}  It is fixed.\n"
    assert f"{ID}  A better name" in run("rename", ID, "A", "better", "name")
    assert run("fork", ID).startswith("resume with ")
    assert run("save", ID, "store.db") == "3 entries copied to store.db\n"
    assert run("save", ID, "store.db") == "0 entries copied to store.db\n"


def test_what_cannot_be_done_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert (main(["dance"]), main(["save", ID])) == (0, 0)
    assert capsys.readouterr().out.count("a title that the CLI shows too") == 2
    assert main(["show"]) == 1
    assert "session_id" in capsys.readouterr().err
    assert main(["show", ID[:-1] + "0"]) == 1
    assert "there is no session" in capsys.readouterr().err
