"""Section 12: the spellings by which a skill and an agent are found."""

from __future__ import annotations

from collections.abc import Iterable

from steersman._json import Json
from steersman.testing.script import call, calls, say, when
from steersman_conformance.checks import scene
from steersman_conformance.frames import part
from steersman_conformance.raw import RawCli
from steersman_conformance.stage import ASKING, MODE, STREAM_JSON, Stage

__all__ = ["AGENTS", "SCENES", "SKILLS"]

SKILLS: dict[str, bool] = {
    **dict.fromkeys(("deploy", "/deploy", " deploy", "deploy\n", " /deploy", "\u00a0deploy"), True),
    **dict.fromkeys(("\ufeffdeploy", "\u2028deploy", "Ship It", "/Ship It", "Ship It "), True),
    **dict.fromkeys(("//deploy", "Deploy", "/ deploy", "deploy/", "de-ploy", "deploy arg"), False),
    **dict.fromkeys(("\u200bdeploy", "./deploy", "project:deploy"), False),
}
"""Ways to write the skill `deploy`, whose title is `Ship It`, and whether the CLI runs it."""

AGENTS: dict[str, str] = {
    **dict.fromkeys(("", "Explore", "explore", " explore\n", "Ex-plore", "expl_ore"), "Explore"),
    **dict.fromkeys(("EXPL ORE", "\uff45xplore", "\u24d4xplore", "ex\u2014plore"), "Explore"),
    **dict.fromkeys(("explore.", "explore:", "Explor", "explor\u00ea", "explore\u200b"), ""),
    "": "general-purpose",
    "General_Purpose": "general-purpose",
}
"""Ways to write the type of an agent, and which one starts. The empty text is none at all."""


def _input_of(agent: str) -> dict[str, Json]:
    given: dict[str, Json] = {"description": "d", "prompt": "sub go", "run_in_background": False}
    return {**given, "subagent_type": agent} if agent else given


@scene
async def spellings_of_names(stage: Stage) -> RawCli:
    folder = stage.box.project / ".claude" / "skills" / "deploy"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: Ship It\ndescription: a skill\n---\nDo it.\n")
    skills = [call("Skill", {"skill": name}, id_=f"skill{n}") for n, name in enumerate(SKILLS)]
    agents = [call("Agent", _input_of(name), id_=f"agent{n}") for n, name in enumerate(AGENTS)]
    async with stage.cli(
        *(when("sub go", say("sub done")) for _ in agents),
        calls(*skills),
        calls(*agents),
        say("done"),
        argv=(*(each for each in STREAM_JSON if "setting-sources" not in each), ASKING),
        flags=("--setting-sources=project", MODE),
    ) as cli:
        await cli.initialize()
        await cli.prompt("go")
    return cli


def _found(cli: RawCli, kind: str, names: Iterable[str]) -> list[str]:
    """Return the names whose calls did not fail."""
    failed = {str(each["tool_use_id"]): bool(each.get("is_error")) for each in cli.tool_results}
    return [name for n, name in enumerate(names) if failed.get(f"{kind}{n}") is False]


@spellings_of_names.must("12", sees=[name for name, runs in SKILLS.items() if runs])
def a_skill_is_found_by_these_spellings(cli: RawCli) -> list[str]:
    """A skill runs for its name and its title, with white space and one slash around them."""
    return _found(cli, "skill", SKILLS)


@spellings_of_names.must("12", sees=[name for name, started in AGENTS.items() if started])
def an_agent_is_found_by_these_spellings(cli: RawCli) -> list[str]:
    """An agent starts for its type in any case and width, with spaces, `_` and dashes in it."""
    return _found(cli, "agent", AGENTS)


@spellings_of_names.feature(
    "12",
    sees=["deploy"],
    absent=[],
    without="an ask about a skill covers those that are not listed",
)
def the_other_names_of_a_skill_are_listed(cli: RawCli) -> list[str]:
    """The answer to the handshake has the folder of a skill as an alias of its title."""
    answers = [part(part(frame, "response"), "response") for frame in cli.frames]
    listed = [each for answer in answers for each in answer.get("commands", ())]
    return [
        name for each in listed if each["name"] == "Ship It" for name in each.get("aliases", ())
    ]


SCENES = (spellings_of_names,)
