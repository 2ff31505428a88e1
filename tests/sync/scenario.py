"""One program of synchronous code, for every place in which such code runs.

`python -m tests.sync.scenario` prints what it found, as JSON. It needs no process of its own: the
CLI is scripted.
"""

from __future__ import annotations

import contextvars
import json
import sys
from typing import Any

from steersman import Assistant
from steersman.hooks import Hooks, PreToolUse
from steersman.sync import Agent
from steersman.testing.script import Script, call, say
from steersman.testing.scripted.cli import ScriptedCLI

WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")

EXPECTED: dict[str, Any] = {
    "text": "It is 5.",
    "chunks": 3,
    "outcome": "completed",
    "who": "caller",
    "asked within the tool": "Echo: 2 + 3?",
    "state within the hook": True,
    "messages": ["Init", "Assistant", "User", "Assistant", "Result"],
    "same turn": True,
    "phase": "completed",
    "query": "Echo: again",
}


def scenario() -> dict[str, Any]:
    """Run a session with a tool and a hook that use `steersman.sync` themselves."""
    found: dict[str, Any] = {}
    hooks = Hooks()

    def add(a: int, b: int) -> str:
        """Add two numbers."""
        found["who"] = WHO.get()
        other = Agent(transport=ScriptedCLI())
        found["asked within the tool"] = other.run(f"{a} + {b}?").text
        return str(a + b)

    @hooks.on(PreToolUse)
    def look(event: PreToolUse) -> None:
        found["state within the hook"] = session.snapshot().session_id == session.id

    script = Script(call("mcp__functions__add", a=2, b=3), say("It is 5.", chunks=3))
    agent = Agent(functions=[add], hooks=hooks, transport=ScriptedCLI(script))
    WHO.set("caller")
    with agent.session() as session:
        turn = session.send("What is 2 + 3?")
        chunks = list(turn.text())
        result = turn.result(timeout=30)
        found["messages"] = [type(each).__name__ for each in turn]
        found["same turn"] = session.turn(turn.uuid) is turn is session.turns[-1]
    found |= {"text": "".join(chunks), "chunks": len(chunks), "outcome": result.outcome}
    found["phase"] = str(session.phase)
    for message in Agent(transport=ScriptedCLI()).query("again"):
        if isinstance(message, Assistant):
            found["query"] = message.text
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(scenario()))
