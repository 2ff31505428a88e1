"""`query()`: one prompt, or a stream of prompts, and everything that comes of it."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

from steersman.testing.script import call, calls, fail, say, stall, think, when
from tests.compat.programs.catalogue import program
from tests.compat.programs.stage import Stage, prompts

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


@program(say("Paris."))
async def one_shot(sdk: Any, stage: Stage) -> None:
    await stage.read(sdk.query(prompt="capital of France?", options=stage.options()))


@program(call("Bash", command="echo found"), say("done"))
async def one_shot_with_a_tool(sdk: Any, stage: Stage) -> None:
    options = stage.options(allowed_tools=["Bash"])
    await stage.read(sdk.query(prompt="look", options=options))


@program(
    calls(call("Read", file_path="a.txt"), call("Read", file_path="b.txt")), say("both are read")
)
async def one_shot_with_two_tools_at_once(sdk: Any, stage: Stage) -> None:
    stage.write("a.txt", "first")
    stage.write("b.txt", "second")
    found = await stage.read(sdk.query(prompt="read both", options=stage.options()))
    stage.note("results", sum(isinstance(each, sdk.UserMessage) for each in found))
    stage.unordered()


@program(call("Bash", command="touch made"), say("not allowed"))
async def one_shot_without_permission(sdk: Any, stage: Stage) -> None:
    await stage.read(sdk.query(prompt="make it", options=stage.options()))
    stage.note("made", (stage.cwd / "made").exists())


@program(call("Bash", command="echo x"), say("I have no Bash"))
async def one_shot_with_a_disallowed_tool(sdk: Any, stage: Stage) -> None:
    options = stage.options(disallowed_tools=["Bash"])
    await stage.read(sdk.query(prompt="try", options=options))
    stage.note("offered", "Bash" in stage.model.asked[0].tools)


@program(say("two tools"))
async def one_shot_with_few_tools(sdk: Any, stage: Stage) -> None:
    await stage.read(sdk.query(prompt="which?", options=stage.options(tools=["Read", "Glob"])))
    stage.note("offered", sorted(stage.model.asked[0].tools))


@program(say("no tools"))
async def one_shot_with_no_tools(sdk: Any, stage: Stage) -> None:
    await stage.read(sdk.query(prompt="which?", options=stage.options(tools=[])))
    stage.note("offered", sorted(stage.model.asked[0].tools))


@program(call("Teleport", where="home"), say("there is no such tool"))
async def one_shot_that_calls_an_unknown_tool(sdk: Any, stage: Stage) -> None:
    await stage.read(sdk.query(prompt="go", options=stage.options()))


@program(call("Bash", command="echo 1"), call("Bash", command="echo 2"))
async def one_shot_up_to_max_turns(sdk: Any, stage: Stage) -> None:
    options = stage.options(max_turns=1, allowed_tools=["Bash"])
    await stage.read(sdk.query(prompt="go on and on", options=options))


@program(call("Bash", command="echo 1"), say("too late"))
async def one_shot_over_its_budget(sdk: Any, stage: Stage) -> None:
    options = stage.options(max_budget_usd=0.0000001, allowed_tools=["Bash"])
    await stage.read(sdk.query(prompt="spend", options=options))


@program(fail(400, "no such thing"))
async def one_shot_that_the_api_refuses(sdk: Any, stage: Stage) -> None:
    await stage.read(sdk.query(prompt="go", options=stage.options()))


@program(fail(529, retry_after=0), say("second try"))
async def one_shot_with_a_busy_api(sdk: Any, stage: Stage) -> None:
    await stage.read(sdk.query(prompt="go", options=stage.options()))


@program(call("StructuredOutput", city="Paris"), say("done"))
async def one_shot_with_structured_output(sdk: Any, stage: Stage) -> None:
    options = stage.options(output_format={"type": "json_schema", "schema": SCHEMA})
    found = await stage.read(sdk.query(prompt="which city?", options=options))
    stage.note("value", found[-1].structured_output)


@program(say("never"), say("never"))
async def one_shot_without_its_structured_output(sdk: Any, stage: Stage) -> None:
    options = stage.options(output_format={"type": "json_schema", "schema": SCHEMA})
    found = await stage.read(sdk.query(prompt="which city?", options=options))
    stage.note("value", found[-1].structured_output)


@program(say("one two three", chunks=3))
async def one_shot_with_partial_messages(sdk: Any, stage: Stage) -> None:
    options = stage.options(include_partial_messages=True)
    await stage.read(sdk.query(prompt="count", options=options))


@program(think("hm, let me see") + say("42"))
async def one_shot_with_thinking(sdk: Any, stage: Stage) -> None:
    options = stage.options(thinking={"type": "enabled", "budget_tokens": 2000})
    await stage.read(sdk.query(prompt="think", options=options))
    stage.note("asked", stage.model.asked[0].body.get("thinking"))


@program(say("x" * 1_500_000))
async def one_shot_with_a_result_of_1_5_mb(sdk: Any, stage: Stage) -> None:
    await stage.read(sdk.query(prompt="long", options=stage.options()))


@program(say("x" * 1_500_000))
async def client_with_a_result_of_1_5_mb_and_room_for_it(sdk: Any, stage: Stage) -> None:
    options = stage.options(max_buffer_size=16 * 1024 * 1024)
    # A one-shot of the official package may lose the end: an older CLI exits while it is read.
    async with sdk.ClaudeSDKClient(options) as client:
        await client.query("long")
        await stage.read(client.receive_response())


@program(say("first"), say("second"))
async def one_shot_of_two_prompts(sdk: Any, stage: Stage) -> None:
    stream = sdk.query(prompt=prompts("one", "two"), options=stage.options())
    await stage.read(stream)


@program(when("one", say("1")), when("two", say("2")), when("three", say("3")))
async def three_one_shots_at_once(sdk: Any, stage: Stage) -> None:
    async def ask(text: str) -> str:
        found = [each async for each in sdk.query(prompt=text, options=stage.options())]
        return str(found[-1].result)

    stage.note("answers", await asyncio.gather(ask("one"), ask("two"), ask("three")))
    stage.unordered()


@program(say("the beginning") + stall())
async def one_shot_left_early(sdk: Any, stage: Stage) -> None:
    options = stage.options(include_partial_messages=True)
    async with aclosing(sdk.query(prompt="begin", options=options)) as stream:
        async for message in stream:
            if isinstance(message, sdk.StreamEvent):
                stage.note("began")
                break


@program(stall())
async def one_shot_cancelled(sdk: Any, stage: Stage) -> None:
    began = asyncio.Event()

    async def read() -> None:
        async for message in sdk.query(prompt="wait", options=stage.options()):
            stage.saw(message)
            began.set()

    reading = asyncio.ensure_future(read())
    await stage.asked()
    await began.wait()
    reading.cancel()
    await asyncio.wait([reading])
    stage.note("cancelled", reading.cancelled())


@program(stall())
async def one_shot_with_a_time_limit(sdk: Any, stage: Stage) -> None:
    async def read() -> None:
        async for _ in sdk.query(prompt="wait", options=stage.options()):
            pass

    reading = asyncio.ensure_future(read())
    await stage.asked()
    try:
        await asyncio.wait_for(reading, 0.05)
    except TimeoutError:
        stage.note("the time is over")


@program(say("nothing to see"))
async def one_shot_with_an_empty_prompt(sdk: Any, stage: Stage) -> None:
    await stage.read(sdk.query(prompt="", options=stage.options()))


@program(say("half", stop_reason="max_tokens"), say("rest"))
async def one_shot_cut_by_max_tokens(sdk: Any, stage: Stage) -> None:
    await stage.read(sdk.query(prompt="a long one", options=stage.options()))


@program(say("I must not", stop_reason="refusal"), say("still not"))
async def one_shot_refused_by_the_model(sdk: Any, stage: Stage) -> None:
    await stage.read(sdk.query(prompt="bad things", options=stage.options()))


@program(
    call(
        "Bash", command="while [ ! -e go ]; do sleep 0.02; done; echo late", run_in_background=True
    ),
    say("started"),
    say("it has ended"),
)
async def one_shot_with_background_work(sdk: Any, stage: Stage) -> None:
    options = stage.options(allowed_tools=["Bash"])
    stream = sdk.query(prompt="in the background", options=options)
    await stage.read_until(stream, lambda each: isinstance(each, sdk.ResultMessage))
    stage.write("go", "")
    await stage.read(stream)


@program()
async def one_shot_of_no_prompts(sdk: Any, stage: Stage) -> None:
    found = await stage.read(sdk.query(prompt=prompts(), options=stage.options()))
    stage.note("messages", len(found))


@program(say("never asked"))
async def one_shot_whose_prompts_raise(sdk: Any, stage: Stage) -> None:
    async def broken() -> Any:
        yield {"type": "user", "message": {"role": "user", "content": "one"}}
        raise RuntimeError("the source is broken")

    await stage.read(sdk.query(prompt=broken(), options=stage.options()))
