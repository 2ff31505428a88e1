"""Sessions, turns and readers without `await`, on the scripted CLI."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import steersman
from steersman import Allow, Deny, Options, ToolContext
from steersman.errors import (
    ChannelClosed,
    ReaderLagged,
    RequestRefused,
    RequestTimeout,
    ResumeNotFound,
    TurnFailed,
    UsageError,
)
from steersman.hooks import Hooks, PreToolUse, Reply, deny, official
from steersman.journal import Entry, Phase
from steersman.stores import SqliteStore
from steersman.sync import Agent, Inbox, Query, Session, Turn, query, run, run_result
from steersman.testing.script import Script, Step, call, fail, say
from steersman.testing.scripted.cli import Faults, ScriptedCLI
from tests.sync.interrupting import interrupt_main, interrupted

pytestmark = pytest.mark.timeout(60)

LIMIT = 30.0
SESSIONS = 1000 if os.environ.get("STEERSMAN_SOAK") else 50


@dataclass
class Point:
    """A structured output."""

    x: int


def agent_for(*steps: Step, **options: Any) -> Agent:
    return Agent(transport=ScriptedCLI(Script(*steps)), **options)


# One prompt


def test_run_returns_the_result() -> None:
    assert run("hi", transport=ScriptedCLI()).text == "Echo: hi"


def test_run_with_output_returns_an_instance_and_run_result_its_cost_too() -> None:
    def answered(_request: object) -> Step:
        return call("StructuredOutput", x=3)

    typed = run_result("hi", output=Point, transport=ScriptedCLI(Script(answered)))

    assert typed.output == Point(3)
    assert typed.result.cost_usd > 0
    assert run("hi", output=Point, transport=ScriptedCLI(Script(answered))) == Point(3)


def test_a_turn_that_fails_raises_in_run_and_not_in_result() -> None:
    with agent_for(fail(400), fail(400)).session() as session:
        result = session.send("hi").result()

        with pytest.raises(TurnFailed) as failed:
            session.run("again")

    assert result.outcome == "failed"
    assert failed.value.outcome == "failed"


def test_query_yields_messages_and_closes_its_session() -> None:
    messages = query("hi", transport=ScriptedCLI())

    assert [type(each).__name__ for each in messages][-2:] == ["Assistant", "Result"]
    assert messages.session.phase is Phase.COMPLETED


def test_query_takes_a_stream_of_prompts() -> None:
    def prompts() -> Iterator[str]:
        yield "one"
        yield "two"

    texts = [
        each.text
        for each in query(prompts(), transport=ScriptedCLI())
        if isinstance(each, steersman.Assistant)
    ]

    assert texts == ["Echo: one", "Echo: two"]


def test_a_bad_prompt_in_a_stream_is_raised() -> None:
    messages = query(iter(["one", ""]), transport=ScriptedCLI())

    with pytest.raises(UsageError, match="prompt"):
        list(messages)


# Sessions


def test_a_session_is_started_by_with_and_closed_at_its_end() -> None:
    session = agent_for().session()
    assert session.state == "idle"
    with pytest.raises(ChannelClosed, match=r"has not started(.|\n)*`with` in steersman.sync"):
        session.send("too early")

    with session as same:
        assert same is session
        assert session.initialized.models is not None
        assert session.describe()

    assert session.phase is Phase.COMPLETED
    session.close()
    with pytest.raises(ChannelClosed, match="closed"):
        session.send("too late")


def test_start_returns_a_session_that_has_its_prompt() -> None:
    session = agent_for(say("Hello.")).start("hi")

    assert [turn.result().text for turn in session.turns] == ["Hello."]
    session.close()


def test_open_starts_a_conversation_or_says_that_there_is_none() -> None:
    with agent_for().open("shop") as session:
        assert session.run("hi").text == "Echo: hi"
        assert session.id is not None

    gone = Faults(exit_at="first byte", stderr="No conversation found with session ID: x")
    place = ScriptedCLI(faults=gone)
    with pytest.raises(ResumeNotFound):
        Agent(transport=place).open("no such key", missing="fail")
    assert len(place.launches) == 1


def test_an_error_while_starting_is_raised_as_it_is() -> None:
    with pytest.raises(steersman.SteersmanError) as raised:
        Agent(cli_path="/nowhere/claude").session().start()

    assert type(raised.value).__name__ == "CliNotFound"


def test_a_turn_belongs_to_its_session() -> None:
    with agent_for().session() as one, agent_for().session() as other:
        turn = one.send("hi")

        with pytest.raises(UsageError, match="a Turn of this session"):
            other.interrupt(turn=turn)
        assert turn.session is one
        assert turn.result().outcome == "completed"


def test_result_has_a_timeout_after_which_the_turn_continues() -> None:
    hold = threading.Event()

    def wait() -> str:
        """Wait."""
        hold.wait(LIMIT)
        return "done"

    agent = agent_for(call("mcp__functions__wait"), say("Done."), functions=[wait])
    with agent.session() as session:
        turn = session.send("wait")
        with pytest.raises(RequestTimeout, match=r"has not ended within 0\.01 s"):
            turn.result(timeout=0.01)
        with pytest.raises(TimeoutError):
            turn.result(timeout=0.01)
        with pytest.raises(UsageError, match="timeout"):
            turn.result(timeout=0)
        hold.set()

        assert turn.result(timeout=LIMIT).text == "Done."


def test_readers_give_all_that_is_there_and_may_be_left_halfway() -> None:
    text = "word " * 400
    with agent_for(say(text, chunks=400)).session() as session:
        turn = session.send("hi")
        for _ in turn.text():
            break
        chunks = list(turn.text())
        blocks = list(turn.blocks())
        lines = list(turn.raw())

    assert "".join(chunks) == text
    assert len(chunks) >= 400
    assert blocks[-1].state == "complete"
    assert len(lines) > 400
    assert [each.seq for each in session.journal() if isinstance(each, Entry)][-1] > 400


def test_a_reader_that_is_too_slow_is_told() -> None:
    with agent_for(say("a" * 200, chunks=100), journal_memory=4096).session() as session:
        turn = session.send("hi")
        turn.result(timeout=LIMIT)

        with pytest.raises(ReaderLagged):
            list(turn.messages())


def test_listeners_run_in_a_thread_and_may_call_the_session() -> None:
    seen: list[object] = []
    with agent_for(say("Hello.")).session() as session:

        @session.on("message")
        def look(message: object) -> None:
            seen.append((type(message).__name__, session.snapshot().session_id))

        remove = session.on("state_change", seen.append)
        remove()
        remove()
        session.run("hi")
        session.finish(LIMIT)

    assert ("Result", session.id) in seen
    assert {type(each) for each in seen} == {tuple}


def test_verbs_pauses_and_checkpoints_work() -> None:
    with agent_for().session() as session:
        session.run("hi")
        checkpoint = session.checkpoint()
        session.set_model("opus")
        session.set_permission_mode("plan")
        session.pause()
        session.resume()
        assert session.mcp_status().servers == []
        with pytest.raises(RequestRefused, match="get_weather"):
            session.control("get_weather")
        session.rewind(checkpoint)
        assert session.wait_idle(LIMIT)
        assert session.cost_usd >= 0
        assert (session.agents.children, session.tasks) == ((), ())


# Options and transports


def use(session: Session) -> None:
    with session:
        session.run("hello")


def begin(session: Session) -> None:
    session.turns[0].result(LIMIT)
    session.close()


CALLS: dict[str, Callable[..., object]] = {
    "session": lambda agent, **words: use(agent.session(**words)),
    "start": lambda agent, **words: begin(agent.start("hello", **words)),
    "open": lambda agent, **words: use(agent.open("a key", **words)),
    "query": lambda agent, **words: len(list(agent.query("hello", **words))),
    "run": lambda agent, **words: agent.run("hello", **words).text,
    "run with output": lambda agent, **words: agent.run("hello", output=Point, **words).x,
    "run_result": lambda agent, **words: agent.run_result("hello", output=Point, **words).output,
}


def place_for(way: str) -> ScriptedCLI:
    is_typed = way in ("run with output", "run_result")
    return ScriptedCLI(Script(call("StructuredOutput", x=3) if is_typed else say("Hi.")))


@pytest.mark.parametrize("way", CALLS)
def test_a_call_has_the_options_and_the_transport_of_its_agent_or_its_own(way: str) -> None:
    ours, other = place_for(way), place_for(way)
    agent = Agent(Options(model="model-a"), transport=ours, agent="agent-a")

    found = CALLS[way](agent)
    (launch,) = ours.launches
    assert {"--model=model-a", "--agent=agent-a"} <= set(launch.argv)
    assert "hello" in str(ours.asked[0].body)

    assert CALLS[way](agent, transport=other, model="model-b") == found
    (launch,) = other.launches
    assert {"--model=model-b", "--agent=agent-a"} <= set(launch.argv)
    assert "hello" in str(other.asked[0].body)
    assert len(ours.launches) == 1


FUNCTIONS: dict[str, Callable[..., object]] = {
    "query": lambda **words: list(query("hello", **words)),
    "run": lambda **words: run("hello", **words),
    "run with output": lambda **words: run("hello", output=Point, **words),
    "run_result": lambda **words: run_result("hello", output=Point, **words),
}


@pytest.mark.parametrize("way", FUNCTIONS)
def test_a_function_takes_options_keywords_and_a_transport(way: str) -> None:
    place = place_for(way)

    FUNCTIONS[way](options=Options(model="model-a"), transport=place, agent="agent-a")

    (launch,) = place.launches
    assert {"--model=model-a", "--agent=agent-a"} <= set(launch.argv)
    assert "hello" in str(place.asked[0].body)


def test_the_clock_of_an_agent_is_that_of_its_sessions_also_of_those_started_ahead() -> None:
    agent = Agent(transport=ScriptedCLI(), clock=lambda: 7.0)
    for _ in range(2):
        with agent.session() as session:
            session.run("hi")
        assert {each.at for each in session.journal() if isinstance(each, Entry)} == {7.0}
        agent.prewarm()
    agent.prewarm(0)


def test_a_bad_prompt_is_refused_before_a_cli_runs() -> None:
    place = ScriptedCLI()
    agent = Agent(transport=place)

    for refuse in (agent.start, agent.query, agent.run):
        with pytest.raises(UsageError, match="prompt"):
            refuse("")

    assert place.launches == []


def test_a_fork_continues_from_here_with_options_of_its_own() -> None:
    place = ScriptedCLI(Script(say("One."), call("Bash", command="ls"), say("Two.")))
    threads: list[str] = []
    hooks = Hooks()
    hooks.on(PreToolUse)(lambda _event: threads.append(threading.current_thread().name))
    with Agent(transport=place, allowed_tools=["Bash"]).session() as session:
        session.run("hi")
        with session.fork(model="model-b", hooks=hooks) as fork:
            assert fork.run("and?").text == "Two."

    assert fork.id != session.id
    assert {"--model=model-b", f"--resume={session.id}"} <= set(place.launches[1].argv)
    assert threads == ["steersman-tool"]


def test_hooks_and_approvers_of_one_call_run_in_threads_instead_of_those_of_the_agent() -> None:
    threads: dict[str, str] = {}
    hooks = Hooks()
    hooks.on(PreToolUse)(lambda _: threads.update(hook=threading.current_thread().name))

    def approve(*_: object) -> Allow:
        threads["approver"] = threading.current_thread().name
        return Allow()

    def refuse(*_: object) -> Deny:
        threads["of the agent"] = threading.current_thread().name
        return Deny("no")

    agent = agent_for(call("Bash", command="touch new"), say("Done."), can_use_tool=refuse)
    agent.run("go", hooks=hooks, can_use_tool=approve)

    assert threads == {"hook": "steersman-tool", "approver": "steersman-tool"}


def test_a_plain_callback_may_return_an_awaitable() -> None:
    async def later() -> Allow:
        return Allow()

    agent = agent_for(
        call("Bash", command="touch new"), say("Done."), can_use_tool=lambda *_: later()
    )

    assert agent.run("go").tool_calls[0].is_error is False


# Tools, hooks and approvers


def test_a_tool_may_use_its_own_session_but_not_wait_for_its_own_turn() -> None:
    found: list[object] = []

    def ask(context: ToolContext) -> str:
        """Ask."""
        mine = Session(context.session)
        found.append(mine.id)
        found.append(mine.send("and then?").delivery)
        try:
            mine.turns[0].result()
        except UsageError as error:
            found.append(str(error.argument))
        return "asked"

    agent = agent_for(call("mcp__functions__ask"), say("One."), say("Two."), functions=[ask])
    with agent.session() as session:
        assert session.run("ask").text == "One."
        assert session.turns[-1].result().text == "Two."

    assert found == [session.id, "queued", "turn"]


def test_an_async_tool_is_refused_instead_of_waiting_for_itself() -> None:
    found: list[str] = []

    async def ask() -> str:
        """Ask."""
        try:
            run("hi", transport=ScriptedCLI())
        except UsageError as error:
            found.append(str(error))
        return "asked"

    with agent_for(call("mcp__functions__ask"), say("Done."), functions=[ask]).session() as session:
        assert session.run("ask").text == "Done."

    assert "own event loop" in found[0]
    assert "plain `def`" in found[0]


def test_hooks_and_approvers_that_are_plain_functions_run_in_threads_of_their_own() -> None:
    threads: dict[str, str] = {}
    hooks = Hooks()

    @hooks.on(PreToolUse, "Write")
    def guard(event: PreToolUse) -> Reply:
        threads["guard"] = threading.current_thread().name
        return deny(run(f"Why {event.tool_name}?", transport=ScriptedCLI()).text)

    @hooks.on(PreToolUse, "Bash")
    async def look(event: PreToolUse) -> None:
        threads["async"] = threading.current_thread().name

    def approve(*_: object) -> Allow:
        threads["approver"] = threading.current_thread().name
        session.snapshot()
        return Allow()

    bash = call("Bash", command="touch new")
    steps = (call("Write", file_path="a", content="b"), bash, say("Done."))
    agent = agent_for(*steps, hooks=hooks, can_use_tool=approve)
    with agent.session() as session:
        session.run("go")
    assert [each for each in session.raw() if b"Why Write?" in each]
    assert threads == {
        "guard": "steersman-tool",
        "async": "steersman-sync",
        "approver": "steersman-tool",
    }


def test_hooks_that_are_registered_after_the_agent_was_made_are_called() -> None:
    hooks, seen = Hooks(), list[str]()
    agent = agent_for(call("Bash", command="ls"), say("Done."), hooks=hooks)
    hooks.on(PreToolUse)(lambda event: seen.append(event.tool_name))

    agent.run("go", allowed_tools=["Bash"])

    assert seen == ["Bash"]


def test_a_hook_that_is_marked_as_official_gets_the_official_arguments() -> None:
    hooks, seen = Hooks(), list[tuple[object, ...]]()
    agent = agent_for(call("Bash", command="ls"), say("Done."), hooks=hooks)
    hooks.on(PreToolUse)(official(lambda *given: seen.append(given[:2])))

    agent.run("go", allowed_tools=["Bash"])

    ((given, tool_use_id),) = seen
    assert isinstance(given, dict)
    assert (given["tool_name"], given["tool_use_id"]) == ("Bash", tool_use_id)


def test_an_inbox_in_memory_denies_what_waits_too_long() -> None:
    inbox = Inbox(expires_after=0.01)
    agent = agent_for(call("Bash", command="touch new"), say("Done."), inbox=inbox)

    result = agent.run("go")

    assert result.tool_calls[0].is_error


@pytest.mark.parametrize("given_to", ["agent", "session"])
def test_an_inbox_in_a_store_keeps_the_turns_of_its_sessions(tmp_path: Path, given_to: str) -> None:
    words: dict[str, Any] = {"inbox": Inbox(SqliteStore(tmp_path / "asks.db").inbox())}
    agent = agent_for(**(words if given_to == "agent" else {}))

    with agent.session(**(words if given_to == "session" else {})) as session:
        assert session.resume_turns() == []


def test_an_inbox_is_watched_and_answered() -> None:
    inbox = Inbox()
    agent = agent_for(call("Bash", command="touch new"), say("Done."), inbox=inbox)
    with agent.session() as session:
        turn = session.send("go")
        ask = next(inbox.watch()).ask
        assert inbox.list() == [inbox.get(ask.id)] == [ask]
        inbox.delegate(ask, "ann")
        outcome = inbox.answer(ask, Allow(), by="ann")

        assert turn.result(LIMIT).text == "Done."
    assert (outcome.how, outcome.by) == ("answered", "ann")


# Ctrl-c


def waiting(within: str) -> Callable[[ToolContext], str]:
    """Return a tool that presses ctrl-c once the main thread waits in a function, and waits too."""

    def wait(context: ToolContext) -> str:
        """Wait."""
        interrupt_main(within)
        context.cancelled.wait(LIMIT)
        return "done"

    return wait


def test_ctrl_c_in_a_wait_interrupts_the_turn_and_the_session_goes_on() -> None:
    agent = agent_for(call("mcp__functions__wait"), say("Next."), functions=[waiting("result")])
    with agent.session() as session:
        turn = session.send("wait")

        interrupted(turn.result)

        assert turn.is_settled
        assert turn.result().outcome == "interrupted"
        assert session.run("go on").text == "Next."


WAYS: dict[str, tuple[str, Callable[[Session, Turn], object]]] = {
    "text": ("__next__", lambda _, turn: list(turn.text())),
    "messages": ("__next__", lambda session, _: list(session.messages())),
    "wait_idle": ("wait_idle", lambda session, _: session.wait_idle(LIMIT)),
}


@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_in_a_reader_or_another_wait_interrupts_the_turn(way: str) -> None:
    within, read = WAYS[way]
    agent = agent_for(call("mcp__functions__wait"), functions=[waiting(within)])
    with agent.session() as session:
        turn = session.send("wait")

        interrupted(lambda: read(session, turn))

        assert turn.result(LIMIT).outcome == "interrupted"


def test_ctrl_c_in_run_closes_the_session_before_it_is_raised() -> None:
    before = asyncio_tasks()
    agent = agent_for(call("mcp__functions__wait"), functions=[waiting("run")])

    interrupted(lambda: agent.run("wait"))

    assert asyncio_tasks() == before


def asyncio_tasks() -> set[str]:
    """Return the names of what runs in the loop of `steersman.sync`, except for this call."""
    from steersman._portal.portal import shared_portal  # noqa: PLC0415

    async def names() -> set[str]:
        mine = asyncio.current_task()
        return {repr(each.get_coro()) for each in asyncio.all_tasks() if each is not mine}

    return shared_portal().call(names)


# What is left


def test_a_session_that_is_no_longer_referenced_is_closed() -> None:
    session = agent_for().session().start()
    turn = session.send("hi")
    watched = weakref.ref(session)
    inner = steersman_session_of(session)
    del session
    gc.collect()
    assert watched() is not None, "a turn keeps its session"
    assert turn.result().outcome == "completed"

    del turn
    gc.collect()

    assert watched() is None
    waiting = Session(inner)
    waiting.close()
    assert waiting.phase is Phase.COMPLETED


KEPT: dict[str, Callable[[Agent], object]] = {
    "session": lambda agent: agent.session().start(),
    "open": lambda agent: agent.open("a key"),
    "query": lambda agent: begun(agent.query("hello")),
}


def begun(messages: Query) -> Query:
    next(messages)
    return messages


@pytest.mark.filterwarnings("ignore:unclosed Query:ResourceWarning")
@pytest.mark.parametrize("way", KEPT)
def test_whatever_has_started_a_cli_closes_it_when_nothing_refers_to_it(way: str) -> None:
    place = ScriptedCLI()
    thing = KEPT[way](Agent(transport=place))
    assert place.running == 1

    del thing
    gc.collect()

    deadline = time.monotonic() + LIMIT
    while place.running and time.monotonic() < deadline:
        asyncio_tasks()
    assert place.running == 0


def steersman_session_of(session: Session) -> steersman.Session:
    found = [
        each for each in gc.get_referents(vars(session)) if isinstance(each, steersman.Session)
    ]
    return found[0]


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_a_thousand_sessions_leave_no_thread_no_file_and_no_task() -> None:
    def open_and_close() -> None:
        with agent_for().session() as session:
            session.run("hi")

    open_and_close()
    gc.collect()
    before = (threading.active_count(), open_files(), asyncio_tasks())

    for _ in range(SESSIONS):
        open_and_close()

    gc.collect()
    assert (threading.active_count(), open_files(), asyncio_tasks()) == before


def open_files() -> set[Path]:
    return {each.readlink() for each in Path("/proc/self/fd").iterdir() if each.is_symlink()}
