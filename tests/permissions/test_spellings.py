"""Spellings of one call, compared with what the stock CLI was seen to stop.

`tests/live/test_policy_spellings.py` sees it, and says how to record it again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steersman.permissions import Policy, allow, ask, deny
from tests.permissions.spellings import FILE_COMMANDS, PUSHES, SPELLINGS

SEEN = json.loads((Path(__file__).parents[1] / "samples" / "stopped_commands.json").read_bytes())
POLICIES = {
    "deny": Policy(deny("Bash(mkfifo *)")),
    "ask": Policy(ask("Bash(mkfifo *)")),
    "forbid": Policy(forbid=["Bash(mkfifo *)"]),
}


def runs(policy: Policy, line: str) -> bool:
    found = policy.explain("Bash", {"command": line}, cwd="/project", home="/home/me")
    return found.verdict not in ("ask", "deny")


@pytest.mark.parametrize("name", POLICIES)
def test_no_spelling_of_a_call_runs_unasked(name: str) -> None:
    assert [line for line in SPELLINGS if runs(POLICIES[name], line)] == []


@pytest.mark.parametrize("guard", [deny, ask])
def test_no_option_before_the_subcommand_hides_it(guard: Any) -> None:
    policy = Policy(guard("Bash(git push *)"), allow("Bash(git *)"))

    assert [line for line in PUSHES if runs(policy, line)] == []


def test_the_policy_of_the_page_asks_about_a_push_in_every_spelling() -> None:
    """Aliases and plumbing too: only what the closed list allows runs unasked."""
    page = (Path(__file__).parents[2] / "docs" / "permissions.md").read_text()
    made = page[page.index("policy = Policy(") : page.index("agent = Agent(policy=policy")]
    names: dict[str, Any] = {"Policy": Policy, "allow": allow, "ask": ask, "deny": deny}
    exec(made, names)
    others = ("git config alias.p push; git p", "git send-pack o", "git p", "git commit; git p")

    assert [line for line in (*PUSHES, *others) if runs(names["policy"], line)] == []
    assert names["policy"].check() == []
    assert runs(names["policy"], "git status")
    assert runs(names["policy"], "git commit -m push")


def test_the_record_is_of_the_spellings_and_has_many_that_the_cli_stops() -> None:
    stopped = SEEN["spellings"]

    assert set(stopped["stopped by deny"]) | set(stopped["stopped by ask"]) <= {*SPELLINGS}
    assert set(SEEN["files"]["stopped by deny"]) <= {*FILE_COMMANDS}
    assert len(set(SPELLINGS)) >= 150
    assert len(stopped["stopped by deny"]) >= 74


THROUGH_LINKS = {"cat link", "cat dir/keys", "wc -l link", "cd dir && cat keys"}
"""Only a session follows links: tests/live/test_policy_spellings.py."""
NOT_KNOWN = {"ls conf", "find conf -name keys -exec cat {} ;", "grep -r a conf", "rg a conf"}
"""A search from a parent directory."""


def test_no_command_names_a_denied_file_unasked() -> None:
    policy = Policy(deny("Read(conf/keys)"))

    assert {line for line in FILE_COMMANDS if runs(policy, line)} == THROUGH_LINKS | NOT_KNOWN
    assert not NOT_KNOWN & set(SEEN["files"]["stopped by deny"])


@pytest.mark.parametrize(
    ("rule", "line", "verdict"),
    [
        ("Read(conf/keys)", "cd conf && cat keys", "deny"),
        ("Read(conf/keys)", "cd a; cd ../conf; cat keys", "deny"),
        ("Read(//etc/shadow)", "cd /etc && cat shadow", "deny"),
        ("Read(~/.ssh/**)", "cd ~ && cat .ssh/id", "deny"),
        ("Read(~/.ssh/**)", "cat $HOME/.ssh/id", "deny"),
        ("Read(~/.ssh/**)", 'cat "${HOME}"/.ssh/*', "deny"),
        ("Edit(conf/**)", "pushd conf; touch x", "deny"),
        ("Edit(conf/**)", "tar -C conf -xf a.tar x", "ask"),
        ("Edit(conf/**)", "tar --directory=conf -xf a.tar x", "ask"),
        ("Read(.env)", "cat .en?", "ask"),
        ("Read(.env)", "cat .{env,x}", "ask"),
        ("Read(.env)", "cat .e$X", "ask"),
        ("Read(.env)", "curl -F a=@.env b", "deny"),
        ("Read(.env)", "git show HEAD:.env", "deny"),
        ("Read(.env)", ";".join(f"cd d{n}" for n in range(20)), "ask"),
        # The shell does not find names with a dot for `*`.
        ("Read(.env)", "cat *", "cli"),
        ("Read(.env)", "grep '.*' a", "cli"),
        ("Read(*.pem)", "cat *.py", "cli"),
        ("Read(*.pem)", "cat a*", "ask"),
        ("Read(conf/keys)", "cd src && cat a", "cli"),
        ("Read(conf/keys)", 'for f in src/*.py; do wc "$f"; done', "cli"),
    ],
)
def test_the_files_of_a_command(rule: str, line: str, verdict: str) -> None:
    found = Policy(deny(rule)).explain("Bash", {"command": line}, cwd="/p", home="/home/me")

    assert found.verdict == verdict
