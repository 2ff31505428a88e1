"""No background task of ours dies unseen.

A task is awaited by the function that begins it, or supervised by `steersman._background`, or
stands below with the reason why neither is needed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.house.words import modules

SUPERVISOR = "_background.py"
BEGINNERS = {"Task", "create_task", "ensure_future", "run_coroutine_threadsafe"}
GROUPS = {"TaskGroup", "create_task_group"}

Function = ast.FunctionDef | ast.AsyncFunctionDef

CATCHES = "it catches every error, and reports or returns it"
SETTLES = "a callback takes its end, also an error, and settles what waits for it"

REASONS = {
    "_portal/home_thread.py::_Life.begin": CATCHES,
    "_portal/portal.py::LoopThread.close.end": "it ends the loop that it runs in",
    "_portal/portal.py::Trip.begin": CATCHES,
    "_session/lifecycle.py::Lifecycle._end": "`SessionEnd` hooks report their own errors",
    "_session/lifecycle.py::Lifecycle._finish": "it ends the session in any case",
    "_session/lifecycle.py::Lifecycle._replace": SETTLES,
    "_session/listeners.py::_ListenerQueue.put": CATCHES,
    "_session/query_prompts.py::QueryPrompts.feed": "the end of the query raises its error",
    "_session/requests/hooks.py::HookRunner._begin": CATCHES,
    "_session/requests/tasks.py::_at_once.begin": CATCHES,
    "_session/requests/tasks.py::_later": CATCHES,
    "_session/usage_limits.py::UsageLimiter._stop": "the next message over the limit tries again",
    "_session/watchdog.py::SilenceWatchdog._stalled": "the next silence tries again",
    "cli/chat.py::Chat._begin": "the program ends with the chat, and its work prints its errors",
    "cli/run.py::_interruptible.pressed": "the program ends with the turn that it interrupts",
    "compat/_conversation.py::Conversation.feed": CATCHES,
    "compat/_conversation.py::Conversation.run_text": CATCHES,
    "compat/_trio.py::_Call.begin": SETTLES,
    "compat/transport.py::_CustomChannel._end": CATCHES,
    "compat/transport.py::_CustomChannel._start": CATCHES,
    "durable/parking.py::DurableParking.begin": CATCHES,
    "fleet/queue.py::JobQueue.add": "it is a job: an error is its result",
    "fleet/slots.py::Slots._spawn": "a segment settles its job with its error; all else catches",
    "sessions/driving.py::begin_in_private_loop": "a store that was dropped is closed: as below",
    "sync/items.py::Items.__del__": "an iterator that was dropped is closed; nothing waits for it",
    "testing/scripted/hooks.py::HookRunner.permit": "it ends with the request that it watches",
    "testing/scripted/turn.py::_Batch.start": "its task group awaits it",
    "testing/__main__.py::SharedStage.stall": "it ends with the stall that it watches",
    "testing/scripted/turn_loop.py::Tasks.start": SETTLES,
    "tools/_mcp/peer.py::McpConnection.__init__": CATCHES,
    "tools/_mcp/peer.py::McpConnection.run_in_background": SETTLES,
    "tools/_mcp/stdio.py::open_stdio": "it is awaited at once, shielded",
    "web/live.py::LiveConnection._do": CATCHES,
}
"""What is begun and left alone, and why it cannot die unseen."""


def name_of(node: ast.expr) -> str:
    """The last word of `x`, `a.x` and `self.x`."""
    return getattr(node, "id", "") or getattr(node, "attr", "")


def names_in(node: ast.AST) -> set[str]:
    return {name_of(each) for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute)}


def own_nodes(function: Function) -> Iterator[ast.AST]:
    """What a function does itself, without the functions that are defined in it."""
    left: list[ast.AST] = [*function.body]
    while left:
        node = left.pop()
        if not isinstance(node, Function | ast.ClassDef):
            yield node
            left.extend(ast.iter_child_nodes(node))


def awaited_in(function: Function) -> set[str]:
    """The names in what a function awaits."""
    found: set[str] = set()
    for node in own_nodes(function):
        if isinstance(node, ast.Await):
            found |= names_in(node.value)
    return found


def kept_as(function: Function, call: ast.Call) -> set[str]:
    """The names under which a function keeps what a call returns."""
    found: set[str] = set()
    for node in own_nodes(function):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign | ast.AugAssign):
            targets = [node.target]
        if targets and any(each is call for each in ast.walk(node)):
            found |= {name_of(each) for each in targets}
    return found - {""}


def functions_of(tree: ast.AST, within: str = "") -> Iterator[tuple[str, Function]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | Function):
            name = f"{within}.{node.name}".strip(".")
            if isinstance(node, Function):
                yield name, node
            yield from functions_of(node, name)
        else:
            yield from functions_of(node, within)


def begins(called: ast.expr) -> bool:
    """Whether a call of this begins a task; a `Task` of our own, without `asyncio`, does not."""
    if isinstance(called, ast.Name):
        return called.id in BEGINNERS - {"Task"}
    return isinstance(called, ast.Attribute) and called.attr in BEGINNERS


def left_alone(path: str, tree: ast.AST) -> list[str]:
    """The functions that begin a task and do not await it, as `path::function`."""
    found: list[str] = []
    for name, function in functions_of(tree):
        awaited = awaited_in(function)
        groups = {
            name_of(item.optional_vars)
            for node in own_nodes(function)
            if isinstance(node, ast.AsyncWith)
            for item in node.items
            if item.optional_vars is not None and names_in(item.context_expr) & GROUPS
        }
        for node in own_nodes(function):
            if not isinstance(node, ast.Call) or not begins(node.func):
                continue
            in_group = isinstance(node.func, ast.Attribute) and name_of(node.func.value) in groups
            if not in_group and not kept_as(function, node) & awaited:
                found.append(f"{path}::{name}")
    return sorted(set(found))


def test_every_task_is_awaited_or_supervised_or_stands_in_the_list_with_a_reason() -> None:
    found = [
        each
        for module in modules()
        if module.path != SUPERVISOR
        for each in left_alone(module.path, module.tree)
    ]

    assert found == sorted(REASONS)


EXAMPLE = """
async def waits():
    task = asyncio.create_task(work())
    await asyncio.wait({task})

async def groups():
    async with asyncio.TaskGroup() as group:
        group.create_task(work())

class Owner:
    async def forgets(self):
        self._task = asyncio.ensure_future(work())

    async def is_awaited_by_another(self):
        task = asyncio.Task(work())
        async def other():
            await task
"""


def test_only_what_is_awaited_by_its_own_function_is_taken_as_awaited() -> None:
    assert left_alone("x.py", ast.parse(EXAMPLE)) == [
        "x.py::Owner.forgets",
        "x.py::Owner.is_awaited_by_another",
    ]
