"""What the model does, as data.

A `Script` answers a `ModelRequest` with a `Step`: text, thinking, tool calls, a failure, a wait or
a broken stream. It knows neither servers nor CLIs: `model` plays it over HTTP, `scripted` in
memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from steersman._json import Json, JsonDict, JsonObject
from steersman.testing.request import Kind, ModelRequest, Purpose, auxiliary_purpose, kind_of

__all__ = [
    "Answer",
    "Cut",
    "Fail",
    "Match",
    "Part",
    "Scene",
    "Script",
    "Stall",
    "Step",
    "Text",
    "Thinking",
    "ToolUse",
    "Usage",
    "call",
    "calls",
    "cut",
    "echo",
    "fail",
    "say",
    "stall",
    "step",
    "think",
    "when",
]

REFUSED = 400
"""The status of a request that a script cannot answer; the CLI does not retry it."""

FINAL_STATUSES = frozenset({400, 403, 404, 413, 422})
"""Statuses of requests that are wrong, and fail again when they are repeated."""


# --- What the model does -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Text:
    """Text, in the chunks in which it is streamed."""

    chunks: tuple[str, ...]

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.chunks)

    def __str__(self) -> str:
        return f"say({self.text!r})"


@dataclass(frozen=True, slots=True)
class Thinking:
    """Thinking, with the signature that the API adds."""

    text: str
    signature: str = "scripted-signature"

    def __str__(self) -> str:
        return f"think({self.text!r})"


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call; an input of type `str` is sent as it is, even if it is not JSON."""

    name: str
    input: JsonObject | str = field(default_factory=JsonDict)
    id: str | None = None
    """The id of the call; if it is None, the player of the step creates one."""

    def __str__(self) -> str:
        if isinstance(self.input, str):
            return f"call({self.name!r}, {self.input!r})"
        arguments = [f"{name}={value!r}" for name, value in self.input.items()]
        return f"call({', '.join([repr(self.name), *arguments])})"


@dataclass(frozen=True, slots=True)
class Fail:
    """An error: an HTTP status if nothing was sent before, otherwise an event of the stream."""

    status: int
    message: str
    retry_after: float | None = None
    once: bool = True
    """If true, a repetition of the request gets the next step; otherwise it fails again."""

    def __str__(self) -> str:
        return f"fail({self.status}, {self.message!r})"


@dataclass(frozen=True, slots=True)
class Stall:
    """A pause of some seconds, or until it is released."""

    seconds: float | None = None

    def __str__(self) -> str:
        return f"stall({'' if self.seconds is None else self.seconds})"


@dataclass(frozen=True, slots=True)
class Cut:
    """The end of the connection without a complete answer."""

    def __str__(self) -> str:
        return "cut()"


Part = Text | Thinking | ToolUse | Fail | Stall | Cut


@dataclass(frozen=True, slots=True)
class Usage:
    """The token usage that a step reports; output tokens are estimated if they are None."""

    input_tokens: int = 100
    output_tokens: int | None = None
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """The answer to one request: its parts in order.

    `say("half") + stall() + say("rest")` is one step. A text block stays open until another block
    begins, so a stall or cut after a text happens in the middle of the block.
    """

    parts: tuple[Part, ...]
    usage: Usage | None = None
    stop_reason: str | None = None
    """The stop reason; if it is None, `tool_use` after a tool call, otherwise `end_turn`."""

    def __add__(self, other: Step) -> Step:
        return Step(
            (*self.parts, *other.parts),
            other.usage or self.usage,
            other.stop_reason or self.stop_reason,
        )

    def using(self, usage: Usage) -> Step:
        """Return the step with another token usage."""
        return replace(self, usage=usage)

    def stopping(self, stop_reason: str) -> Step:
        """Return the step with another stop reason, such as `max_tokens` or `refusal`."""
        return replace(self, stop_reason=stop_reason)

    @property
    def only_waits(self) -> bool:
        """True if the step consists of stalls only."""
        return bool(self.parts) and all(isinstance(part, Stall) for part in self.parts)

    @property
    def is_final_failure(self) -> bool:
        """True if the step is a failure that a repeated request gets again."""
        return bool(self.parts) and isinstance(self.parts[0], Fail) and not self.parts[0].once

    def __str__(self) -> str:
        return " + ".join(map(str, self.parts))


Answer = Step | Callable[[ModelRequest], Step]
"""A step, or a function from the request to a step."""


def say(
    text: str = "",
    chunks: int | Sequence[str] | None = None,
    *,
    usage: Usage | None = None,
    stop_reason: str | None = None,
) -> Step:
    """Send `text` as one chunk, in `chunks` equal chunks, or in exactly these chunks."""
    return Step((Text(chunked(text, chunks)),), usage, stop_reason)


def think(text: str, signature: str = "scripted-signature") -> Step:
    """Send `text` as thinking."""
    return Step((Thinking(text, signature),))


def call(
    name: str,
    input_: JsonObject | str | None = None,
    /,
    *,
    id_: str | None = None,
    **arguments: Json,
) -> Step:
    """Call the tool `name`; pass arguments that are not Python names in a mapping."""
    if isinstance(input_, str):
        return Step((ToolUse(name, input_, id_),))
    return Step((ToolUse(name, {**(input_ or {}), **arguments}, id_),))


def calls(*several: Step) -> Step:
    """Call several tools at once, in one answer."""
    return step(*several)


def fail(
    status: int,
    message: str = "scripted failure",
    retry_after: float | None = None,
    *,
    once: bool | None = None,
) -> Step:
    """Fail with an HTTP status; after some text, with an error in the stream.

    The CLI silently repeats a request that was refused with 400, with changes, up to six times.
    A failure with a final status therefore answers every repetition, unless `once` is set.
    """
    fails_once = status not in FINAL_STATUSES if once is None else once
    return Step((Fail(status, message, retry_after, fails_once),))


def stall(seconds: float | None = None) -> Step:
    """Pause for some seconds, or until the model is released or the client disconnects."""
    return Step((Stall(seconds),))


def cut() -> Step:
    """Close the connection without an answer; after some text, in the middle of the stream."""
    return Step((Cut(),))


def step(*parts: Step | Part, usage: Usage | None = None, stop_reason: str | None = None) -> Step:
    """Return one step made of several steps or parts, as `+` does."""
    whole = Step((), usage, stop_reason)
    for part in parts:
        whole = whole + (part if isinstance(part, Step) else Step((part,)))
    return replace(whole, usage=usage or whole.usage, stop_reason=stop_reason or whole.stop_reason)


def echo(request: ModelRequest) -> Step:
    """Return the answer of a model without a script: the prompt."""
    return say(f"Echo: {request.last_text}")


def chunked(text: str, chunks: int | Sequence[str] | None) -> tuple[str, ...]:
    """Split `text` into chunks as `say` describes."""
    if chunks is None:
        return (text,)
    if isinstance(chunks, int):
        edges = [len(text) * at // chunks for at in range(chunks + 1)]
        return tuple(text[start:end] for start, end in pairwise(edges))
    if text and text != "".join(chunks):
        raise ValueError(f"chunks {list(chunks)!r} do not make {text!r}")
    return tuple(chunks)


# --- Which step comes when ---------------------------------------------------------------

Match = str | Callable[[ModelRequest], bool]


@dataclass(frozen=True, slots=True)
class Scene:
    """Steps for the prompts that match; made by `when`."""

    match: Match
    steps: tuple[Answer, ...]


def when(match: Match, *steps: Answer) -> Scene:
    """Use `steps` while the last prompt contains the text `match`, or the function is true."""
    return Scene(match, steps)


class Script:
    """The steps of a model: one for each request of the main conversation, in order.

    Scenes made by `when` answer the prompts that they match, in any order; plain steps answer the
    others; branches answer subagents. If no step is left, the model echoes the prompt; a strict
    script fails the request instead and records that. Auxiliary requests of the CLI use no step.
    """

    def __init__(self, *steps: Answer | Scene, strict: bool = False) -> None:
        self.strict = strict
        self.steps = steps
        self.branches: list[Scene] = []
        self.surprises: list[str] = []
        """Failures of the script itself: steps that raised, requests without a step."""
        self._main = _Track("step", [each for each in steps if not isinstance(each, Scene)])
        self._scenes = [
            _Track(f"when({label(each.match)}) step", list(each.steps), in_last_text(each.match))
            for each in steps
            if isinstance(each, Scene)
        ]
        self._branches: list[_Track] = []
        self._refused: dict[tuple[str, int, str], Step] = {}

    def branch(self, match: Match, *steps: Answer) -> Script:
        """Answer the subagents whose first prompt or system prompt contains `match`.

        A function as `match` is also called for auxiliary requests of the CLI. Returns the script,
        so that calls can be chained.
        """
        name = f"branch({label(match)}) step"
        self.branches.append(Scene(match, steps))
        self._branches.append(_Track(name, list(steps), in_first_text(match)))
        return self

    def answer(self, request: ModelRequest) -> Step:
        """Return the step for `request` and count it as used; not safe to call from two threads."""
        if refusal := self._refused.get(request.position):
            return refusal
        answer = self._next(request, kind_of(request))
        taken = answer if isinstance(answer, Step) else self._ask(answer, request)
        if (typo := misspelt_call(taken, request.tools)) is not None:
            taken = self._surprise(typo)
        if taken.is_final_failure:
            self._refused[request.position] = taken
        return taken + echo(request) if taken.only_waits else taken

    def pass_over(self, request: ModelRequest) -> None:
        """Count the step for `request` as used: another process has answered the request."""
        if request.position in self._refused:
            return
        answer = self._next(request, kind_of(request))
        if isinstance(answer, Step) and answer.is_final_failure:
            self._refused[request.position] = answer

    @property
    def not_reached(self) -> list[str]:
        """The next unused step of each sequence that was not played to its end."""
        tracks = [self._main, *self._scenes, *self._branches]
        return [track.not_reached for track in tracks if track.has_more]

    def assert_complete(self) -> None:
        """Raise `AssertionError` if steps were not reached or the script itself failed."""
        if complaints := [*self.surprises, *self.not_reached]:
            raise AssertionError("; ".join(complaints))

    def _next(self, request: ModelRequest, kind: Kind) -> Answer:
        if kind == "main":
            candidates = matching(self._scenes, request) or [self._main]
        else:
            candidates = matching(self._branches, request)
        for track in candidates:
            if track.has_more:
                return track.take()
        return answer_auxiliary if kind == "auxiliary" else self._run_out(request, kind)

    def _run_out(self, request: ModelRequest, kind: Kind) -> Answer:
        if not self.strict:
            return echo
        return self._surprise(f"no step left for the {kind} request {request.last_text!r}")

    def _ask(self, answer: Callable[[ModelRequest], Step], request: ModelRequest) -> Step:
        try:
            return answer(request)
        except Exception as error:  # noqa: BLE001 - the test's own code; `assert_complete` reports it
            return self._surprise(f"{describe(answer)} raised {error!r}")

    def _surprise(self, complaint: str) -> Step:
        self.surprises.append(complaint)
        return fail(REFUSED, f"script: {complaint}")


SIMILAR = 0.9
"""How similar two names of tools must be to take one for a misspelling of the other."""


def misspelt_call(step: Step, offered: Sequence[str]) -> str | None:
    """Return a complaint if `step` calls a tool under a name that is almost one of `offered`.

    Other names are left alone: that a model calls an unknown tool may be what a test is about.
    """
    names = [part.name for part in step.parts if isinstance(part, ToolUse)]
    for name in names:
        if name in offered:
            continue
        from difflib import get_close_matches  # noqa: PLC0415 - only for a mistake

        if near := get_close_matches(name, offered, n=1, cutoff=SIMILAR):
            return f"there is no tool {name!r} in the request; did you mean {near[0]!r}?"
    return None


def answer_auxiliary(request: ModelRequest) -> Step:
    """Return a harmless answer to an auxiliary request, in the format that the CLI expects."""
    purpose = auxiliary_purpose(request)
    return AUXILIARY_ANSWERS[purpose](request) if purpose else echo(request)


def example_of(request: ModelRequest) -> Step:
    """Return a step with an example value for the request's output schema."""
    properties: JsonDict = request.body["output_config"]["format"]["schema"]["properties"]
    example = {name: EXAMPLES.get(each["type"], "scripted") for name, each in properties.items()}
    return say(json.dumps(example))


EXAMPLES: JsonObject = {"boolean": True, "integer": 0, "number": 0, "array": []}

AUXILIARY_ANSWERS: Mapping[Purpose, Callable[[ModelRequest], Step]] = {
    "json": example_of,
    "classifier": lambda _: say("<block>no</block>"),
    "side_question": echo,
    "summary": lambda _: say("<analysis>-</analysis>\n<summary>A scripted summary.</summary>"),
    "probe": lambda _: say("."),
}


@dataclass(slots=True)
class _Track:
    name: str
    steps: list[Answer]
    matches: Callable[[ModelRequest], bool] = lambda _: True
    taken: int = 0

    @property
    def has_more(self) -> bool:
        return self.taken < len(self.steps)

    @property
    def not_reached(self) -> str:
        where = f"{self.name} {self.taken + 1} of {len(self.steps)}"
        return f"{where} was not reached: {describe(self.steps[self.taken])}"

    def take(self) -> Answer:
        self.taken += 1
        return self.steps[self.taken - 1]


def matching(tracks: Iterable[_Track], request: ModelRequest) -> list[_Track]:
    return [track for track in tracks if track.matches(request)]


def in_last_text(match: Match) -> Callable[[ModelRequest], bool]:
    if isinstance(match, str):
        return lambda request: match in request.last_text
    return match


def in_first_text(match: Match) -> Callable[[ModelRequest], bool]:
    if isinstance(match, str):
        return lambda request: (
            kind_of(request) == "subagent"
            and (match in request.first_text or match in request.system)
        )
    return match


def label(match: Match) -> str:
    return repr(match) if isinstance(match, str) else describe(match)


def describe(thing: Step | Callable[..., object]) -> str:
    return str(thing) if isinstance(thing, Step) else getattr(thing, "__name__", repr(thing))
