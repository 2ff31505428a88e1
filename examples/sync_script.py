"""A plain script, without `async` and `await`: a conversation, a tool, a hook, and ctrl-c.

Run it with `python examples/sync_script.py "a question about the shop"`; it uses your own login.
"""

from __future__ import annotations

import sys

from steersman.hooks import Hooks, PreToolUse, Reply, deny
from steersman.journal import TurnResult
from steersman.sync import Agent

PRICES = {"apple": 0.4, "bread": 2.5}

hooks = Hooks()


@hooks.on(PreToolUse, "Bash")
def no_deletion(event: PreToolUse) -> Reply | None:
    """Deny commands that delete files; a plain function, which runs in a thread of its own."""
    command = str(event.tool_input.get("command", ""))
    return deny("This script deletes nothing.") if "rm " in command else None


def price(item: str) -> str:
    """Return the price of an item in our shop."""
    return f"{PRICES[item]} EUR" if item in PRICES else "not sold here"


def ask(agent: Agent, question: str) -> TurnResult:
    """Print the answer as it is written; ctrl-c stops the turn, and `with` ends the CLI."""
    with agent.session() as session:
        turn = session.send(question)
        for chunk in turn.text():
            print(chunk, end="", flush=True)
        result = turn.result(timeout=60)
        print(f"\n[{result.outcome}, {session.cost_usd:.4f} USD]")
    return result


if __name__ == "__main__":
    ask(Agent(functions=[price], hooks=hooks), " ".join(sys.argv[1:]) or "What does bread cost?")
