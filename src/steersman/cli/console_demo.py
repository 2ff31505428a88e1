"""The conversation of `steersman console --demo`: the steps of the scripted model.

Each answer follows from the conversation alone, so that a visitor may begin any number of sessions.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from steersman._json import Json, is_array
from steersman.testing.request import ModelRequest
from steersman.testing.script import Script, Step, Usage, call, say, stall, step

PROMPT = "Our prices are rounded wrongly. Please find out why, and fix it."

TYPING = 0.02
"""Seconds between two words."""
ANSWERS = 10_000
"""How many answers the model has; more than a visitor reads."""
USAGE = Usage(input_tokens=420, cache_read_input_tokens=9_000)
FILE = "prices.py"
WRONG, RIGHT = "return int(amount * 100) / 100", "return round(amount, 2)"
BEFORE = f'''"""Prices, in euros."""


def rounded(amount: float) -> float:
    """Return `amount` in whole cents."""
    {WRONG}


if __name__ == "__main__":
    print(rounded(19.999), rounded(5.005))
'''

FOUND = (
    "The tests are fine; `rounded()` in `prices.py` cuts the cents off with `int()`"
    " instead of rounding them."
)
ANY_OTHER = (
    "This is a demo: my answers are scripted, so I can only say that I have read your prompt."
    "\n\n> {prompt}\n\nTry **Stop** while I write, queue a second prompt, or begin another session."
)


def prepare(project: Path) -> None:
    """Write the file that the conversation is about."""
    (project / FILE).write_text(BEFORE, encoding="utf-8")


def console_script(project: Path) -> Script:
    """Return the script; `project` is the working directory of the agent."""
    path = str(project / FILE)
    steps: list[Callable[[ModelRequest], Step]] = [
        _look,
        lambda _: typed(f"{FOUND} I'll look at it myself.") + call("Read", file_path=path),
        lambda _: (
            typed("There it is. I'll change that line.")
            + call("Edit", file_path=path, old_string=WRONG, new_string=RIGHT)
        ),
        lambda _: (
            typed("Now I'll run it once.")
            + call("Bash", command=f"python3 {FILE}", description="Run the module")
        ),
        _ask,
        _sum_up,
    ]

    def answer(request: ModelRequest) -> Step:
        if PROMPT not in request.last_text:
            return typed(ANY_OTHER.format(prompt=request.last_text[:200]))
        return steps[min(_answered(request), len(steps) - 1)](request)

    return Script(*[answer] * ANSWERS).branch("rounded", *[_search] * ANSWERS)


def _look(_: ModelRequest) -> Step:
    text = (
        "I'll do this in three steps:\n\n1. have a **subagent** search for the cause\n"
        "2. change the file, if you allow it\n3. run it\n\n"
    )
    return typed(text) + call(
        "Agent",
        description="Find the rounding",
        prompt="Find where prices are rounded, and say what is wrong there.",
        subagent_type="general-purpose",
    )


def _search(request: ModelRequest) -> Step:
    if not _answered(request):
        return typed("I'll search the project.") + call("Grep", pattern="rounded")
    return typed(FOUND)


def _ask(_: ModelRequest) -> Step:
    question = {
        "question": "How shall amounts like 5.005 be rounded?",
        "header": "Rounding",
        "multiSelect": False,
        "options": [
            {"label": "Half to even", "description": "As Python does it: 5.00"},
            {"label": "Half up", "description": "As shops do it: 5.01"},
        ],
    }
    return typed("One thing is yours to decide.") + call("AskUserQuestion", questions=[question])


def _sum_up(request: ModelRequest) -> Step:
    chosen = next(iter(request.tool_results.values()), "")
    return typed(
        f"Done. You decided: {chosen[:200]}\n\n| file | change |\n|---|---|\n"
        f"| `{FILE}` | `{WRONG}` → `{RIGHT}` |\n\nSend me something else, if you like."
    )


def _answered(request: ModelRequest) -> int:
    """Return how many answers the model has given since the last prompt of the user."""
    count = 0
    for message in request.body.get("messages") or ():
        if message.get("role") == "assistant":
            count += 1
        elif message.get("role") == "user" and not _has_results(message.get("content")):
            count = 0
    return count


def _has_results(content: Json) -> bool:
    blocks = content if is_array(content) else []
    return any(block.get("type") == "tool_result" for block in blocks)


def typed(text: str) -> Step:
    """Send `text` word by word, with short pauses."""
    parts = [part for word in text.split(" ") for part in (say(f"{word} "), stall(TYPING))]
    return step(*parts, usage=USAGE)
