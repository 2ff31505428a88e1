"""What callers may not write. mypy and pyright read this file, and mark every line that ends in
`# refused` and no other; it is not run. `test_typing.py` writes the same mistakes into every
signature that takes options.
"""

from __future__ import annotations

from typing import Any

from steersman import Agent, Options, Session
from steersman.options import OptionKwargs
from steersman.permissions import allow, ask, deny

OPTIONS = Options()
SOURCES: list[str] = ["user"]
TEXTS: dict[str, str] = {"model": "opus"}
ANYTHING: dict[str, Any] = {}

# A name or a value that no other signature has
Agent("fast")  # refused
Agent({"model": "opus"})  # refused
Agent(**TEXTS)  # refused
Agent(**ANYTHING)
Agent(setting_sources=SOURCES)  # refused
OPTIONS.model = "opus"  # refused
OPTIONS.allowed_tools.append("Read")  # refused
words: OptionKwargs = {"modle": "opus"}  # refused
other: OptionKwargs = {"model": "opus", "max_turns": "3"}  # refused

# The rules of a policy
allow("Read", becuase="x")  # refused
allow("Read", because=5)  # refused
deny("Read", when=5)  # refused
deny("Read", when=lambda: True)  # refused
deny("Read", agents=5)  # refused
ask("Read", agents=[5])  # refused
ask(5)  # refused


async def programs(agent: Agent, session: Session) -> None:
    await agent.open("key", missing="ignore")  # refused
    await agent.run("x", output=3)  # refused
    session.fork(transport=None)  # refused
