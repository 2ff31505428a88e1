"""Options that reach the model or the CLI: prompts, settings, folders, environment."""

from __future__ import annotations

from typing import Any

from steersman.testing.script import call, say, when
from tests.compat.programs.catalogue import program
from tests.compat.programs.stage import Stage, prompts


def system(stage: Stage) -> str:
    """Return the system prompt without the line about billing, which the CLI adds."""
    lines = stage.model.asked[-1].system.splitlines()
    return "\n".join(line for line in lines if "billing" not in line)


async def ask(sdk: Any, stage: Stage, text: str = "go", **options: Any) -> None:
    await stage.read(sdk.query(prompt=text, options=stage.options(**options)))


@program(say("one"), say("two"))
async def system_prompts_of_our_own(sdk: Any, stage: Stage) -> None:
    await ask(sdk, stage, system_prompt="You are a pirate.")
    stage.note("text", system(stage))
    await ask(sdk, stage)
    stage.note("none", system(stage))


@program(say("one"), say("two"))
async def system_prompts_of_the_cli(sdk: Any, stage: Stage) -> None:
    preset = {"type": "preset", "preset": "claude_code", "append": "Speak like a pirate."}
    await ask(sdk, stage, system_prompt=preset)
    found = system(stage)
    stage.note("preset", [len(found) > 2000, "Speak like a pirate." in found])
    path = stage.write("prompt.md", "You are a parrot.")
    await ask(sdk, stage, system_prompt={"type": "file", "path": str(path)})
    stage.note("file", system(stage))


@program(call("Bash", command="echo $GREETING"), say("printed"))
async def environment_of_the_options(sdk: Any, stage: Stage) -> None:
    await ask(sdk, stage, env={"GREETING": "ahoy"}, allowed_tools=["Bash(echo:*)"])


@program(say("one"), say("two"))
async def settings_of_the_project(sdk: Any, stage: Stage) -> None:
    stage.write("CLAUDE.md", "Always answer in Latin.")
    await ask(sdk, stage)
    await ask(sdk, stage, setting_sources=[])
    found = ["Always answer in Latin." in str(each.body) for each in stage.model.asked]
    stage.note("memory", found)


@program(call("Bash", command="touch made"), say("done"))
async def settings_as_json(sdk: Any, stage: Stage) -> None:
    settings = '{"permissions": {"allow": ["Bash(touch:*)"]}, "model": "claude-haiku-4-5"}'
    await ask(sdk, stage, settings=settings)
    stage.note("made", (stage.cwd / "made").exists())


@program(call("Read", file_path="OTHER/a.txt"), say("read"))
async def further_folders(sdk: Any, stage: Stage) -> None:
    other = stage.sandbox.root / "other"
    other.mkdir()
    (other / "a.txt").write_text("elsewhere")
    await ask(sdk, stage, add_dirs=[str(other)], allowed_tools=["Read"])


@program(say("done"))
async def model_and_effort(sdk: Any, stage: Stage) -> None:
    await ask(sdk, stage, model="claude-sonnet-4-5", effort="low", max_thinking_tokens=0)
    stage.note("model", stage.model.asked[0].model)


@program(when("/deploy moon", say("it was only text")), when("Deploy to moon", say("it ran")))
async def prompts_sent_verbatim(sdk: Any, stage: Stage) -> None:
    stage.write(".claude/commands/deploy.md", "Deploy to $ARGUMENTS")
    await ask(sdk, stage, "/deploy moon", verbatim_prompts=True)


@program(say("done"))
async def stderr_by_line(sdk: Any, stage: Stage) -> None:
    lines: list[str] = []
    await ask(sdk, stage, stderr=lines.append, extra_args={"debug-to-stderr": None})
    stage.note("lines", [bool(lines), any("\n" in each for each in lines)])


@program(say("done"))
async def skills_of_the_project(sdk: Any, stage: Stage) -> None:
    text = "---\nname: sailing\ndescription: How to sail\n---\nHoist the sails."
    stage.write(".claude/skills/sailing/SKILL.md", text)
    await ask(sdk, stage, skills=["sailing"])
    stage.note("offered", "How to sail" in str(stage.model.asked[0].body))


@program(say("one"), say("two"))
async def options_that_others_refuse(sdk: Any, stage: Stage) -> None:
    await ask(
        sdk,
        stage,
        max_turns=0,
        model="",
        resume="",
        allowed_tools=["Read, Glob", ""],
        fallback_model="claude-opus-5-5",
        thinking={"type": "disabled"},
        max_thinking_tokens=100,
        hooks={"NoSuchEvent": [sdk.HookMatcher(hooks=[])]},
    )
    await stage.read(
        sdk.query(prompt=prompts("go"), options=stage.options(output_format={"type": "text"}))
    )
