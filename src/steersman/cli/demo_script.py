"""The script of the demo: the steps of the model."""

from __future__ import annotations

from pathlib import Path

from steersman.testing.request import ModelRequest
from steersman.testing.script import Script, Step, Usage, call, say, stall, step

PROMPT = (
    "What is 19.99 + 5.01? Use the add tool, write the total to total.txt, push it with"
    " `git push`, then tidy up with `rm total.txt`."
)

TYPING = 0.03
"""Seconds between two words."""

USAGE = Usage(input_tokens=420, cache_read_input_tokens=9_000)
"""The token usage of each step, from which the CLI computes the cost."""


def demo_script(project: Path) -> Script:
    """Return the script: one turn of five steps that call an own tool, Write and Bash."""

    def write(request: ModelRequest) -> Step:
        total = next(iter(request.tool_results.values()), "25.0")
        return typed(f"The total is {total}. I'll write it down.") + call(
            "Write", file_path=str(project / "total.txt"), content=f"{total}\n"
        )

    return Script(
        typed("I'll add the two amounts first.") + call("mcp__functions__add", a=19.99, b=5.01),
        write,
        typed("Written. Now I'll push it.") + _bash("git push", "Push the commit"),
        typed(
            "Pushing needs your review, so I'll leave that to you. One thing is left: tidying up."
        )
        + _bash("rm total.txt", "Remove the file"),
        typed(
            "Done, except for two things I was not allowed to do: push, and remove total.txt."
            " 19.99 + 5.01 makes 25, and the file still says so."
        ),
    )


def typed(text: str) -> Step:
    """Send `text` word by word, with short pauses."""
    parts = [part for word in text.split(" ") for part in (say(f"{word} "), stall(TYPING))]
    return step(*parts, usage=USAGE)


def _bash(command: str, description: str) -> Step:
    return call("Bash", command=command, description=description)
