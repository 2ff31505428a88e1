"""Modes, prompts and policies on the stock CLI."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steersman import Allow, Deny, Policy
from steersman.journal import Kind
from steersman.journal.decisions import recorded_calls
from steersman.messages import Init
from steersman.permissions import PermissionContext, SetMode, allow, ask, deny
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, Step, call, calls, say, when
from tests.live.staging import LIMIT, MakeScripted, entries_of

pytestmark = pytest.mark.live


def write(box: CliSandbox, name: str) -> Step:
    return call("Write", file_path=str(box.project / name), content="x", id_=f"toolu_{name}")


def files_in(box: CliSandbox) -> set[str]:
    return {path.name for path in box.project.iterdir() if path.is_file()}


class Asked:
    """An approver that remembers what it was asked, and says yes."""

    def __init__(self) -> None:
        self.tools: list[str] = []

    def __call__(self, name: str, given: dict[str, Any], context: PermissionContext) -> Allow:
        path = given.get("file_path", given.get("command", ""))
        self.tools.append(f"{name} {path.rpartition('/')[2]}".strip())
        return Allow()


async def test_the_mode_changes_in_the_middle_of_a_session(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    asked = Asked()
    agent, _ = scripted(
        when("ask", write(sandbox, "asked"), say("done")),
        when("trust", write(sandbox, "trusted"), say("done")),
        when("nobody", write(sandbox, "nobody"), say("done")),
        can_use_tool=asked,
        permission_mode="default",
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("ask"))
        accepted = await session.set_permission_mode("acceptEdits")
        await (await session.send("trust"))
        await session.set_permission_mode("dontAsk")
        await (await session.send("nobody"))

    assert accepted.mode == "acceptEdits"
    assert asked.tools == ["Write asked"]
    assert files_in(sandbox) == {"asked", "trusted"}


async def test_an_approval_may_change_the_mode(scripted: MakeScripted, sandbox: CliSandbox) -> None:
    asked: list[str] = []

    def decide(name: str, *_: Any) -> Allow:
        asked.append(name)
        return Allow(updated_permissions=[SetMode(mode="acceptEdits")])

    agent, _ = scripted(
        write(sandbox, "one"), write(sandbox, "two"), say("done"), can_use_tool=decide
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go", permission_mode="default")

    assert asked == ["Write"]
    assert files_in(sandbox) == {"one", "two"}


async def test_with_prompts_switched_off_what_would_be_asked_is_denied(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, model = scripted(
        write(sandbox, "file"), say("a pity"), permission_prompts="none", permission_mode="default"
    )

    async with asyncio.timeout(LIMIT):
        result = await agent.run("go")

    assert files_in(sandbox) == set()
    assert [each["tool_name"] for each in result.permission_denials] == ["Write"]
    assert "toolu_file" in model.asked[-1].tool_results


async def test_a_denial_with_interrupt_ends_the_turn_as_such(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, model = scripted(
        write(sandbox, "file"), can_use_tool=lambda *_: Deny("stop", interrupt=True)
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        result = await (await session.send("go"))
        decided = [each.details for each in await entries_of(session) if each.kind is Kind.DECIDED]

    assert (result.outcome, result.terminal_reason) == ("interrupted", "aborted_tools")
    assert len(model.asked) == 1
    assert [(each["verdict"], each["source"]) for each in decided] == [("deny", "callback")]
    assert files_in(sandbox) == set()


async def test_every_call_is_asked_about_if_wished(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    (sandbox.project / "notes").write_text("read me")
    asked = Asked()
    agent, _ = scripted(
        calls(
            call("Read", file_path=str(sandbox.project / "notes")),
            call("Bash", command="ls"),
            call("Bash", command="pwd"),
        ),
        say("done"),
        can_use_tool=asked,
        ask_every_call=True,
        allowed_tools=["Bash(pwd)"],
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    assert sorted(asked.tools) == ["Bash ls", "Read notes"]


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "bypassPermissions"])
async def test_a_read_only_profile_cannot_write_in_any_mode(
    scripted: MakeScripted, sandbox: CliSandbox, mode: Any
) -> None:
    policy = Policy(available=["Read"], auto_approve=["Read"], forbid=["Write", "Edit", "Bash"])
    agent, _ = scripted(
        calls(write(sandbox, "file"), call("Bash", command="touch made")),
        say("done"),
        env={"IS_SANDBOX": "1"},
        policy=policy,
        permission_mode=mode,
    )

    async with asyncio.timeout(LIMIT):
        messages = [each async for each in agent.query("go")]

    (init,) = (each for each in messages if isinstance(each, Init))
    assert not {"Write", "Edit", "Bash"} & set(init.tools)
    assert files_in(sandbox) == set()


async def test_rules_may_count_for_one_kind_of_agent(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    policy = Policy(
        allow("Edit(/**)", agents="writer"), deny("Edit(/**)", because="only the writer writes")
    )
    task = call(
        "Agent",
        subagent_type="writer",
        description="write",
        prompt="helper: write it",
        run_in_background=False,
        id_="toolu_agent",
    )
    script = Script(calls(write(sandbox, "mine"), task), say("done"))
    script.branch("helper", write(sandbox, "helped"), say("written"))
    agents = {"writer": {"description": "writes", "prompt": "You write."}}
    agent, model = scripted(script, policy=policy, agents=agents)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))
        decided = {
            each.details["tool_use_id"]: each.details
            for each in await entries_of(session)
            if each.kind is Kind.DECIDED
        }

    assert files_in(sandbox) == {"helped"}
    assert "only the writer writes" in model.asked[-1].tool_results["toolu_mine"]
    assert decided["toolu_helped"]["by"] == "allow Edit(/**) for writer"
    assert decided["toolu_helped"]["agent"]
    assert decided["toolu_mine"]["verdict"] == "deny"


async def test_what_a_person_allows_is_remembered_under_a_policy(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    asked = Asked()
    agent, _ = scripted(
        call("Bash", command="mkfifo a"),
        call("Bash", command="mkfifo a"),
        call("Bash", command="mkfifo c"),
        say("done"),
        policy=Policy(ask("Bash"), remember="session"),
        can_use_tool=asked,
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    assert asked.tools == ["Bash mkfifo a", "Bash mkfifo c"]


async def test_denials_of_a_policy_hold_for_links_too(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    """A text cannot tell where a link leads; the CLI holds the denial as well, and can."""
    (sandbox.project / ".env").write_text("SECRET=1")
    (sandbox.project / "link").symlink_to(sandbox.project / ".env")
    agent, model = scripted(
        calls(
            call("Read", file_path=str(sandbox.project / "link"), id_="toolu_link"),
            call("Bash", command="cat link", id_="toolu_cat"),
        ),
        say("done"),
        policy=Policy(deny("Read(.env)"), allow("Bash", "Read")),
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    told = model.asked[-1].tool_results
    assert "SECRET" not in told["toolu_link"]


async def test_a_recorded_session_is_tried_with_another_policy(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, _ = scripted(
        calls(
            write(sandbox, "file"),
            call("Bash", command="ls", id_="toolu_ls"),
            call("Bash", command="mkfifo a", id_="toolu_fifo"),
        ),
        say("done"),
        can_use_tool=lambda name, *_: Allow() if name == "Write" else Deny("no"),
    )
    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))
        journal = await entries_of(session)

    policy = Policy(deny("Edit(/file)"), allow("Bash"))
    found = {each.recorded.tool_use_id: each for each in policy.dry_run(recorded_calls(journal))}

    was = {key: (each.recorded.ran, each.recorded.source) for key, each in found.items()}
    assert was == {
        "toolu_file": (True, "callback"),
        "toolu_ls": (True, "cli"),
        "toolu_fifo": (False, "callback"),
    }
    would_be = {key: (each.verdict, each.changes) for key, each in found.items()}
    assert would_be == {
        "toolu_file": ("deny", True),
        "toolu_ls": ("allow", False),
        "toolu_fifo": ("allow", True),
    }
