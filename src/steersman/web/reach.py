"""Whether agents could read what a bridge keeps: a tool reads below its directories unasked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from steersman.agent import Agent
from steersman.errors import UsageError


def check_out_of_reach(agents: Mapping[str, Agent], places: Mapping[str, Path]) -> None:
    """Raise `UsageError` if a file lies inside a directory of an agent.

    `places` are the files and directories of the bridge, by the argument that names them. The
    stores of the agents are checked too, each for all agents.
    """
    kept = [*places.items(), *(each for agent in agents.values() for each in _stores_of(agent))]
    for name, agent in agents.items():
        for root in _roots_of(agent):
            for argument, place in kept:
                if _is_inside(place, root):
                    allowed = (
                        f"a path outside of {str(root)!r}, which agent {name!r} reads without "
                        "asking: all sessions are in it"
                    )
                    hint = "move it, or give the agent a directory of its own: Agent(cwd=...)"
                    raise UsageError(argument, str(place), allowed, hint=hint)


def _roots_of(agent: Agent) -> Iterator[Path]:
    yield Path(agent.options.cwd or ".").absolute()
    for each in agent.options.add_dirs:
        yield Path(agent.options.cwd or ".", each).absolute()


def _stores_of(agent: Agent) -> Iterator[tuple[str, Path]]:
    kept: list[tuple[str, object]] = [("session_store", agent.options.session_store)]
    for argument, each in [*kept, *(("sinks", each) for each in agent.options.sinks or ())]:
        path = getattr(each, "path", None)
        if isinstance(path, str | Path):
            yield argument, Path(path).absolute()


def _is_inside(place: Path, root: Path) -> bool:
    """Whether `place` is `root` or below it, under whatever names; either may not be there yet."""
    found = place.resolve()
    return any(_is_same(each, root.resolve()) for each in (found, *found.parents))


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one == other or one.samefile(other)
    except OSError:
        return False
