"""Records `session_files.tar.xz`: thirty sessions that the stock CLI wrote, on the scripted model.

    python -m tests.sessions.record

Five shapes of conversations, six times, with other texts, titles and lengths.
"""

from __future__ import annotations

import asyncio
import io
import tarfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from steersman import Agent, Session
from steersman.control import RenameSession
from steersman.options import AgentDefinition
from steersman.testing.model import ScriptedModel
from steersman.testing.sandbox import CliSandbox, find_stock_cli
from steersman.testing.script import Script, Step, call, calls, say, think

DATA = Path(__file__).parent / "session_files.tar.xz"
TIMES = 6
TASK = {"description": "look", "prompt": "sub go", "subagent_type": "reader"}


Shape = Callable[[Session, int], Awaitable[None]]


async def plain(session: Session, number: int) -> None:
    for turn in range(number + 1):
        await session.run(f'prompt {number} {turn} ünï ☂ "quoted" <tag>')


async def tools(session: Session, number: int) -> None:
    await session.run(f"call two tools {number}")
    await session.run("and go on")


async def titled(session: Session, number: int) -> None:
    await session.run(f"to be renamed {number}")
    await session.call(RenameSession(title=f"Title {number}"))
    await session.run("after the title")


async def compacted(session: Session, number: int) -> None:
    await session.run(f"before {number}")
    await (await session.command("/compact"))
    await session.run("after the compaction")


async def delegated(session: Session, number: int) -> None:
    await session.run(f"send someone {number}")


SHAPES: tuple[tuple[Shape, Callable[[int], list[Step]]], ...] = (
    (plain, lambda n: [think("hm") + say(f"answer {n}") for _ in range(n + 1)]),
    (
        tools,
        lambda n: [
            calls(
                call("Bash", command=f"echo one {n}"),
                call("Bash", command="echo two"),
                call("Bash", command="echo three"),
            ),
            say("called"),
            say("gone on"),
        ],
    ),
    (titled, lambda _: [say("one"), say("two")]),
    (compacted, lambda _: [say("one"), say("two")]),
    (delegated, lambda _: [call("Agent", TASK, run_in_background=False), say("they are back")]),
)


async def record() -> bytes:
    """Run thirty conversations, and return their files as an archive."""
    with CliSandbox() as box:
        for number in range(TIMES):
            for shape, steps in SHAPES:
                script = Script(*steps(number)).branch("sub go", say("sub done"))
                with ScriptedModel(script) as model:
                    agent = Agent(
                        inherit_env=False,
                        cwd=box.project,
                        cli_path=find_stock_cli(),
                        env=box.env(model.url),
                        allowed_tools=["Bash", "Agent"],
                        agents={"reader": AgentDefinition(description="r", prompt="read")},
                    )
                    async with asyncio.timeout(60), agent.session() as session:
                        await shape(session, number)
        return archive(box.config / "projects", str(box.root))


def archive(root: Path, secret: str) -> bytes:
    """Return the files below `root`, without the name of this machine's directory."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:xz", preset=9) as tar:
        for path in sorted(each for each in root.rglob("*") if each.is_file()):
            data = path.read_bytes().replace(secret.encode(), b"/sandbox")
            about = tarfile.TarInfo(
                str(path.relative_to(root).relative_to(next(root.iterdir()).name))
            )
            about.size = len(data)
            about.mtime = int(path.stat().st_mtime)
            tar.addfile(about, io.BytesIO(data))
    return made.getvalue()


if __name__ == "__main__":
    DATA.write_bytes(asyncio.run(record()))
