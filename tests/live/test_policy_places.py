"""Policies about places on the stock CLI: hosts, links, and directories after `cd`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steersman import Allow, Deny, Hooks, Policy
from steersman.hooks import PreToolUse, block_paths
from steersman.hooks import ask as ask_user
from steersman.permissions import PermissionContext, allow, ask, deny
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import call, calls, say
from tests.live.staging import LIMIT, MakeScripted

pytestmark = pytest.mark.live

HIDDEN = (
    "https://evil.test\\@good.test/",
    "https://evil.test\\.good.test/",
    "http://good.test:80@evil.test/",
    "https://good.test@evil.test/",
)
SPELLINGS = (
    "https:good.test",
    "https:/good.test/",
    "https://good%2etest/",
    "https://good.test./",
    "https://GOOD.test/",
    "https://go\tod.test/",
    "https://\uff47ood.test/",
)


def fetches(urls: tuple[str, ...]) -> Any:
    """Return calls of WebFetch with the ids t0, t1, ..."""
    made = [call("WebFetch", url=url, prompt="x", id_=f"t{n}") for n, url in enumerate(urls)]
    return calls(*made)


def refuse(_name: str, _given: dict[str, Any], _context: PermissionContext) -> Deny:
    return Deny("no")


async def test_no_other_host_is_fetched_unasked_under_an_approval_of_a_domain(
    scripted: MakeScripted,
) -> None:
    asked: list[str] = []

    def decide(_name: str, _given: dict[str, Any], context: PermissionContext) -> Deny:
        asked.append(context.tool_use_id)
        return Deny("no")

    policy = Policy(
        allow("WebFetch(domain:good.test)", "WebFetch(domain:*.good.test)"), otherwise="ask"
    )
    agent, _ = scripted(fetches(HIDDEN), say("done"), policy=policy, can_use_tool=decide)

    async with asyncio.timeout(LIMIT):
        result = await agent.run("go")

    everything = {f"t{n}" for n in range(len(HIDDEN))}
    assert {each["tool_use_id"] for each in result.permission_denials} | set(asked) == everything


async def test_no_spelling_of_a_domain_is_fetched_unasked(scripted: MakeScripted) -> None:
    asked: list[str] = []

    def decide(_name: str, _given: dict[str, Any], context: PermissionContext) -> Deny:
        asked.append(context.tool_use_id)
        return Deny("no")

    policy = Policy(ask("WebFetch(domain:good.test)"), allow("WebFetch"))
    agent, _ = scripted(fetches(SPELLINGS), say("done"), policy=policy, can_use_tool=decide)

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    assert sorted(asked) == [f"t{n}" for n in range(len(SPELLINGS))]


@pytest.mark.parametrize("guard", ["policy", "ask_every_call", "hook"])
async def test_an_asked_write_through_a_link_does_not_run_in_bypass_permissions(
    scripted: MakeScripted, sandbox: CliSandbox, guard: str
) -> None:
    project = sandbox.project
    (project / ".git" / "hooks").mkdir(parents=True)
    (project / "g").symlink_to(".git")
    hooks = Hooks()
    options: dict[str, Any] = {"can_use_tool": refuse}
    if guard == "policy":
        options["policy"] = Policy(otherwise="ask")
    elif guard == "ask_every_call":
        options["ask_every_call"] = True
    else:
        hooks.on(PreToolUse)(lambda _: ask_user("really?"))
        options = {"hooks": hooks}
    paths = ("g/hooks/w1", ".git/hooks/w2", ".bashrc", "plain")
    made = [
        call("Write", file_path=str(project / path), content="x", id_=f"t{n}")
        for n, path in enumerate(paths)
    ]
    agent, model = scripted(
        calls(*made, call("Bash", command="touch g/hooks/w3", id_="t_touch")),
        say("done"),
        # The CLI refuses this mode to root outside a sandbox.
        env={"IS_SANDBOX": "1"},
        permission_mode="bypassPermissions",
        **options,
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    written = [path for path in (*paths, "g/hooks/w3") if (project / path).exists()]
    assert written == []
    assert len(model.asked[-1].tool_results) == len(paths) + 1


@pytest.mark.parametrize("holder", ["the CLI", "our guard"])
async def test_an_approval_does_not_cover_a_file_behind_a_link(
    scripted: MakeScripted, sandbox: CliSandbox, holder: str
) -> None:
    project, elsewhere = sandbox.project, sandbox.root / "elsewhere"
    elsewhere.mkdir()
    (project / "src").mkdir()
    (project / "src" / "out").symlink_to(elsewhere)
    (project / "src" / "up").symlink_to(project)
    asked: list[str] = []

    def decide(_name: str, _given: dict[str, Any], context: PermissionContext) -> Deny:
        asked.append(context.tool_use_id)
        return Deny("no")

    options: dict[str, Any] = {"allowed_tools": ["Edit(src/**)"]}
    if holder == "our guard":
        options = {"policy": Policy(allow("Edit(src/**)"))}
    made = [
        call("Write", file_path=str(project / path), content="x", id_=f"t_{name}")
        for name, path in (("out", "src/out/x"), ("up", "src/up/x"), ("plain", "src/plain"))
    ]
    agent, _ = scripted(
        calls(*made), say("done"), can_use_tool=decide, permission_mode="default", **options
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    assert sorted(asked) == ["t_out", "t_up"]
    assert (project / "src" / "plain").exists()


async def test_blocked_paths_stay_blocked_after_cd(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    keys = sandbox.project / "conf" / "keys"
    keys.mkdir(parents=True)
    (keys / "a").write_text("SECRET")
    hooks = Hooks()
    hooks.on(PreToolUse)(block_paths("conf/keys"))
    agent, model = scripted(
        call("Bash", command="cd conf", id_="t_cd"),
        call("Bash", command="cat keys/a", id_="t_cat"),
        call("Read", file_path=str(keys / "a"), id_="t_read"),
        say("done"),
        hooks=hooks,
        allowed_tools=["Bash", "Read"],
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    results = {name: text for each in model.asked for name, text in each.tool_results.items()}
    assert "off limits" not in results["t_cd"]
    assert "conf/keys is off limits." in results["t_cat"]
    assert "conf/keys is off limits." in results["t_read"]


@pytest.mark.parametrize("kind", ["ask", "deny when", "block_paths"])
async def test_no_file_is_read_through_the_directories_of_a_process(
    scripted: MakeScripted, sandbox: CliSandbox, kind: str
) -> None:
    """A link of the CLI's process leads this program to another file, or to none."""
    (sandbox.project / "conf").mkdir()
    (sandbox.project / "conf" / "keys").write_text("SECRET")
    (sandbox.project / "here").symlink_to("/proc/self/cwd")
    rule, hooks = "Read(conf/keys)", Hooks()
    options: dict[str, Any] = {"can_use_tool": refuse}
    if kind == "block_paths":
        hooks.on(PreToolUse)(block_paths("conf/keys"))
        options = {"hooks": hooks, "can_use_tool": lambda *_: Allow()}
    else:
        guard = ask(rule) if kind == "ask" else deny(rule, when=bool)
        options["policy"] = Policy(guard, allow("Read", "Bash"))
    # A link is followed by a policy only.
    paths = ("/proc/self/cwd/conf/keys", *(("here/conf/keys",) if kind != "block_paths" else ()))
    made = [call("Read", file_path=path, id_=f"t{n}") for n, path in enumerate(paths)]
    agent, model = scripted(
        calls(*made, call("Bash", command="cat /proc/self/cwd/conf/keys", id_="t_cat")),
        say("done"),
        **options,
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    results = model.asked[-1].tool_results
    assert [name for name, text in results.items() if "SECRET" in text] == []
    assert len(results) == len(paths) + 1
