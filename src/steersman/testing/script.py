"""What the model does, as data.

A `Script` is asked with a `ModelRequest` and answers with a `Step`: text, thinking, tool calls,
a failure, a wait, a broken stream. Knows no server and no CLI: `model` plays it over HTTP.
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
"""How a script fails a request that it cannot answer: the CLI does not wait and retry."""

FINAL_STATUSES = frozenset({400, 403, 404, 413, 422})
"""Failures that say that the request is wrong; it stays so when it is sent again."""


# --- What the model does -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Text:
    """Text, in the pieces in which it is streamed."""

    chunks: tuple[str, ...]

    @property
    def text(self) -> str:
        """The pieces together."""
        return "".join(self.chunks)

    def __str__(self) -> str:
        return f"say({self.text!r})"


@dataclass(frozen=True, slots=True)
class Thinking:
    """Thinking, with the signature that the API puts under it."""

    text: str
    signature: str = "scripted-signature"

    def __str__(self) -> str:
        return f"think({self.text!r})"


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call; a `str` as input is sent as it is, to be broken on purpose."""

    name: str
    input: JsonObject | str = field(default_factory=JsonDict)
    id: str | None = None
    """None: whoever plays the step makes one."""

    def __str__(self) -> str:
        if isinstance(self.input, str):
            return f"call({self.name!r}, {self.input!r})"
        arguments = [f"{name}={value!r}" for name, value in self.input.items()]
        return f"call({', '.join([repr(self.name), *arguments])})"


@dataclass(frozen=True, slots=True)
class Fail:
    """An error: an HTTP status if nothing was sent before it, else an event in the stream."""

    status: int
    message: str
    retry_after: float | None = None
    once: bool = True
    """Whether the same request succeeds when it is sent again."""

    def __str__(self) -> str:
        return f"fail({self.status}, {self.message!r})"


@dataclass(frozen=True, slots=True)
class Stall:
    """Silence: for some seconds, or until released."""

    seconds: float | None = None

    def __str__(self) -> str:
        return f"stall({'' if self.seconds is None else self.seconds})"


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection breaks."""

    def __str__(self) -> str:
        return "cut()"


Part = Text | Thinking | ToolUse | Fail | Stall | Cut


@dataclass(frozen=True, slots=True)
class Usage:
    """What a step is said to have used; output is estimated when it is not given."""

    input_tokens: int = 100
    output_tokens: int | None = None
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """The answer to one request: parts in the order in which they happen.

    `say("half") + stall() + say("rest")` is one step. A block stays open until another begins,
    so what stalls or cuts after a text does so in the middle of it.
    """

    parts: tuple[Part, ...]
    usage: Usage | None = None
    stop_reason: str | None = None
    """None: `tool_use` when a tool is called, else `end_turn`."""

    def __add__(self, other: Step) -> Step:
        return Step(
            (*self.parts, *other.parts),
            other.usage or self.usage,
            other.stop_reason or self.stop_reason,
        )

    def using(self, usage: Usage) -> Step:
        """The same step with other numbers."""
        return replace(self, usage=usage)

    def stopping(self, stop_reason: str) -> Step:
        """The same step, ended for another reason, such as `max_tokens` or `refusal`."""
        return replace(self, stop_reason=stop_reason)

    @property
    def only_waits(self) -> bool:
        """Whether the step says nothing at all, not even an error."""
        return bool(self.parts) and all(isinstance(part, Stall) for part in self.parts)

    @property
    def is_final_failure(self) -> bool:
        """Whether it fails in a way that the same request would meet again."""
        return bool(self.parts) and isinstance(self.parts[0], Fail) and not self.parts[0].once

    def __str__(self) -> str:
        return " + ".join(map(str, self.parts))


Answer = Step | Callable[[ModelRequest], Step]
"""A step, or a function that looks at the request and gives one."""


def say(
    text: str = "",
    chunks: int | Sequence[str] | None = None,
    *,
    usage: Usage | None = None,
    stop_reason: str | None = None,
) -> Step:
    """Say `text`: in one piece, in a number of pieces, or in exactly these pieces."""
    return Step((Text(chunked(text, chunks)),), usage, stop_reason)


def think(text: str, signature: str = "scripted-signature") -> Step:
    """Think `text`."""
    return Step((Thinking(text, signature),))


def call(
    name: str,
    input_: JsonObject | str | None = None,
    /,
    *,
    id_: str | None = None,
    **arguments: Json,
) -> Step:
    """Call the tool `name`; arguments that are no Python names go in a mapping."""
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

    The CLI varies a request refused with 400 and sends it again, up to six times, and tells
    nobody. So a failure that is final, unless `once`, answers every repetition of its request.
    """
    fails_once = status not in FINAL_STATUSES if once is None else once
    return Step((Fail(status, message, retry_after, fails_once),))


def stall(seconds: float | None = None) -> Step:
    """Say nothing for some seconds, or until the model is released or the client leaves."""
    return Step((Stall(seconds),))


def cut() -> Step:
    """Break off: alone, the connection without an answer; after some text, the stream."""
    return Step((Cut(),))


def step(*pieces: Step | Part, usage: Usage | None = None, stop_reason: str | None = None) -> Step:
    """Make one step of several pieces: what `+` does, as a function."""
    whole = Step((), usage, stop_reason)
    for piece in pieces:
        whole = whole + (piece if isinstance(piece, Step) else Step((piece,)))
    return replace(whole, usage=usage or whole.usage, stop_reason=stop_reason or whole.stop_reason)


def echo(request: ModelRequest) -> Step:
    """The answer of a model that has no script."""
    return say(f"Echo: {request.last_text}")


def chunked(text: str, chunks: int | Sequence[str] | None) -> tuple[str, ...]:
    """Split `text` as `say` was asked to."""
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
    """Steps that answer one prompt only; made by `when`."""

    match: Match
    steps: tuple[Answer, ...]


def when(match: Match, *steps: Answer) -> Scene:
    """Answer with `steps` while the last prompt contains `match` (or satisfies it)."""
    return Scene(match, steps)


class Script:
    """The steps of a model, one per request of the main conversation, in order.

    Scenes made by `when` answer the prompts they match, in any order; the plain steps answer
    the others. Branches answer subagents. Where no step is left the model echoes the prompt; a
    strict script fails the request instead and remembers it. What the CLI asks on its own
    account takes no step.
    """

    def __init__(self, *steps: Answer | Scene, strict: bool = False) -> None:
        self.strict = strict
        self.steps = steps
        self.branches: list[Scene] = []
        self.surprises: list[str] = []
        """What went wrong in the script itself: steps that raised, requests with no step."""
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

        A function as `match` is also shown what the CLI asks on its own account. Gives the
        script back, to be chained.
        """
        name = f"branch({label(match)}) step"
        self.branches.append(Scene(match, steps))
        self._branches.append(_Track(name, list(steps), in_first_text(match)))
        return self

    def answer(self, request: ModelRequest) -> Step:
        """Take the step for `request`. One at a time: the player holds the lock."""
        if refusal := self._refused.get(request.position):
            return refusal
        answer = self._next(request, kind_of(request))
        taken = answer if isinstance(answer, Step) else self._ask(answer, request)
        if taken.is_final_failure:
            self._refused[request.position] = taken
        return taken + echo(request) if taken.only_waits else taken

    def pass_over(self, request: ModelRequest) -> None:
        """Count the step for `request` as taken: somebody else has answered it."""
        if request.position in self._refused:
            return
        answer = self._next(request, kind_of(request))
        if isinstance(answer, Step) and answer.is_final_failure:
            self._refused[request.position] = answer

    @property
    def not_reached(self) -> list[str]:
        """The steps that wait, one for each order of steps that was not played to its end."""
        tracks = [self._main, *self._scenes, *self._branches]
        return [track.not_reached for track in tracks if track.has_more]

    def assert_complete(self) -> None:
        """Raise `AssertionError` naming the steps not reached and what went wrong."""
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
        except Exception as error:  # noqa: BLE001 - the test's own code; it is told at the end
            return self._surprise(f"{describe(answer)} raised {error!r}")

    def _surprise(self, complaint: str) -> Step:
        self.surprises.append(complaint)
        return fail(REFUSED, f"script: {complaint}")


def answer_auxiliary(request: ModelRequest) -> Step:
    """Answer what the CLI asks on its own account: harmlessly, and in the form it wants."""
    purpose = auxiliary_purpose(request)
    return AUXILIARY_ANSWERS[purpose](request) if purpose else echo(request)


def example_of(request: ModelRequest) -> Step:
    """Make the JSON that the request's schema wants: yes, and a word."""
    properties: JsonDict = request.body["output_config"]["format"]["schema"]["properties"]
    example = {name: EXAMPLES.get(each["type"], "scripted") for name, each in properties.items()}
    return say(json.dumps(example))


EXAMPLES: JsonObject = {"boolean": True, "integer": 0, "number": 0, "array": []}

AUXILIARY_ANSWERS: Mapping[Purpose, Callable[[ModelRequest], Step]] = {
    "json": example_of,
    "classifier": lambda _: say("<block>no</block>"),
    "side question": echo,
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
