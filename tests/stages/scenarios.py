"""What happens in one conversation, for any stage: a script, what the host brings, what it does.

Each class is a scenario; its name is its sentence. Built-in tools really run on the stock CLI; on
the scripted one `tools` plays them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from steersman import Allow, Deny, Hooks, Session, tool
from steersman.errors import RequestRefused
from steersman.hooks import PostToolUse, PreToolUse, Reply, Stop, UserPromptSubmit, allow, deny
from steersman.testing.script import (
    Answer,
    Scene,
    Script,
    call,
    calls,
    cut,
    fail,
    say,
    stall,
    think,
    when,
)
from steersman.testing.scripted.cli import ScriptedCLI
from steersman.testing.scripted.stage import FakeTool
from steersman.testing.stages import Stage
from tests.live.staging import entry_where, first_words, until


async def ask(session: Session, prompt: Any, **how: Any) -> None:
    """Send a prompt, and see the session come to rest behind it."""
    await (await session.send(prompt, **how))
    await at_rest(session)


async def at_rest(session: Session) -> None:
    await until(lambda: session.state == "idle")


async def answered(session: Session) -> None:
    """See the model's answer end: its tools may be begun before that, and interrupted otherwise."""
    await entry_where(session, lambda entry: b'"message_stop"' in entry.line)


class Scenario:
    """One conversation; its steps must all be taken."""

    steps: ClassVar[tuple[Answer | Scene, ...]] = ()
    prompts: ClassVar[tuple[str, ...]] = ("go",)
    tools: ClassVar[Mapping[str, FakeTool]] = {}
    env: ClassVar[Mapping[str, str]] = {}
    comes_to_rest: ClassVar[bool] = True

    @classmethod
    def script(cls) -> Script:
        return Script(*cls.steps, strict=True)

    @classmethod
    def cli(cls) -> ScriptedCLI:
        return ScriptedCLI(cls.script(), tools=cls.tools)

    def options(self) -> dict[str, Any]:
        return {}

    async def play(self, session: Session, stage: Stage) -> None:
        for prompt in self.prompts:
            await ask(session, prompt)


def scenarios(root: type[Scenario] = Scenario) -> Iterator[type[Scenario]]:
    """All of them, in the order in which they stand here."""
    for each in root.__subclasses__():
        yield each
        yield from scenarios(each)


# --- Answers of the model ----------------------------------------------------------------


class AGreeting(Scenario):
    steps = (say("Hello."),)


class TextInFivePieces(Scenario):
    steps = (say("one two three four five", chunks=5),)


class SeveralTextsInOneAnswer(Scenario):
    steps = (say("first") + think("hm") + say("second"),)


class ThinkingBeforeAnAnswer(Scenario):
    steps = (think("let me see") + say("I see."),)


class AnEmptyAnswer(Scenario):
    steps = (say(""), say("now something"))


class AnAnswerThatIsTooLong(Scenario):
    steps = (say("half of", stop_reason="max_tokens"), say(" it all"))


class ARefusal(Scenario):
    steps = (say("I will", stop_reason="refusal"), say("not"))


class APauseInTheMiddleOfAText(Scenario):
    steps = (say("wait") + stall() + say(" for it"),)

    async def play(self, session: Session, stage: Stage) -> None:
        turn = await session.send("go")
        await first_words(turn, "wait")
        await stage.release()
        await turn


# --- Prompts -----------------------------------------------------------------------------


class TwoPromptsInTurn(Scenario):
    steps = (say("first"), say("second"))
    prompts = ("one", "two")


class ThreePromptsAtOnce(Scenario):
    steps = (
        when("first", call("mcp__functions__add", a=1, b=1), say("un")),
        when("second", say("deux")),
        when("third", say("trois", chunks=3)),
    )

    def options(self) -> dict[str, Any]:
        return {"functions": [add]}

    async def play(self, session: Session, stage: Stage) -> None:
        turns = [await session.send(prompt) for prompt in ("first", "second", "third")]
        await asyncio.gather(*turns)


class ANoteThatAsksNothing(Scenario):
    steps = (say("heard"),)

    async def play(self, session: Session, stage: Stage) -> None:
        await ask(session, "a note", query=False)
        await ask(session, "what did I say?")


class APromptOfBlocks(Scenario):
    steps = (say("two texts"),)

    async def play(self, session: Session, stage: Stage) -> None:
        blocks = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
        await ask(session, blocks)


# --- Tools -------------------------------------------------------------------------------


@tool
def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


@tool
def stumble() -> str:
    """Fail."""
    raise ValueError("no luck")


class APythonTool(Scenario):
    steps = (call("mcp__functions__add", a=2, b=3), say("five"))

    def options(self) -> dict[str, Any]:
        return {"functions": [add]}


class APythonToolThatFails(Scenario):
    steps = (call("mcp__functions__stumble"), say("too bad"))

    def options(self) -> dict[str, Any]:
        return {"functions": [stumble]}


class APythonToolWithWrongInput(Scenario):
    steps = (call("mcp__functions__add", a="two"), say("oh"))

    def options(self) -> dict[str, Any]:
        return {"functions": [add]}


class TwoToolsInOneAnswer(Scenario):
    steps = (
        say("both")
        + calls(call("mcp__functions__add", a=1, b=2), call("mcp__functions__add", a=3, b=4)),
        say("3 and 7"),
    )

    def options(self) -> dict[str, Any]:
        return {"functions": [add]}


class ToolsInThreeRounds(Scenario):
    steps = (
        say("first") + call("mcp__functions__add", a=1, b=1),
        call("mcp__functions__add", a=2, b=2),
        think("once more") + call("mcp__functions__add", a=4, b=4),
        say("eight"),
    )

    def options(self) -> dict[str, Any]:
        return {"functions": [add]}


class AHarmlessCommand(Scenario):
    steps = (call("Bash", command="echo one", description="Say one"), say("one"))
    tools: ClassVar[Mapping[str, FakeTool]] = {"Bash": lambda _: "one"}


class ACommandThatSaysNothing(Scenario):
    steps = (call("Bash", command="true", description="Nothing"), say("quiet"))
    tools: ClassVar[Mapping[str, FakeTool]] = {"Bash": lambda _: ""}


class ACommandThatFails(Scenario):
    steps = (call("Bash", command="false", description="Fail"), say("it failed"))

    @staticmethod
    def fail(_given: dict[str, Any]) -> str:
        raise RuntimeError("Exit code 1")

    tools: ClassVar[Mapping[str, FakeTool]] = {"Bash": fail}


class AnUnknownTool(Scenario):
    steps = (call("Levitate", height=3), say("I cannot"))


class ToolInputThatIsNoJson(Scenario):
    steps = (call("mcp__functions__add", '{"a": 1, "b'), say("sorry"))

    def options(self) -> dict[str, Any]:
        return {"functions": [add]}


class TooManyRounds(Scenario):
    steps = (call("mcp__functions__add", a=1, b=1), call("mcp__functions__add", a=2, b=2))

    def options(self) -> dict[str, Any]:
        return {"functions": [add], "max_turns": 2}


# --- Permissions -------------------------------------------------------------------------

TOUCH = call("Bash", command="touch made", description="Make a file")


class AToolThatAPersonAllows(Scenario):
    steps = (TOUCH, say("made"))
    tools: ClassVar[Mapping[str, FakeTool]] = {"Bash": lambda _: ""}

    def options(self) -> dict[str, Any]:
        return {"can_use_tool": lambda *_: Allow()}


class AToolThatAPersonAllowsWithOtherInput(Scenario):
    steps = (TOUCH, say("made"))
    tools: ClassVar[Mapping[str, FakeTool]] = {"Bash": lambda _: "other"}

    def options(self) -> dict[str, Any]:
        other = {"command": "echo other", "description": "Make a file"}
        return {"can_use_tool": lambda *_: Allow(updated_input=other)}


class AToolThatAPersonDenies(Scenario):
    steps = (TOUCH, say("as you like"))

    def options(self) -> dict[str, Any]:
        return {"can_use_tool": lambda *_: Deny("not today")}


class ADenialThatEndsTheTurn(Scenario):
    steps = (TOUCH, say("later"))
    prompts = ("go", "and now?")

    def options(self) -> dict[str, Any]:
        return {"can_use_tool": lambda *_: Deny("stop it", interrupt=True)}


class AnApproverThatFails(Scenario):
    steps = (TOUCH, say("as you like"))

    def options(self) -> dict[str, Any]:
        return {"can_use_tool": lambda *_: 1 / 0}


class NobodyToAsk(Scenario):
    steps = (TOUCH, say("as you like"))


class ToolsOfAServerThatNeedAPerson(Scenario):
    steps = (call("mcp__calc__add", a=1, b=2), say("three"))

    def options(self) -> dict[str, Any]:
        from steersman import Toolbox  # noqa: PLC0415

        return {
            "mcp_servers": {"calc": Toolbox("calc", [add])},
            "can_use_tool": lambda *_: Allow(),
        }


class AnotherPermissionMode(Scenario):
    steps = (TOUCH, say("as you like"), say("never mind"))

    def options(self) -> dict[str, Any]:
        return {"can_use_tool": lambda *_: Deny("not today")}

    async def play(self, session: Session, stage: Stage) -> None:
        await self.change(session, "dontAsk")
        await ask(session, "go")
        await self.change(session, "default")
        await ask(session, "and now?")

    async def change(self, session: Session, mode: Any) -> None:
        before = session.last_seq
        await session.set_permission_mode(mode)
        await entry_where(session, lambda entry: b'"status"' in entry.line, after=before)


# --- Hooks -------------------------------------------------------------------------------


class AHookThatDenies(Scenario):
    steps = (TOUCH, say("as you like"))

    def options(self) -> dict[str, Any]:
        hooks = Hooks()
        hooks.on(PreToolUse, "Bash")(lambda _: deny("not in this house"))
        return {"hooks": hooks}


class AHookThatAllows(Scenario):
    steps = (TOUCH, say("made"))
    tools: ClassVar[Mapping[str, FakeTool]] = {"Bash": lambda _: "other"}

    def options(self) -> dict[str, Any]:
        hooks = Hooks()
        other = {"command": "echo other", "description": "Make a file"}
        hooks.on(PreToolUse, "Bash")(lambda _: allow(updated_input=other))
        return {"hooks": hooks}


class AGuardThatFails(Scenario):
    steps = (TOUCH, say("as you like"))

    def options(self) -> dict[str, Any]:
        hooks = Hooks()

        @hooks.on(PreToolUse, "Bash")
        def stumble(_event: PreToolUse) -> Reply:
            raise ZeroDivisionError

        return {"hooks": hooks}


class HooksThatOnlyLook(Scenario):
    steps = (call("mcp__functions__add", a=1, b=2), say("three"))

    def options(self) -> dict[str, Any]:
        hooks = Hooks()
        hooks.on(PreToolUse)(lambda _: None)
        hooks.on(PostToolUse)(lambda _: None)
        hooks.on(UserPromptSubmit)(lambda _: None)
        hooks.on(Stop)(lambda _: None)
        return {"hooks": hooks, "functions": [add]}


class APromptThatAHookBlocks(Scenario):
    steps = (say("fine"),)
    prompts = ("a forbidden word", "a decent word")

    def options(self) -> dict[str, Any]:
        hooks = Hooks()

        @hooks.on(UserPromptSubmit)
        def screen(event: UserPromptSubmit) -> Reply | None:
            is_bad = "forbidden" in event.prompt
            return Reply(decision="block", reason="that word") if is_bad else None

        return {"hooks": hooks}


class AHookThatWantsMore(Scenario):
    steps = (say("done"), say("really done"))

    def options(self) -> dict[str, Any]:
        hooks = Hooks()

        @hooks.on(Stop)
        def insist(event: Stop) -> Reply | None:
            return None if event.stop_hook_active else Reply(decision="block", reason="go on")

        return {"hooks": hooks}


class AHookThatStopsTheTurn(Scenario):
    steps = (call("mcp__functions__add", a=1, b=2),)

    def options(self) -> dict[str, Any]:
        hooks = Hooks()
        hooks.on(PostToolUse)(lambda _: Reply(continue_=False, stop_reason="enough"))
        return {"hooks": hooks, "functions": [add]}


class AHookThatSpeaksToThePerson(Scenario):
    steps = (say("hello"),)

    def options(self) -> dict[str, Any]:
        hooks = Hooks()
        hooks.on(UserPromptSubmit)(lambda _: Reply(system_message="mind the gap"))
        return {"hooks": hooks}


# --- Interrupts --------------------------------------------------------------------------


class AnInterruptWhileTextStreams(Scenario):
    steps = (when("go", say("half a") + stall()), when("next", say("fresh")))

    async def play(self, session: Session, stage: Stage) -> None:
        turn = await session.send("go")
        await first_words(turn, "half a")
        await session.interrupt()
        await at_rest(session)
        await ask(session, "next")


class AnInterruptBeforeTheFirstByte(Scenario):
    steps = (when("go", stall()), when("next", say("fresh")))

    async def play(self, session: Session, stage: Stage) -> None:
        turn = await session.send("go")
        await entry_where(session, lambda entry: b'"requesting"' in entry.line)
        await stage.wait_for_request()
        await turn.interrupt()
        await at_rest(session)
        await ask(session, "next")


class AnInterruptWhileAToolRuns(Scenario):
    steps = (when("go", call("mcp__functions__dawdle")), when("next", say("fresh")))

    def options(self) -> dict[str, Any]:
        self.begun = asyncio.Event()

        @tool
        async def dawdle() -> str:
            """Take very long."""
            self.begun.set()
            await asyncio.Event().wait()
            return "never"

        return {"functions": [dawdle]}

    async def play(self, session: Session, stage: Stage) -> None:
        turn = await session.send("go")
        await self.begun.wait()
        await answered(session)
        await turn.interrupt()
        await at_rest(session)
        await ask(session, "next")


class AnInterruptWhileAPersonIsAsked(Scenario):
    steps = (when("go", TOUCH), when("next", say("fresh")))

    def options(self) -> dict[str, Any]:
        self.asked = asyncio.Event()

        async def think_long(*_: Any) -> Allow:
            self.asked.set()
            await asyncio.Event().wait()
            return Allow()

        return {"can_use_tool": think_long}

    async def play(self, session: Session, stage: Stage) -> None:
        turn = await session.send("go")
        await self.asked.wait()
        await answered(session)
        await turn.interrupt()
        await at_rest(session)
        await ask(session, "next")


class AnInterruptThatAlsoTakesBackWhatWaits(Scenario):
    steps = (when("go", say("half a") + stall()), when("last", say("fresh")))

    async def play(self, session: Session, stage: Stage) -> None:
        turn = await session.send("go")
        waiting = await session.send("waiting")
        await first_words(turn, "half a")
        await session.interrupt(also_queued=True)
        await waiting
        await at_rest(session)
        await ask(session, "last")


class AnInterruptWhenNothingRuns(Scenario):
    steps = (say("done"),)

    async def play(self, session: Session, stage: Stage) -> None:
        await session.interrupt()
        await ask(session, "go")


# --- Structured output -------------------------------------------------------------------

TOTAL = {
    "type": "object",
    "properties": {"amount": {"type": "number"}},
    "required": ["amount"],
    "additionalProperties": False,
}


class StructuredOutput(Scenario):
    steps: ClassVar[tuple[Answer | Scene, ...]] = (call("StructuredOutput", amount=5),)

    def options(self) -> dict[str, Any]:
        return {"output_format": {"type": "json_schema", "schema": TOTAL}}


class StructuredOutputAtTheSecondTry(StructuredOutput):
    steps = (call("StructuredOutput", amount="five"), call("StructuredOutput", amount=5))


class StructuredOutputThatWasForgotten(StructuredOutput):
    steps = (say("It is five."), call("StructuredOutput", amount=5))


# --- The API -----------------------------------------------------------------------------


class AnOverloadedApi(Scenario):
    steps = (fail(529), say("at last"))


class AnApiThatStaysOverloaded(Scenario):
    steps = (fail(529, once=True), fail(529, once=True))
    env: ClassVar[Mapping[str, str]] = {"CLAUDE_CODE_MAX_RETRIES": "1"}


class ARequestThatIsRefused(Scenario):
    steps = (fail(400, "that is wrong"), say("again"))
    prompts = ("go", "once more")


class AModelThatDoesNotExist(Scenario):
    steps = (fail(404, "no such model"),)


class AConnectionThatBreaks(Scenario):
    steps = (cut(), say("at last"))


class AStreamThatBreaksOff(Scenario):
    steps = (say("half a") + cut(), say("whole"))


class AnErrorInTheStream(Scenario):
    steps = (say("half a") + fail(529), say("whole"))


# --- Control -----------------------------------------------------------------------------


class AnotherModel(Scenario):
    steps = (say("one"), say("two"))

    async def play(self, session: Session, stage: Stage) -> None:
        await ask(session, "go")
        await session.set_model("haiku")
        await ask(session, "again")


class AControlRequestThatDoesNotExist(Scenario):
    steps = (say("fine"),)

    async def play(self, session: Session, stage: Stage) -> None:
        try:
            await session.control("levitate", height=3)
        except RequestRefused:
            await ask(session, "go")


class ServersThatAreAskedHowTheyAre(Scenario):
    steps = (say("fine"),)

    def options(self) -> dict[str, Any]:
        return {"functions": [add]}

    async def play(self, session: Session, stage: Stage) -> None:
        await ask(session, "go")
        await session.control("mcp_status")


class ATurnThatIsStillUnderWayAtTheEnd(Scenario):
    steps = (say("half a") + stall(),)
    comes_to_rest = False

    async def play(self, session: Session, stage: Stage) -> None:
        turn = await session.send("go")
        await first_words(turn, "half a")
