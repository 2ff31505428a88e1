"""`steersman run` with a scripted CLI in this process: statuses, streams and files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steersman import Agent
from steersman.cli.main import main
from steersman.testing.script import Script, Step, Usage, call, fail, say, step
from steersman.testing.scripted.cli import ScriptedCLI

AGENT = f"{__name__}:agent"
STEPS: list[Step] = []


def agent() -> Agent:
    """The agent that the command loads: it plays `STEPS`."""
    return Agent(
        transport=ScriptedCLI(Script(*STEPS, strict=True), tools={"Bash": lambda _: "done"})
    )


def run(*words: str, steps: list[Step] | None = None) -> int:
    STEPS[:] = [say("fine")] if steps is None else steps
    return main(["run", "a prompt", "--no-asks", "--agent", AGENT, *words])


def test_a_completed_turn_writes_the_answer_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0

    assert capsys.readouterr().out == "fine\n"


@pytest.mark.parametrize(
    ("steps", "words", "status", "text"),
    [
        ([fail(400, "bad")], (), 1, "bad"),
        (
            [call("Bash", command="touch x"), say("no")],
            (),
            3,
            "no terminal to ask on; see --policy",
        ),
        (
            [step(call("Bash", command="ls"), usage=Usage(output_tokens=10**6)), say("no")],
            ("--max-usd", "0.01"),
            4,
            "reached max_budget_usd",
        ),
        ([], ("--schema", "/nowhere"), 2, "--schema: got '/nowhere'"),
        ([], ("--policy", "/nowhere"), 2, "--policy: got '/nowhere'"),
        ([], ("--agent", "nowhere:agent"), 2, "No module named 'nowhere'"),
        ([], ("--agent", "nowhere"), 2, "my_app.agents:reviewer"),
        ([], ("--agent", f"{__name__}:run"), 2, "an Agent, or a function"),
        ([], ("--max-usd", "much"), 2, "invalid float value: 'much'"),
        ([], ("--json", "--stream-json"), 2, "not allowed with argument"),
        ([], ("--nonsense",), 2, "unrecognized arguments"),
    ],
)
def test_each_end_has_its_status(
    steps: list[Step],
    words: tuple[str, ...],
    status: int,
    text: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(*words, steps=steps) == status

    shown = capsys.readouterr()
    assert text in " ".join(shown.err.split())
    assert "Traceback" not in shown.err


def test_an_empty_prompt_is_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", " ", "--agent", AGENT]) == 2

    assert "PROMPT: got 'nothing'" in capsys.readouterr().err


def test_a_chat_needs_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chat"]) == 2

    assert "in a pipe, use `steersman run`" in capsys.readouterr().err


def test_a_schema_that_is_not_one_is_refused_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for content in ("{", "[]"):
        (tmp_path / "schema.json").write_text(content)
        assert run("--schema", str(tmp_path / "schema.json")) == 2
        assert "a file with a JSON schema" in capsys.readouterr().err


def test_json_is_one_object_and_stream_json_a_line_per_message(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    hostile = [say("one \x1b[2J\u202e\x7f")]
    journal = tmp_path / "run.jsonl"

    assert run("--json", "--journal", str(journal), steps=hostile) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert run("--stream-json", steps=hostile) == 0
    lines = capsys.readouterr().out.splitlines()

    found = json.loads(line)
    assert (found["status"], found["answer"]) == (0, "one \x1b[2J\u202e\x7f")
    assert [json.loads(each)["type"] for each in lines][-2:] == ["assistant", "result"]
    assert all(each.isascii() and each.isprintable() for each in (line, *lines))
    assert journal.stat().st_size > 0
