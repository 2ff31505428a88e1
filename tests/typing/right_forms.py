"""What callers may write. mypy and pyright read this file, and must mark nothing; it is not run."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from mcp.server.mcpserver import MCPServer

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
    ToolContext,
    tool,
)
from steersman.hooks import HookMatcher, PreToolUse, Reply, Stop
from steersman.options import (
    AgentDefinition,
    Caps,
    HttpServer,
    Limits,
    OptionKwargs,
    Park,
    Plugin,
    Revival,
    StartupLimits,
    StdioServer,
    ThinkingConfig,
    Watchdog,
)
from steersman.permissions import (
    DialogAnswer,
    Elicitation,
    ElicitationAnswer,
    PermissionContext,
    QuestionAnswer,
    QuestionAsk,
    ToolCall,
    UserDialog,
    allow,
    ask,
    deny,
)
from steersman.stores import JournalFile
from steersman.testing.plugin import MakeAgent
from steersman.testing.scripted.stage import Faults
from steersman.tools.mcp_remote import RemoteTools


def add(a: int, b: int) -> int:
    return a + b


async def subtract(a: int, b: int, context: ToolContext) -> int:
    return a - b


@tool(read_only=True)
def count(item: str) -> int:
    return len(item)


class Calculator:
    def __call__(self, a: int) -> int:
        return a


def decide(name: str, given: dict[str, Any], context: PermissionContext) -> Allow | Deny:
    return Allow() if name == "Read" else Deny("no")


async def decide_later(name: str, given: dict[str, Any], context: PermissionContext) -> Allow:
    return Allow()


def decide_maybe(
    name: str, given: dict[str, Any], context: PermissionContext
) -> Allow | Awaitable[Allow | None] | None:
    return None


def answer(asked: QuestionAsk) -> list[QuestionAnswer]:
    return [each.answer(each.options[0].label) for each in asked.questions]


async def fill_in(elicitation: Elicitation) -> ElicitationAnswer:
    return ElicitationAnswer("decline")


async def show(dialog: UserDialog) -> DialogAnswer:
    raise NotImplementedError


def guard(event: PreToolUse) -> Reply | None:
    return None


async def log_it(event: Stop) -> None:
    return None


async def official(given: dict[str, Any], tool_use_id: str | None, context: Any) -> dict[str, Any]:
    return {}


def play(given: dict[str, Any]) -> str:
    return "played"


def is_long(call: ToolCall) -> bool:
    return len(call.tool) > 20


server = MCPServer("shop")
by_name = {"PreToolUse": [HookMatcher(matcher="Bash", hooks=[guard])], "Stop": [HookMatcher()]}
by_class = {PreToolUse: guard}
config: dict[str, Any] = {"command": "run-it", "args": ["-y"]}
stdio: StdioServer = {"command": "run-it", "args": ["-y"], "env": {"A": "b"}}
http: HttpServer = {"type": "http", "url": "https://x.example", "headers": {"A": "b"}}
rules = ["Read", "Bash(git log:*)"]
thinking: ThinkingConfig = {"type": "enabled", "budget_tokens": 2000}

# Lists and tuples, paths and texts
Agent(model="sonnet", fallback_model=["haiku"], effort="low", max_turns=20)
Agent(allowed_tools=["Read"], disallowed_tools=("Bash",), betas=[])
Agent(allowed_tools=rules, tools=tuple(rules), skills=["mine"])
Agent(skills="all", tools=[], require=True, inherit_env=["A", "B_*"])
Agent(require=["calc"], inherit_env=False, setting_sources=["user", "project"])
Agent(setting_sources=("local",), add_dirs=["/x", Path("y")], cwd=".", cli_path=Path("claude"))
Agent(cwd=Path.cwd(), debug="hooks,mcp", debug_file="x.log", settings=Path("settings.json"))
Agent(settings={"a": 1}, managed_settings={}, extra_args={"flag": None, "other": "x"})
Agent(env={"A": "b"}, max_budget_usd=5, request_timeout=1, stderr=sys.stderr.write)
Agent(model=None, system_prompt=["One.", "Two."], append_system_prompt="More.")

# Mappings with names for their keys, and plain ones
Agent(system_prompt={"type": "preset", "preset": "claude_code", "append": "Be brief."})
Agent(system_prompt={"type": "file", "path": "prompt.md"}, task_budget={"total": 5000})
Agent(thinking={"type": "adaptive", "display": "omitted"}, tools={"type": "preset", "new": 1})
Agent(thinking=thinking, output_format={"type": "json_schema", "schema": {"type": "object"}})
Agent(sandbox={"enabled": True, "network": {"allowedDomains": ["x.example"]}, "new": 1})
Agent(tool_config={"askUserQuestion": {"previewFormat": "html"}}, tool_aliases={"A": "B"})
Agent(agents={"a": AgentDefinition(description="d", prompt="p"), "b": {"description": "d"}})
Agent(plugins=["/x", Path("y"), Plugin("/z"), {"type": "local", "path": "/x"}])

# Tools and servers
Agent(functions=[add, subtract, count, Calculator(), len, print])
Agent(mcp_servers={"shop": server, "box": Toolbox("box", [add]), "far": RemoteTools(http)})
Agent(mcp_servers={"a": config, "b": stdio, "c": http, "d": {"type": "sse", "url": "http://x"}})
Agent(mcp_servers={"shop": server}, strict_mcp_config=False)
Agent(mcp_servers="servers.json")

# Callbacks, plain and async
Agent(can_use_tool=decide, on_question=answer, on_elicitation=fill_in, on_user_dialog=show)
Agent(can_use_tool=decide_later, ask_every_call=True)
Agent(can_use_tool=lambda _name, _given, _context: Allow(), inbox=Inbox(), deps=object())
Agent(can_use_tool=decide_maybe, permission_mode="acceptEdits", permission_prompts="host")
Agent(policy=Policy(deny("Bash", when=is_long, because="x"), ask("Edit", agents="main")))
Agent(policy=Policy(allow("Read", agents=["a", "b"], when=lambda call: call.tool == "Read")))

# Hooks
Agent(hooks=Hooks())
Agent(hooks={"PreToolUse": [HookMatcher(matcher="Bash", hooks=[guard])], "Stop": log_it})
Agent(hooks={PreToolUse: guard, Stop: [log_it]})
Agent(hooks={PreToolUse: guard, "Stop": [log_it, official]})
Agent(hooks=by_name)
Agent(hooks=by_class)
Agent(hooks={"PreToolUse": [{"matcher": "Bash", "hooks": [official], "timeout": 5}]})

# What steersman does
Agent(startup=StartupLimits(spawn=1), watchdog=None, limits=Limits(turn=Caps(usd=1)))
Agent(watchdog=Watchdog(tool=None), revive=Revival(most=1), park=Park(after=1), close_grace=0)
Agent(journal=JournalFile("x.jsonl"), sinks=[JournalFile("y.jsonl")], flight_recorder="bundles")
Agent(journal=Path("x.jsonl"), revive=False, session_id=None, resume="a name")

# Options as a value, and words of one's own
base = Options(allowed_tools=["Read"], hooks={"Stop": log_it})
kept: tuple[str, ...] = base.allowed_tools
hooks: Hooks = base.hooks
changed: Options = base.replace(allowed_tools=["Edit"], model="opus")
Agent(base, model="haiku")
anything: dict[str, Any] = {"model": "opus"}
Agent(**anything)
words: OptionKwargs = {"model": "opus", "allowed_tools": ["Read"]}
Agent(base, **words)
more: OptionKwargs = {**words, "effort": "max"}


class MyWords(TypedDict, total=False):
    model: str
    max_turns: int


mine: MyWords = {"model": "opus"}
Agent(**mine)


def make(**options: Unpack[OptionKwargs]) -> Agent:
    return Agent(**options)


async def programs(session: Session, servers: Mapping[str, StdioServer]) -> None:
    agent = make(model="opus")
    agent.session(permission_mode="plan", mcp_servers=servers)
    await agent.start("hi", allowed_tools=["Read"])
    await agent.open("key", missing="fail", max_turns=3)
    async for _ in agent.query("hi", cwd=Path("x")):
        break
    async for _ in steersman.query("hi", options=base, hooks=by_name):
        break
    await steersman.run("hi", allowed_tools=("Read",))
    session.fork(model="haiku")


def fixtures_take_options(scripted_agent: MakeAgent, live_cli: MakeAgent) -> None:
    scripted_agent(functions=[add], tools={"Bash": play}, faults=Faults())
    scripted_agent(options=base, tools=[], complete=False)
    live_cli(model="sonnet", env={"A": "b"})


def takes_any_sequence(names: Sequence[str]) -> Agent:
    return Agent(allowed_tools=names)
