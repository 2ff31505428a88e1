"""Our reading of rules agrees with the stock CLI's: what we are sure of, it does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steersman import Allow, Deny, Policy
from steersman.permissions import Match, PermissionContext, Place, ToolCall, deny, parse_rule
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Step, call, calls, say
from tests.live.staging import LIMIT, MakeScripted

pytestmark = pytest.mark.live

ALLOWED = (
    "Bash(mkfifo a:*)",
    "Bash(mkfifo b *)",
    "Bash(mkfifo c)",
    "Bash(* deploy *)",
    "Bash(x*)",
    "Edit(src/**)",
    "Edit(/top/**)",
    "Edit(*.md)",
    "Edit(deep/*)",
    "Edit(folder/)",
    "Edit(q?.txt)",
    "Edit([ab].c)",
    "Edit(**/mid/**)",
    "Edit(UP.txt)",
    "WebFetch(domain:example.com)",
    "WebFetch(domain:*.wild.com)",
)
COMMANDS = (
    "mkfifo a",
    "mkfifo a z",
    "mkfifo az",
    "mkfifo  a",
    "mkfifo b",
    "mkfifo b z",
    "mkfifo bz",
    "mkfifo c",
    "mkfifo c z",
    "mkfifo a && mkfifo c",
    "mkfifo a && mkfifo z",
    "mkfifo a | mkfifo z",
    "mkfifo a > out",
    "mkfifo a; mkfifo $(mkfifo z)",
    "timeout 5 mkfifo a",
    "sudo mkfifo a",
    "/usr/bin/mkfifo a",
    "FOO=1 mkfifo a",
    "bash -c 'mkfifo a'",
    "y deploy z",
    "deploy",
    "xyz",
    "mkfifo 'a z'",
)
PATHS = (
    "src/f",
    "src/d/f",
    "other/src/f",
    "srcx/f",
    "top/f",
    "sub/top/f",
    "a.md",
    "s/t/a.md",
    "deep/b/f",
    "s/deep/f",
    "s/folder/f",
    "q1.txt",
    "q12.txt",
    "a.c",
    "c.c",
    "s/mid/t/f",
    "up.txt",
    "src/../f",
    "top/../f",
)
PAGES = (
    "http://example.com/x",
    "http://sub.example.com/x",
    "http://EXAMPLE.com:8080/",
    "http://a.wild.com/",
    "http://wild.com/",
    "http://example.com.evil.org/",
)


def made(box: CliSandbox) -> list[tuple[str, dict[str, Any]]]:
    return [
        *(("Bash", {"command": command}) for command in COMMANDS),
        *(("Write", {"file_path": f"{box.project}/{path}", "content": "x"}) for path in PATHS),
        *(("WebFetch", {"url": url, "prompt": "x"}) for url in PAGES),
    ]


def steps(cases: list[tuple[str, dict[str, Any]]]) -> Step:
    return calls(*(call(name, given, id_=f"t{n}") for n, (name, given) in enumerate(cases)))


async def test_what_an_approval_surely_covers_runs_and_what_it_does_not_is_asked(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    asked: set[str] = set()

    def decide(_name: str, _given: dict[str, Any], context: PermissionContext) -> Deny:
        asked.add(context.tool_use_id)
        return Deny("no")

    cases = made(sandbox)
    agent, _ = scripted(
        steps(cases),
        say("done"),
        allowed_tools=list(ALLOWED),
        can_use_tool=decide,
        permission_mode="default",
    )

    async with asyncio.timeout(2 * LIMIT):
        await agent.run("go")

    rules, place = [parse_rule(text) for text in ALLOWED], Place(str(sandbox.project))
    wrong = []
    for number, (name, given) in enumerate(cases):
        call_ = ToolCall(name, given, place=place)
        found = max((rule.match(call_, "allow") for rule in rules), key=lambda each: each.value)
        is_asked = f"t{number}" in asked
        if found is not Match.MAYBE and is_asked is (found is Match.YES):
            wrong.append((name, given, found, is_asked))
    assert wrong == []
    assert 0 < len(asked) < len(cases)


DENIED = ("Bash(mkfifo *)", "Bash(mkdir x)", "Read(.env)", "Edit(src/**)")
STOPPED = (
    "mkfifo a",
    "mkfifo",
    "echo a && mkfifo a",
    "FOO=1 mkfifo a",
    "echo $(mkfifo a)",
    "`mkfifo a`",
    "/usr/bin/mkfifo a",
    "sudo mkfifo a",
    "env mkfifo a",
    "timeout 3 mkfifo a",
    "xargs mkfifo a",
    "(mkfifo a)",
    "if true; then mkfifo a; fi",
    "\\mkfifo a",
    "mk'fifo' a",
    "exec mkfifo a",
    "mkdir x",
    "cat .env",
    "touch src/f",
    "echo a > src/f",
)
FREE = ("echo mkfifo a", "mkdir x y", "cat src/f", "echo 'a; mkfifo b'")


@pytest.mark.parametrize("holder", ["the CLI", "our guard"])
async def test_denials_stop_the_same_calls_whoever_holds_them(
    scripted: MakeScripted, sandbox: CliSandbox, holder: str
) -> None:
    """Rules for an agent cannot be held by the CLI, so those are ours alone."""
    (sandbox.project / ".env").write_text("SECRET")
    (sandbox.project / "src").mkdir()
    (sandbox.project / "src" / "f").write_text("free")
    options: dict[str, Any] = {"disallowed_tools": DENIED}
    if holder == "our guard":
        options = {"policy": Policy(deny(*DENIED, agents="main"))}
    cases = [("Bash", {"command": command}) for command in (*STOPPED, *FREE)]
    agent, _ = scripted(
        steps(cases),
        say("done"),
        allowed_tools=["Bash"],
        can_use_tool=lambda *_: Allow(),
        permission_mode="default",
        **options,
    )

    async with asyncio.timeout(2 * LIMIT):
        result = await agent.run("go")

    refused = {each["tool_use_id"] for each in result.permission_denials}
    assert refused == {f"t{number}" for number in range(len(STOPPED))}


async def test_a_kind_of_subagent_can_be_denied(scripted: MakeScripted) -> None:
    task = call(
        "Agent",
        subagent_type="Explore",
        description="look",
        prompt="look around",
        run_in_background=False,
        id_="toolu_agent",
    )
    agent, model = scripted(task, say("alone then"), policy=Policy(deny("Agent(Explore)")))

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    assert "Denied by policy (deny Agent(Explore))" in model.asked[-1].tool_results["toolu_agent"]
    assert len(model.asked) == 2
