"""Whoever gives a public function something wrong is told which argument, before anything runs."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest

import steersman
from steersman import (
    Agent,
    Allow,
    Deny,
    Hooks,
    Inbox,
    Options,
    Policy,
    Session,
    Toolbox,
    prompts,
    tool,
)
from steersman.control import SetModel
from steersman.errors import UsageError
from steersman.hooks import HookMatcher, PreToolUse, Stop, log, validate
from steersman.journal import Entry, Kind
from steersman.messages import parse_message
from steersman.options import Caps, Limits, Park, Revival, StartupLimits, Watchdog
from steersman.permissions import Ask, CanUseTool, allow
from steersman.ports import Channel, Launch, Receiver
from steersman.testing.script import Script
from steersman.testing.scripted.cli import ScriptedCLI
from steersman.tools import Prompt, RemoteTools, Resource
from steersman.transports.command import CommandTransport
from steersman.transports.locate import locate
from steersman.transports.subprocess import SubprocessTransport
from tests.options.test_fields import BAD, UUID

Deed = Callable[[Any], Any]


class Nowhere:
    """A place where nothing may be started."""

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        raise AssertionError("something was started in spite of bad input")


@dataclass(frozen=True)
class Case:
    """Something wrong, and the argument that must be named."""

    argument: str
    deed: Deed


def generator() -> Any:
    """A function that cannot be a tool."""
    yield 1


def two(_one: object, _other: object) -> None:
    """A callback with a number of parameters that no caller has."""


def asked() -> Inbox:
    """An inbox in which one permission waits."""
    inbox = Inbox()
    payload = CanUseTool(tool_name="Bash", input={})
    inbox.open(Ask(id="q", session="s", payload=payload, created=0.0), lambda _answer, _by: None)
    return inbox


OPTIONS = {name: values[0] for name, values in BAD.items() if values}
"""One wrong value for each option."""

FORM = {"type": "json_schema", "schema": {"type": "object"}}

ANYTHING = {"deps"}
"""Options that may be anything at all."""

STARTERS: list[Case] = [
    Case("prompt", lambda to: steersman.query("", transport=to)),
    Case("prompt", lambda to: steersman.query(b"bytes", transport=to)),  # type: ignore[arg-type]
    Case("prompt", lambda to: steersman.run("  ", transport=to)),
    Case("prompt[0]", lambda to: steersman.run(["text"], transport=to)),  # type: ignore[list-item]
    Case("output", lambda to: steersman.run("hi", output=3, transport=to)),  # type: ignore[call-overload]
    Case("options", lambda to: steersman.query("hi", options="fast", transport=to)),  # type: ignore[arg-type]
    Case("modle", lambda to: steersman.query("hi", modle="sonnet", transport=to)),  # type: ignore[call-arg]
    Case("transport", lambda _: steersman.query("hi", transport="ssh")),  # type: ignore[arg-type]
    Case("transport", lambda _: Agent(transport="ssh")),  # type: ignore[arg-type]
    Case("options", lambda _: Agent({"model": "sonnet"})),  # type: ignore[arg-type]
    Case("prompt", lambda to: Agent(transport=to).start(0)),  # type: ignore[arg-type]
    Case("prompt", lambda to: Agent(transport=to).query(None)),  # type: ignore[arg-type]
    Case("prompt", lambda to: Agent(transport=to).run(None)),  # type: ignore[call-overload]
    Case("max_turns", lambda to: Agent(transport=to).session(max_turns=-1)),
    Case("max_turns", lambda to: Agent(transport=to).start("hi", max_turns=-1)),
    Case("functions[0]", lambda to: Agent(functions=[1], transport=to)),  # type: ignore[list-item]
    Case("handler", lambda to: Agent(functions=[generator], transport=to)),
    Case("mcp_servers key", lambda to: Agent(mcp_servers={"a b": {"command": "x"}}, transport=to)),
    Case("allowed_tools[0]", lambda to: Agent(allowed_tools=["Read,Bash"], transport=to)),
    Case(
        "extra_args['input-format']",
        lambda to: Agent(extra_args={"input-format": "x"}, transport=to),
    ),
    Case("key", lambda to: Agent(transport=to).open("")),
    Case("key", lambda to: Agent(transport=to).open(5)),  # type: ignore[arg-type]
    Case("resume", lambda to: Agent(transport=to).open("k", resume=UUID)),
    Case("session_id", lambda to: Agent(transport=to).open("k", session_id=UUID)),
    Case(
        "continue_conversation",
        lambda to: Agent(transport=to).open("k", continue_conversation=True),
    ),
    Case("output_format", lambda to: Agent(transport=to).run("x", output=int, output_format=FORM)),
    Case("output_format", lambda to: steersman.run("x", output=int, output_format=FORM)),
    Case("modle", lambda _: Options().replace(modle="x")),  # type: ignore[call-arg]
    Case("max_turns", lambda _: Options().replace(max_turns=-1)),
    Case("allowed_tools", lambda _: Options().replace(allowed_tools="Read")),
    Case("missing", lambda to: Agent(transport=to).open("a", missing="ignore")),  # type: ignore[arg-type]
    Case("startup.spawn", lambda _: StartupLimits(spawn=0)),
    Case("watchdog.tool", lambda _: Watchdog(tool=-1)),
    Case("watchdog.interrupt", lambda _: Watchdog(interrupt=None)),  # type: ignore[arg-type]
    Case("limits.usd", lambda _: Caps(usd=0)),
    Case("limits.turn", lambda _: Limits(turn=5)),  # type: ignore[arg-type]
    Case("limits.warn_at", lambda _: Limits(warn_at=2)),
    Case("limits.is_hard", lambda _: Limits(is_hard=1)),  # type: ignore[arg-type]
    Case("revive.most", lambda _: Revival(most=-1)),
    Case("revive.backoff", lambda _: Revival(backoff=-1)),
    Case("park.after", lambda _: Park(after=0)),
    Case("park.grace", lambda _: Park(grace=-1)),
    Case("park.lease", lambda _: Park(lease=0)),
    Case("event", lambda _: Hooks().on("PreToolUse")),  # type: ignore[arg-type]
    Case("matcher", lambda _: Hooks().on(PreToolUse, 1)),  # type: ignore[arg-type]
    Case("timeout", lambda _: Hooks().on(PreToolUse, timeout=-1)),
    Case("callback", lambda _: Hooks().on(PreToolUse)("print")),  # type: ignore[arg-type]
    Case("python", lambda _: SubprocessTransport(python=5)),  # type: ignore[arg-type]
    Case("prefix", lambda _: CommandTransport("ssh host")),  # type: ignore[arg-type]
    Case("prefix", lambda _: CommandTransport(())),
    Case("explicit", lambda _: locate(5)),  # type: ignore[arg-type]
    Case("updated_input", lambda _: Allow(5)),  # type: ignore[arg-type]
    Case("message", lambda _: Deny(5)),  # type: ignore[arg-type]
    Case("read_only", lambda _: tool("a", "b", {}, read_only="x")(print)),  # type: ignore[call-overload]
    Case("input_schema", lambda _: tool("a", "b", 5)(print)),  # type: ignore[call-overload]
    Case("handler", lambda _: tool(5)),  # type: ignore[call-overload]
    Case("name", lambda _: tool("no spaces", "x", {})(print)),
    Case("timeout", lambda _: tool(timeout=0)(print)),
    Case("timeout", lambda _: tool(timeout="5")(print)),  # type: ignore[call-overload]
    Case("max_concurrency", lambda _: tool(max_concurrency=0)(print)),
    Case("max_concurrency", lambda _: tool(max_concurrency=1.5)(print)),  # type: ignore[call-overload]
    Case("tools", lambda _: Toolbox("box", [1])),  # type: ignore[list-item]
    Case("name", lambda _: Toolbox("")),
    Case("heartbeat", lambda _: Toolbox("box", heartbeat=0)),
    Case("stall_after", lambda _: Toolbox("box", stall_after=-1)),
    Case("explain", lambda _: Toolbox("box", explain="no")),  # type: ignore[arg-type]
    Case("uri", lambda _: Resource("today", "text")),
    Case("uri", lambda _: Resource(5, "text")),  # type: ignore[arg-type]
    Case("content", lambda _: Resource("note://today", 5)),  # type: ignore[arg-type]
    Case("name", lambda _: Prompt("", "about", print)),
    Case("description", lambda _: Prompt("a", None, print)),  # type: ignore[arg-type]
    Case("function", lambda _: Prompt("a", "about", "print")),  # type: ignore[arg-type]
    Case("config", lambda _: RemoteTools("x")),  # type: ignore[arg-type]
    Case("config", lambda _: RemoteTools({})),
    Case("limits", lambda _: RemoteTools({"command": "x"}, limits=5)),  # type: ignore[arg-type]
    Case("tools", lambda _: RemoteTools({"command": "x"}, tools=5)),  # type: ignore[arg-type]
    Case("rename", lambda _: RemoteTools({"command": "x"}, rename=5)),  # type: ignore[arg-type]
    Case("on_call", lambda _: RemoteTools({"command": "x"}, on_call=5)),  # type: ignore[arg-type]
    Case("text", lambda _: Policy.from_toml(5)),  # type: ignore[arg-type]
    Case("text", lambda _: Policy.from_toml("[[")),
    Case("policy key", lambda _: Policy.from_toml("colour = 1")),
    Case("rules[0].allow", lambda _: Policy.from_toml("[[rules]]\nallow = 5")),
    Case("otherwise", lambda _: Policy(otherwise="maybe")),  # type: ignore[arg-type]
    Case("remember", lambda _: Policy(remember=True)),  # type: ignore[arg-type]
    Case("can_use_tool", lambda _: Agent(can_use_tool=two)),  # type: ignore[arg-type]
    Case("on_question", lambda _: Agent(on_question=two)),  # type: ignore[arg-type]
    Case("on_elicitation", lambda _: Agent(on_elicitation=two)),  # type: ignore[arg-type]
    Case("on_user_dialog", lambda _: Agent(on_user_dialog=two)),  # type: ignore[arg-type]
    Case("stderr", lambda _: Agent(stderr=two)),  # type: ignore[arg-type]
    Case("callback", lambda _: Hooks().on(PreToolUse)(two)),  # type: ignore[arg-type]
    Case("hooks['Stop']", lambda _: Agent(hooks={"Stop": two})),
    Case("hooks['Stop']", lambda _: Agent(hooks={Stop: [HookMatcher(hooks=[two])]})),
    Case("check", lambda _: validate(lambda name: True)),  # type: ignore[arg-type, misc]
    Case("look", lambda _: log(two)),  # type: ignore[arg-type]
    Case("when", lambda _: allow("Read", when=two)),  # type: ignore[arg-type]
    Case("explain", lambda _: Toolbox("box", explain=two)),  # type: ignore[arg-type]
    Case("on_call", lambda _: RemoteTools({"command": "x"}, on_call=two)),  # type: ignore[arg-type]
    Case("rename", lambda _: RemoteTools({"command": "x"}, rename=two)),  # type: ignore[arg-type]
    Case("because", lambda _: allow("Read", because=5)),  # type: ignore[arg-type]
    Case("when", lambda _: allow("Read", when=5)),  # type: ignore[arg-type]
    Case("agents", lambda _: allow("Read", agents=5)),  # type: ignore[arg-type]
    Case("becuase", lambda _: allow("Read", becuase="x")),  # type: ignore[call-arg]
    Case("expires_after", lambda _: Inbox(expires_after=0)),
    Case("answer", lambda _: asked().answer("q", "yes")),
    Case("by", lambda _: asked().answer("q", Allow(), by="")),
    Case("to", lambda _: asked().delegate("q", "")),
    Case("words", lambda _: prompts.text(" ")),
    Case("source", lambda _: prompts.image(5)),  # type: ignore[arg-type]
    Case("source", lambda _: prompts.image(b"no image")),
    Case("source", lambda _: prompts.image("/no/such/file.png")),
    Case("media_type", lambda _: prompts.image(b"\x89PNG\r\n\x1a\n", "image/tiff")),
    Case("source", lambda _: prompts.document(b"no pdf")),
    Case("path", lambda _: prompts.file("/no/such/file.txt")),
    Case("line", lambda _: parse_message(b"[]")),
]

SESSION: list[Case] = [
    Case("prompt", lambda session: session.send(None)),
    Case("prompt", lambda session: session.send(5)),
    Case("prompt[0]", lambda session: session.send([{}])),
    Case("prompt[0]['text']", lambda session: session.send([{"type": "text", "text": len}])),
    Case("query", lambda session: session.send("hi", query=3)),
    Case("when", lambda session: session.send("hi", when="soon")),
    Case("when", lambda session: session.send("hi", when=["now"])),
    Case("key", lambda session: session.send("hi", key="")),
    Case("key", lambda session: session.send("hi", key=5)),
    Case("hard", lambda session: session.pause(hard="very")),
    Case("event", lambda session: session.on("sneeze", print)),
    Case("listener", lambda session: session.on("complete", "print")),
    Case("listener", lambda session: session.on("complete", two)),
    Case("listener", lambda session: session.on("complete")(two)),
    Case("timeout", lambda session: session.wait_idle(0)),
    Case("timeout", lambda session: session.wait_idle("soon")),
    Case("timeout", lambda session: session.wait_idle(None)),
    Case("timeout", lambda session: session.finish(-1)),
    Case("checkpoint", lambda session: session.rewind("there")),
    Case("checkpoint", lambda session: session.checkpoint()),
    Case("turn", lambda session: session.withdraw("it")),
    Case("servers", lambda session: session.mcp_set_servers("x")),
    Case("servers key", lambda session: session.mcp_set_servers({"a b": {"command": "x"}})),
    Case("server_name", lambda session: session.mcp_reconnect("")),
    Case("enabled", lambda session: session.mcp_toggle("a", enabled="yes")),
    Case("task_id", lambda session: session.stop_task("")),
    Case("user_message_id", lambda session: session.rewind_files("")),
    Case("max_turns", lambda session: session.fork(max_turns=-1)),
    Case("transport", lambda session: session.fork(transport=None)),
    Case("resume", lambda session: session.fork(resume=UUID)),
    Case("continue_conversation", lambda session: session.fork(continue_conversation=True)),
    Case("fork_session", lambda session: session.fork(fork_session=False)),
    Case("text", lambda session: session.command("compact")),
    Case("turn", lambda session: session.interrupt(turn=5)),
    Case("also_queued", lambda session: session.interrupt(also_queued="all")),
    Case("verb", lambda session: session.call("interrupt")),
    Case("timeout", lambda session: session.call(SetModel(model="x"), timeout=0)),
    Case("model", lambda session: session.call(SetModel(model=5))),  # type: ignore[arg-type]
    Case("subtype", lambda session: session.control("")),
    Case("timeout", lambda session: session.control("mcp_status", timeout=-1)),
    Case("fields['bad']", lambda session: session.control("mcp_status", bad=len)),
    Case("mode", lambda session: session.set_permission_mode(None)),
    Case("model", lambda session: session.set_model("")),
    Case("mode", lambda session: session.set_permission_mode("yolo")),
    Case("after", lambda session: session.messages(after=-1)),
    Case("after", lambda session: session.journal(after="now")),
    Case("after", lambda session: session.raw(after=None)),
]


BADLY_PUT = (
    r"got '(an? \w{2,}|not \w+|no turn|another |other |JSON )",
    r"\ba (NoneType|[aeio]\w+type\b|int\b)",
    r"got (<function|<bound method)",
    r"What to do: .*(What to do|, allowed: )",
)
"""A description in quotes, a wrong article, an address in memory, a hint that repeats the error."""


def reads_badly(error: UsageError) -> list[str]:
    return [each for each in BADLY_PUT if re.search(each, str(error), re.DOTALL)]


async def do(deed: Deed, given: object) -> None:
    done = deed(given)
    if inspect.isawaitable(done):
        await done


async def sent(session: Session) -> list[bytes]:
    """Every line to the CLI so far."""
    last, lines = session.last_seq, list[bytes]()
    async for entry in session.journal():
        if isinstance(entry, Entry) and entry.kind is Kind.SENT:
            lines.append(entry.line)
        if isinstance(entry, Entry) and entry.seq >= last:
            break
    return lines


@pytest.fixture
async def session() -> AsyncIterator[Session]:
    async with asyncio.timeout(10), Agent(transport=ScriptedCLI(Script())).session() as session:
        yield session


@pytest.mark.parametrize("name", OPTIONS)
def test_a_wrong_option_is_named(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        Agent(transport=Nowhere(), **{name: OPTIONS[name]})

    assert caught.value.argument.startswith(name)
    assert not reads_badly(caught.value)


def test_no_option_is_left_out_of_this_table() -> None:
    assert set(OPTIONS) | ANYTHING == set(Options.__dataclass_fields__)


@pytest.mark.parametrize("case", STARTERS, ids=lambda case: case.argument)
async def test_what_starts_something_refuses_bad_input_first(case: Case) -> None:
    with pytest.raises(UsageError) as caught:
        await do(case.deed, Nowhere())

    assert caught.value.argument == case.argument
    assert case.argument in str(caught.value)
    assert caught.value.allowed
    assert not reads_badly(caught.value)


@pytest.mark.parametrize("case", SESSION, ids=lambda case: case.argument)
async def test_a_session_refuses_bad_input_without_a_word_to_the_cli(
    case: Case, session: Session
) -> None:
    before = await sent(session)

    with pytest.raises(UsageError) as caught:
        await do(case.deed, session)

    assert caught.value.argument == case.argument
    assert not reads_badly(caught.value)
    assert await sent(session) == before
