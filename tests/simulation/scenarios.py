"""What happens in one run, drawn from a seed: prompts, a model, a host, faults."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from steersman.testing.faults import (
    HARMLESS,
    CloseOutput,
    Drop,
    Duplicate,
    Exit,
    Fault,
    FaultPlan,
    Kill,
    Suspend,
    Truncate,
)
from steersman.testing.script import (
    Script,
    Step,
    Text,
    call,
    calls,
    cut,
    fail,
    say,
    stall,
    step,
    think,
    when,
)

Trait = Literal["fails", "never ends", "interrupts itself"]

Deed = Literal["send", "interrupt", "interrupt all", "ask", "read", "wait", "nap", "close"]

Style = Literal["session", "query", "run"]
"""How the host uses the agent; the latter two send only the first prompt."""

VERDICTS = ("allow", "deny", "raise", "nonsense", "slow", "guarded", "broken", "hang", "stop")
"""How the approver and the hook take a command; see `house`."""
MANNERS = ("quick", "slow", "raise", "hang")
"""How a Python tool behaves."""

MARKS = (
    '"subtype":"can_use_tool"',
    '"subtype":"hook_callback"',
    '"method":"tools/call"',
    '"method":"tools/list"',
    '"method":"notifications/cancelled"',
    '"type":"control_cancel_request"',
    '"type":"control_response"',
    '"type":"assistant"',
    '"type":"result"',
    '"abandoned_blocks"',
    '"isReplay":true',
    '"state":"started"',
    '"state":"completed"',
    '"state":"cancelled"',
    '"state":"idle"',
    '"text_delta"',
)
"""Lines that much depends on."""

SURGICAL: Sequence[Callable[[str], Fault]] = (
    Drop,
    Drop,
    Duplicate,
    Truncate,
    Kill,
    lambda mark: Kill(mark, later=1.0),
    lambda mark: Exit(mark, later=10.0),
    Suspend,
    CloseOutput,
)
"""Faults that are tried one at a time, each on one of those lines."""


@dataclass(frozen=True)
class PromptPlan:
    """A prompt and what the model does with it."""

    number: int
    steps: tuple[Step, ...]
    traits: frozenset[Trait]
    query: bool = True

    @property
    def mark(self) -> str:
        """A text that occurs in the prompt and in every answer to it."""
        return f"<p{self.number}>"

    @property
    def text(self) -> str:
        """The whole text of the model, if the turn completes."""
        messages = [
            "".join(part.text for part in each.parts if isinstance(part, Text))
            for each in self.steps
        ]
        return "\n\n".join(message for message in messages if message) if self.query else ""

    def __str__(self) -> str:
        return f"{self.mark} " + (" / ".join(map(str, self.steps)) if self.query else "(no query)")


@dataclass(frozen=True)
class Action:
    """Something that the host does."""

    deed: Deed
    prompt: int | None = None
    """Which one, where the deed is about one; None is all of the session."""
    pause: int = 0
    """Rounds of the loop before the next action."""
    patience: int | None = None
    """Rounds after which the caller is cancelled."""
    seconds: float = 0.0
    dawdles: int = 0
    """Rounds that a reader waits before each item."""

    def __str__(self) -> str:
        about = "" if self.prompt is None else f" <p{self.prompt}>"
        cancelled = "" if self.patience is None else f", cancelled after {self.patience}"
        return f"{self.deed}{about}{cancelled}, then {self.pause} rounds"


@dataclass(frozen=True)
class Scenario:
    """All of it."""

    seed: int
    plan: FaultPlan
    prompts: tuple[PromptPlan, ...]
    actions: tuple[Action, ...]
    is_patient: bool
    """Whether the host waits for its turns before it closes."""
    has_hooks: bool
    journal_memory: int
    grace: float
    """Seconds that a CLI gets to end by itself."""
    partials: bool
    style: Style
    patience: int | None
    """Rounds after which the start, or the one-shot, is cancelled."""
    jumps: Mapping[int, float]
    """By how many seconds the host's clock is set, at which reading."""
    most: int
    """The number of messages after which the reader of a query stops."""
    revives: bool = False
    """Whether a CLI that is lost is replaced."""
    next_plans: tuple[FaultPlan, ...] = ()
    """What goes wrong with those that come after the first one."""

    @property
    def script(self) -> Script:
        """What the model does; a new one for each run."""
        return Script(*(when(each.mark, *each.steps) for each in self.prompts if each.query))

    def __str__(self) -> str:
        close = "waits and closes" if self.is_patient else "closes"
        return "\n".join(
            (
                f"seed {self.seed}",
                f"  {self.plan}",
                *(f"  then {each}" for each in self.next_plans),
                *(f"  prompt {each}" for each in self.prompts),
                *(f"  host: {each}" for each in self.actions),
                f"  host: {close} ({self.style}, patience {self.patience}, most {self.most})",
                f"  hooks: {self.has_hooks}; memory: {self.journal_memory}; grace: {self.grace:g}",
            )
        )


def draw(seed: int) -> Scenario:
    """The scenario of a seed."""
    return _draw(random.Random(seed), seed)


def draw_revived(seed: int) -> Scenario:
    """Return a scenario in which lost CLIs are restarted, with faults in the new ones too."""
    dice = random.Random(-seed - 1)
    first, *others = (_deadly_plan(dice, seed + number) for number in range(dice.randint(1, 4)))
    return replace(draw(seed), revives=True, plan=first, next_plans=tuple(others))


def _deadly_plan(dice: random.Random, seed: int) -> FaultPlan:
    """Mostly an end in the middle of something."""
    if dice.random() < 0.2:
        return _plan(dice, seed)
    at = dice.choice((dice.choice(MARKS), dice.randint(2, 60)))
    return FaultPlan(seed, dice.choice((Kill(at), Kill(at, later=1.0), Exit(at, later=1.0))))


def _draw(dice: random.Random, seed: int) -> Scenario:
    prompts = tuple(_prompt(dice, number) for number in range(1, dice.randint(1, 6) + 1))
    return Scenario(
        seed=seed,
        plan=_plan(dice, seed),
        prompts=prompts,
        actions=tuple(_actions(dice, len(prompts))),
        is_patient=dice.random() < 0.6,
        has_hooks=dice.random() < 0.5,
        journal_memory=dice.choice((1 << 26, 1 << 26, 1 << 26, 20_000)),
        grace=dice.choice((0.0, 1.0, 5.0)),
        partials=dice.random() < 0.5,
        style=dice.choices(("session", "query", "run"), (8, 1, 1))[0],
        patience=dice.randint(0, 100) if dice.random() < 0.1 else None,
        jumps={dice.randint(1, 100): dice.choice((-86_400.0, -1.0, 3600.0)) for _ in range(2)},
        most=dice.choice((1, 5, 20, 1000)),
    )


def _plan(dice: random.Random, seed: int) -> FaultPlan:
    """None at all, only such as change nothing, one that is well aimed, or anything."""
    lines = dice.choice((8, 20, 60, 150))
    match dice.randrange(5):
        case 0:
            return FaultPlan(seed, among=())
        case 1:
            return FaultPlan(seed, among=HARMLESS, lines=lines, most=8, marks=MARKS)
        case 2:
            return FaultPlan(seed, dice.choice(SURGICAL)(dice.choice(MARKS)))
        case _:
            return FaultPlan(seed, lines=lines, marks=MARKS)


# --- The model --------------------------------------------------------------------------


def _prompt(dice: random.Random, number: int) -> PromptPlan:
    drawn = [
        _draw_step(dice, f"p{number}.{part}") for part in range(1, dice.choice((1, 1, 2, 2, 3, 4)))
    ]
    last = (say(f"<p{number}.last> is all.", dice.randint(1, 4)), None)
    steps = tuple(each for each, _ in [*drawn, last])
    traits = frozenset(trait for _, trait in drawn if trait is not None)
    return PromptPlan(number, steps, traits, query=dice.random() < 0.9)


def _draw_step(dice: random.Random, tag: str) -> tuple[Step, Trait | None]:
    return dice.choice(STEPS)(dice, tag)


def _speak(dice: random.Random, tag: str) -> tuple[Step, Trait | None]:
    spoken = say(f"<{tag}> I look.", dice.randint(1, 5)) + _note(tag, "quick")
    return think("hmm") + spoken if dice.random() < 0.3 else spoken, None


def _use_tool(dice: random.Random, tag: str) -> tuple[Step, Trait | None]:
    manner = dice.choice(MANNERS)
    return _note(tag, manner), "never ends" if manner == "hang" else None


def _use_bash(dice: random.Random, tag: str) -> tuple[Step, Trait | None]:
    verdict = dice.choice(VERDICTS)
    traits: dict[str, Trait] = {"hang": "never ends", "stop": "interrupts itself"}
    return call("Bash", command=f"touch {verdict}:{tag}"), traits.get(verdict)


def _use_several(dice: random.Random, tag: str) -> tuple[Step, Trait | None]:
    quick = [_note(f"{tag}{letter}", "quick") for letter in "ab"]
    bash = [call("Bash", command=f"touch {dice.choice(VERDICTS[:7])}:{tag}c")]
    several: list[Step] = [*quick, *bash]
    dice.shuffle(several)
    return calls(*several), None


def _fail(dice: random.Random, _tag: str) -> tuple[Step, Trait | None]:
    return fail(dice.choice((400, 429, 500, 529))), "fails"


def _break(_dice: random.Random, tag: str) -> tuple[Step, Trait | None]:
    return say(f"<{tag}> broken", 2) + cut(), "fails"


def _stall(dice: random.Random, tag: str) -> tuple[Step, Trait | None]:
    seconds = dice.choice((0.1, 30.0, None))
    spoken = (say(f"<{tag}> one"), stall(seconds), say(" two"), _note(tag, "quick"))
    return step(*spoken), "never ends" if seconds is None else None


def _note(tag: str, manner: str) -> Step:
    return call("mcp__functions__note", tag=tag, manner=manner)


STEPS: Sequence[Callable[[random.Random, str], tuple[Step, Trait | None]]] = (
    _speak,
    _use_tool,
    _use_bash,
    _use_bash,
    _use_several,
    _fail,
    _break,
    _stall,
)


# --- The host ---------------------------------------------------------------------------


def _actions(dice: random.Random, prompts: int) -> list[Action]:
    """Every prompt is sent once, in order; what else happens, happens in between."""
    actions: list[Action] = []
    for number in range(1, prompts + 1):
        actions += [_action(dice, number - 1) for _ in range(dice.choice((0, 0, 0, 1, 2)))]
        patience = dice.choice((None, None, None, None, 0, 1))
        actions.append(Action("send", number, _pause(dice), patience))
    return [*actions, *(_action(dice, prompts) for _ in range(dice.randint(0, 3)))]


def _action(dice: random.Random, sent: int) -> Action:
    deed = dice.choices(tuple(ODDS), tuple(ODDS.values()))[0]
    about = dice.randint(1, sent) if sent and deed != "ask" and dice.random() < 0.6 else None
    patience = None if dice.random() < 0.7 else dice.randint(0, 30)
    return Action(
        deed,
        about,
        _pause(dice),
        patience,
        seconds=dice.choice((0.0, 0.05, 1.0, 40.0)),
        dawdles=dice.choice((0, 0, 1, 7)),
    )


ODDS: Mapping[Deed, int] = {
    "interrupt": 4,
    "interrupt all": 3,
    "ask": 6,
    "read": 12,
    "wait": 6,
    "nap": 6,
    "close": 1,
}


def _pause(dice: random.Random) -> int:
    return dice.choice((0, 0, 1, 3, 10, 40, 120))
