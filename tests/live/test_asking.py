"""Who may do what: callbacks, hooks and functions, against files that do or do not come to be."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any

import pytest

from steersman import Allow, Deny, Hooks, Toolbox, tool
from steersman.hooks import PostToolUse, PreToolUse, Reply, UserPromptSubmit, allow, deny
from steersman.permissions import PermissionContext
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Step, call, calls, say, when
from tests.live.staging import LIMIT, MakeScripted, entries_of

pytestmark = pytest.mark.live


def write(box: CliSandbox, name: str, content: str = "asked for") -> Step:
    return call("Write", file_path=str(box.project / name), content=content, id_=f"toolu_{name}")


def files_in(box: CliSandbox) -> dict[str, str]:
    return {path.name: path.read_text() for path in box.project.iterdir()}


async def test_a_permission_callback_decides_what_is_written(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    asked: list[tuple[str, str, str]] = []

    async def decide(name: str, given: dict[str, Any], context: PermissionContext) -> Any:
        file = given["file_path"].rpartition("/")[2]
        asked.append((name, file, context.tool_use_id))
        await asyncio.sleep(0)
        match file:
            case "changed":
                return Allow({**given, "content": "changed on the way"})
            case "denied":
                return Deny("not on a Sunday")
            case "raising":
                raise RuntimeError("the callback itself is broken: s3cret")
            case "nonsense":
                return True
            case _:
                return Allow()

    names = ("allowed", "changed", "denied", "raising", "nonsense")
    agent, model = scripted(
        calls(*(write(sandbox, name) for name in names)), say("done"), can_use_tool=decide
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        result = await (await session.send("write"))
        faults = [each.details for each in await entries_of(session) if each.kind.value == "fault"]

    assert asked == [("Write", name, f"toolu_{name}") for name in names]
    assert files_in(sandbox) == {"allowed": "asked for", "changed": "changed on the way"}
    told = model.asked[-1].tool_results
    assert told["toolu_denied"] == "not on a Sunday"
    assert "RuntimeError" in told["toolu_raising"]
    assert "s3cret" not in told["toolu_raising"]
    assert "not return a decision" in told["toolu_nonsense"]
    assert (result.outcome, result.text) == ("completed", "done")
    assert len(result.permission_denials) == 3
    assert [fault["where"] for fault in faults] == ["can_use_tool", "can_use_tool"]


async def test_a_denial_may_end_the_turn(scripted: MakeScripted, sandbox: CliSandbox) -> None:
    agent, model = scripted(
        when("write", say("I try.") + write(sandbox, "denied")),
        when("next", say("fresh")),
        can_use_tool=lambda *_: Deny("stop here", interrupt=True),
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        stopped = await (await session.send("write"))
        after = await (await session.send("next"))

    assert (stopped.outcome, stopped.text) == ("interrupted", "I try.")
    assert (after.outcome, after.text) == ("completed", "fresh")
    assert files_in(sandbox) == {}
    assert len(model.asked) == 2


async def test_without_an_approver_the_model_reads_how_to_register_one(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, model = scripted(write(sandbox, "file"), say("a pity"))

    async with asyncio.timeout(LIMIT):
        result = await agent.run("write")

    assert files_in(sandbox) == {}
    told = model.asked[-1].tool_results["toolu_file"]
    assert "can_use_tool" in told
    assert "allowed_tools" in told
    assert [each["tool_name"] for each in result.permission_denials] == ["Write"]


async def test_hooks_see_deny_change_and_fail_closed(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    hooks, seen = Hooks(), list[str]()

    @hooks.on(PreToolUse, "Write|Bash")
    async def guard(event: PreToolUse) -> Any:
        name = event.tool_input.get("file_path", "").rpartition("/")[2]
        match name:
            case "denied":
                return deny("a hook says no")
            case "raising":
                raise RuntimeError("the guard itself is broken: s3cret")
            case "nonsense":
                return 42
            case "changed":
                return allow(updated_input={**event.tool_input, "content": "by a hook"})
            case "mapped":
                verdict = {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
                return {"hookSpecificOutput": verdict}
            case _:
                return None

    @hooks.on(PostToolUse)
    def look(event: PostToolUse) -> None:
        seen.append(event.tool_input["file_path"].rpartition("/")[2])

    @hooks.on(PostToolUse)
    def fail(_event: PostToolUse) -> None:
        raise RuntimeError("an observer stops nothing")

    names = ("denied", "raising", "nonsense", "changed", "mapped", "unhooked")
    agent, model = scripted(
        calls(*(write(sandbox, name) for name in names)), say("done"), hooks=hooks
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        result = await (await session.send("write"))

    assert files_in(sandbox) == {"changed": "by a hook", "mapped": "asked for"}
    assert sorted(seen) == ["changed", "mapped"]
    told = model.asked[-1].tool_results
    assert "a hook says no" in told["toolu_denied"]
    assert "RuntimeError" in told["toolu_raising"]
    assert "s3cret" not in str(told)
    # Nobody had an opinion about this one, so it was asked for, and there is no approver.
    assert "can_use_tool" in told["toolu_unhooked"]
    assert result.outcome == "completed"


async def test_a_prompt_that_a_hook_stops_or_stumbles_over_reaches_no_model(
    scripted: MakeScripted,
) -> None:
    hooks = Hooks()

    @hooks.on(UserPromptSubmit)
    def screen(event: UserPromptSubmit) -> Reply | None:
        if "forbidden" in event.prompt:
            return Reply(decision="block", reason="that word")
        if "stumble" in event.prompt:
            raise RuntimeError("so nothing is asked")
        return None

    agent, model = scripted(say("fine"), hooks=hooks)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        prompts = ("forbidden", "make it stumble", "harmless")
        results = [await (await session.send(prompt)) for prompt in prompts]

    assert [each.text for each in results] == ["", "", "fine"]
    assert [request.last_text for request in model.asked] == ["harmless"]


who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


threads: set[str] = set()
"""Where `add` ran."""


@tool
def add(a: float, b: float) -> float:
    """Add two numbers."""
    threads.add(threading.current_thread().name)
    return a + b


@tool
async def whoami() -> str:
    """Tell for whom this runs."""
    await asyncio.sleep(0)
    return who.get()


@tool
def whoami_in_a_thread() -> str:
    """Tell the same from a plain function."""
    return who.get()


@tool
def broken() -> str:
    """Fail."""
    raise ValueError("no luck")


def plain(word: str = "hey") -> dict[str, Any]:
    """Shout a word."""
    return {"shout": word.upper()}


def round_for(name: str) -> Step:
    return calls(
        call("mcp__functions__add", a=2, b=3, id_=f"{name}_add"),
        call("mcp__functions__whoami", id_=f"{name}_async"),
        call("mcp__functions__whoami_in_a_thread", id_=f"{name}_sync"),
        call("mcp__functions__broken", id_=f"{name}_broken"),
        call("mcp__functions__plain", word="ho", id_=f"{name}_plain"),
        call("mcp__functions__add", a="two", b=3, id_=f"{name}_bad"),
    )


async def test_functions_run_without_asking_in_the_context_of_their_prompt(
    scripted: MakeScripted,
) -> None:
    def ask(*_: Any) -> Any:
        raise AssertionError("functions are not asked for")

    agent, model = scripted(
        when("Ann", round_for("Ann"), say("done")),
        when("Bob", round_for("Bob"), say("done")),
        functions=[add, whoami, whoami_in_a_thread, broken, plain],
        can_use_tool=ask,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:

        async def as_user(name: str) -> str:
            who.set(name)
            return (await (await session.send(f"I am {name}"))).outcome

        outcomes = await asyncio.gather(as_user("Ann"), as_user("Bob"))

    told = {**model.asked[1].tool_results, **model.asked[3].tool_results}
    assert list(outcomes) == ["completed", "completed"]
    for name in ("Ann", "Bob"):
        assert float(told[f"{name}_add"]) == 5
        assert (told[f"{name}_async"], told[f"{name}_sync"]) == (name, name)
        assert "ValueError" in told[f"{name}_broken"]
        assert "HO" in told[f"{name}_plain"]
        assert "a: Expected `float`" in told[f"{name}_bad"]
    assert threading.main_thread().name not in threads


async def test_a_named_toolbox_is_asked_for_unless_a_rule_allows_it(
    scripted: MakeScripted,
) -> None:
    @tool
    def ping() -> str:
        """Answer."""
        return "pong"

    asked: list[str] = []

    def decide(name: str, _given: dict[str, Any], _context: PermissionContext) -> Deny:
        asked.append(name)
        return Deny("no")

    agent, model = scripted(
        calls(call("mcp__free__ping", id_="free"), call("mcp__guarded__ping", id_="guarded")),
        say("done"),
        mcp_servers={"free": Toolbox("free", [ping]), "guarded": Toolbox("guarded", [ping])},
        allowed_tools=["mcp__free__ping"],
        can_use_tool=decide,
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("ping")

    assert asked == ["mcp__guarded__ping"]
    assert model.asked[-1].tool_results == {"free": "pong", "guarded": "no"}


async def test_several_questions_may_be_open_and_wait_for_a_person(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    """Read asks in parallel outside the project; the session says what it waits for."""
    outside = [sandbox.root / f"outside-{n}" for n in range(3)]
    for path in outside:
        path.write_text(path.name)
    everyone = asyncio.Event()
    waiting: list[str] = []

    async def decide(_name: str, given: dict[str, Any], _context: PermissionContext) -> Allow:
        waiting.append(given["file_path"])
        if len(waiting) == len(outside):
            everyone.set()
        await everyone.wait()
        return Allow()

    agent, model = scripted(
        calls(*(call("Read", file_path=str(path), id_=path.name) for path in outside)),
        say("read"),
        can_use_tool=decide,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("read")
        await everyone.wait()
        state = session.state
        result = await turn

    assert state == "waiting_permission"
    assert sorted(waiting) == sorted(map(str, outside))
    assert all(path.name in model.asked[-1].tool_results[path.name] for path in outside)
    assert result.outcome == "completed"


@pytest.mark.parametrize("broken", ["\ud83d", "a\udc00b", "\ud83d\ud83d"])
async def test_half_a_character_reaches_the_callback_and_comes_back(
    scripted: MakeScripted, sandbox: CliSandbox, broken: str
) -> None:
    asked: list[dict[str, Any]] = []

    def decide(_name: str, given: dict[str, Any], _context: PermissionContext) -> Allow:
        asked.append(given)
        return Allow()

    agent, model = scripted(
        call("Bash", command=f"echo '{broken}' > out; echo written", id_="bash_1"),
        lambda request: say(request.tool_results["bash_1"]),
        say("fine"),
        can_use_tool=decide,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("write")
        result = await turn
        after = await (await session.send(f"and {broken}"))

    assert [each["command"] for each in asked] == [f"echo '{broken}' > out; echo written"]
    assert (result.outcome, result.text) == ("completed", "written")
    assert (after.outcome, after.text) == ("completed", "fine")
    assert (sandbox.project / "out").exists()
    assert len(model.asked) == 3
