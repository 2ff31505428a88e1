"""`ClaudeSDKClient`: a conversation with several turns, and what can be done while it runs."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

from steersman.testing.script import call, fail, say, stall, when
from tests.compat.programs.catalogue import program
from tests.compat.programs.stage import Stage, prompts

OWN_UUID = "00000000-0000-4000-8000-000000000001"


def user(text: str, **fields: Any) -> dict[str, Any]:
    message = {"role": "user", "content": text}
    return {"type": "user", "message": message, "parent_tool_use_id": None, **fields}


@program(say("one"), say("two"))
async def client_with_two_turns(sdk: Any, stage: Stage) -> None:
    async with sdk.ClaudeSDKClient(stage.options()) as client:
        await client.query("first")
        await stage.read(client.receive_response())
        await client.query("second")
        await stage.read(client.receive_response())


@program(stall() + say("one"), say("two and three"))
async def client_with_three_prompts_at_once(sdk: Any, stage: Stage) -> None:
    async with sdk.ClaudeSDKClient(stage.options()) as client:
        await client.query("first")
        await stage.asked()
        await client.query("second")
        await client.query("third")
        # Answered after both were read, because the CLI reads line by line.
        await client.get_mcp_status()
        await stage.release()
        for _ in range(3):
            reading = stage.read(client.receive_response())
            await stage.trying("a response", reading, patience=3)


@program(
    call("Bash", command="while [ ! -e go ]; do sleep 0.02; done; echo went"),
    lambda request: say(f"heard: {request.last_text}"),
)
async def client_steering_in_mid_turn(sdk: Any, stage: Stage) -> None:
    async with sdk.ClaudeSDKClient(stage.options(allowed_tools=["Bash"])) as client:
        await client.query("work")
        stream = client.receive_response()
        await stage.read_until(stream, lambda each: isinstance(each, sdk.AssistantMessage))
        await client.query("and now something else")
        # Answered after the prompt was read, because the CLI reads line by line.
        await client.get_mcp_status()
        stage.write("go", "")
        await stage.read(stream)


@program(say("half") + stall(), say("after"))
async def client_interrupting(sdk: Any, stage: Stage) -> None:
    options = stage.options(include_partial_messages=True)
    async with sdk.ClaudeSDKClient(options) as client:
        await client.query("go")
        stream = client.receive_response()
        await stage.read_until(stream, lambda each: "half" in str(getattr(each, "event", "")))
        stage.note("interrupt", await client.interrupt())
        await stage.read(stream)
        await client.query("and now?")
        await stage.read(client.receive_response())


@program(call("Bash", command="touch begun && tail -f /dev/null"), say("after"))
async def client_interrupting_a_tool(sdk: Any, stage: Stage) -> None:
    async with sdk.ClaudeSDKClient(stage.options(allowed_tools=["Bash"])) as client:
        await client.query("sleep")
        stream = client.receive_response()
        await stage.read_until(stream, lambda each: isinstance(each, sdk.AssistantMessage))
        await stage.file("begun")
        await client.interrupt()
        await stage.read(stream)
        await client.query("and now?")
        await stage.read(client.receive_response())


@program(say("still here"))
async def client_interrupting_nothing(sdk: Any, stage: Stage) -> None:
    async with sdk.ClaudeSDKClient(stage.options()) as client:
        await stage.trying("interrupt", client.interrupt())
        await client.query("hello?")
        await stage.read(client.receive_response())


@program(say("yes"))
async def client_with_an_own_uuid(sdk: Any, stage: Stage) -> None:
    async with sdk.ClaudeSDKClient(stage.options()) as client:
        await client.query(prompts(user("mine", uuid=OWN_UUID, session_id="default")))
        await stage.read(client.receive_response())


@program(say("yes"), say("again"))
async def client_with_the_replay_flag(sdk: Any, stage: Stage) -> None:
    options = stage.options(extra_args={"replay-user-messages": None})
    async with sdk.ClaudeSDKClient(options) as client:
        await client.query("one")
        await stage.read(client.receive_response())
        await client.query(prompts(user("two", uuid=OWN_UUID)))
        await stage.read(client.receive_response())


@program(say("yes"))
async def client_connected_with_a_prompt(sdk: Any, stage: Stage) -> None:
    client = sdk.ClaudeSDKClient(stage.options())
    await client.connect("at once")
    await stage.read(client.receive_response())
    await client.disconnect()


@program(say("one"), say("two"))
async def client_connected_with_an_iterable(sdk: Any, stage: Stage) -> None:
    client = sdk.ClaudeSDKClient(stage.options())
    await client.connect(prompts(user("first"), user("second")))
    await stage.trying("messages", stage.read(client.receive_messages()))
    await client.disconnect()


@program(say("one"), say("two"))
async def client_querying_with_an_iterable(sdk: Any, stage: Stage) -> None:
    async with sdk.ClaudeSDKClient(stage.options()) as client:
        await client.query(prompts(user("first")))
        await stage.read(client.receive_response())
        await client.query(prompts(user("second")), session_id="other")
        await stage.read(client.receive_response())


@program(say("a picture"))
async def client_sending_blocks(sdk: Any, stage: Stage) -> None:
    pixel = (
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"
        "rkJggg=="
    )
    image = {"type": "base64", "media_type": "image/png", "data": pixel}
    blocks = [{"type": "text", "text": "see"}, {"type": "image", "source": image}]
    message = {"type": "user", "message": {"role": "user", "content": blocks}}
    async with sdk.ClaudeSDKClient(stage.options()) as client:
        await client.query(prompts(message))
        await stage.read(client.receive_response())
    kinds = [block["type"] for block in stage.model.asked[0].body["messages"][-1]["content"]]
    stage.note("image sent", "image" in kinds)


@program(say("one"), say("two"), say("three"))
async def client_setting_the_model(sdk: Any, stage: Stage) -> None:
    async with sdk.ClaudeSDKClient(stage.options(model="claude-sonnet-4-5")) as client:
        for model in ("claude-haiku-4-5", None):
            await client.query("go")
            await stage.read(client.receive_response())
            stage.note("set_model", await client.set_model(model))
        await client.query("go")
        await stage.read(client.receive_response())
    stage.note("models", [request.model for request in stage.model.asked])


@program(
    call("Write", file_path="a.txt", content="a"),
    say("denied"),
    call("Write", file_path="b.txt", content="b"),
    say("written"),
)
async def client_setting_the_permission_mode(sdk: Any, stage: Stage) -> None:
    async with sdk.ClaudeSDKClient(stage.options()) as client:
        await client.query("write")
        await stage.read(client.receive_response())
        stage.note("set_permission_mode", await client.set_permission_mode("acceptEdits"))
        await client.query("write again")
        await stage.read(client.receive_response())
    stage.note("files", sorted(each.name for each in stage.cwd.glob("*.txt")))


@program()
async def client_setting_a_wrong_permission_mode(sdk: Any, stage: Stage) -> None:
    async with sdk.ClaudeSDKClient(stage.options()) as client:
        await stage.trying("nonsense", client.set_permission_mode("nonsense"))
        await stage.trying("bypass", client.set_permission_mode("bypassPermissions"))


@program(say("hello"))
async def client_asking_for_context_usage(sdk: Any, stage: Stage) -> None:
    async with sdk.ClaudeSDKClient(stage.options()) as client:
        await client.query("hi")
        await stage.read(client.receive_response())
        usage = await client.get_context_usage()
        stage.note("keys", sorted(usage))
        stage.note("categories", [each["name"] for each in usage["categories"]])


@program()
async def client_asking_for_the_server_info(sdk: Any, stage: Stage) -> None:
    client = sdk.ClaudeSDKClient(stage.options())
    await stage.trying("before", client.get_server_info())
    await client.connect()
    info = await client.get_server_info()
    stage.note("keys", sorted(info))
    stage.note("commands", "compact" in [each["name"] for each in info["commands"]])
    await client.disconnect()
    await stage.trying("after", client.get_server_info())


@program(
    call("Write", file_path="a.txt", content="changed"),
    say("written"),
)
async def client_rewinding_files(sdk: Any, stage: Stage) -> None:
    stage.write("a.txt", "as it was")
    options = stage.options(
        enable_file_checkpointing=True,
        permission_mode="acceptEdits",
        extra_args={"replay-user-messages": None},
    )
    async with sdk.ClaudeSDKClient(options) as client:
        await client.query("read a.txt first, then change it")
        found = await stage.read(client.receive_response())
        ids = [each.uuid for each in found if isinstance(each, sdk.UserMessage) and each.uuid]
        stage.note("text", (stage.cwd / "a.txt").read_text())
        await stage.trying("rewind", client.rewind_files(ids[0]))
        stage.note("text", (stage.cwd / "a.txt").read_text())
        await stage.trying("rewind to nowhere", client.rewind_files(OWN_UUID))


@program()
async def client_rewinding_without_checkpoints(sdk: Any, stage: Stage) -> None:
    async with sdk.ClaudeSDKClient(stage.options()) as client:
        await stage.trying("rewind", client.rewind_files(OWN_UUID))


@program(
    call("Bash", command="sleep 60", run_in_background=True), say("started"), say("it was stopped")
)
async def client_stopping_a_task(sdk: Any, stage: Stage) -> None:
    async with sdk.ClaudeSDKClient(stage.options(allowed_tools=["Bash"])) as client:
        await client.query("in the background")
        found = await stage.read(client.receive_response())
        task = next(each for each in found if isinstance(each, sdk.TaskStartedMessage))
        await stage.trying("stop", client.stop_task(task.task_id))
        await stage.trying("stop another", client.stop_task("nothing"))
        stream = client.receive_messages()
        ended = await stage.read_until(
            stream, lambda each: isinstance(each, sdk.TaskNotificationMessage)
        )
        stage.note("status", ended.status)


@program(say("one"))
async def client_disconnecting_twice(sdk: Any, stage: Stage) -> None:
    client = sdk.ClaudeSDKClient(stage.options())
    await stage.trying("disconnect before connect", client.disconnect())
    await client.connect()
    await client.query("go")
    await stage.read(client.receive_response())
    await stage.trying("disconnect", client.disconnect())
    await stage.trying("disconnect again", client.disconnect())


@program()
async def client_before_it_is_connected(sdk: Any, stage: Stage) -> None:
    client = sdk.ClaudeSDKClient(stage.options())
    await stage.trying("query", client.query("too early"))
    await stage.trying("interrupt", client.interrupt())
    await stage.trying("receive_response", stage.read(client.receive_response()))
    await stage.trying("receive_messages", stage.read(client.receive_messages()))
    await stage.trying("set_model", client.set_model("claude-haiku-4-5"))
    await stage.trying("get_mcp_status", client.get_mcp_status())
    await stage.trying("get_context_usage", client.get_context_usage())


@program(say("one"))
async def client_after_it_was_disconnected(sdk: Any, stage: Stage) -> None:
    client = sdk.ClaudeSDKClient(stage.options())
    await client.connect()
    await client.query("go")
    await stage.read(client.receive_response())
    await client.disconnect()
    await stage.trying("query", client.query("too late"))
    await stage.trying("receive_response", stage.read(client.receive_response()))
    await stage.trying("interrupt", client.interrupt())


@program(say("one"), say("two"))
async def client_connected_again(sdk: Any, stage: Stage) -> None:
    client = sdk.ClaudeSDKClient(stage.options())
    for _ in range(2):
        await client.connect()
        await client.query("go")
        await stage.read(client.receive_response())
        await client.disconnect()


@program(say("one"))
async def client_whose_block_raises(sdk: Any, stage: Stage) -> None:
    async with sdk.ClaudeSDKClient(stage.options()) as client:
        await client.query("go")
        await stage.read(client.receive_response())
        raise RuntimeError("of the program")


@program(say("half") + stall(), say("whole"))
async def client_whose_cli_is_killed_in_a_turn(sdk: Any, stage: Stage) -> None:
    options = stage.options(include_partial_messages=True)
    async with sdk.ClaudeSDKClient(options) as client:
        await client.query("go")
        stream = client.receive_response()
        await stage.read_until(stream, lambda each: "half" in str(getattr(each, "event", "")))
        await stage.saved('"type":"user"')
        for pid in stage.cli_pids():
            os.kill(pid, signal.SIGKILL)
        await stage.trying("the rest", stage.read(stream))


@program(say("one"), say("two"))
async def client_whose_cli_is_killed_between_turns(sdk: Any, stage: Stage) -> None:
    async with sdk.ClaudeSDKClient(stage.options()) as client:
        await client.query("go")
        await stage.read(client.receive_response())
        for pid in stage.cli_pids():
            os.kill(pid, signal.SIGKILL)
        await stage.trying("query", client.query("again"))
        await stage.trying("response", stage.read(client.receive_response()))


@program(stall(), say("after"))
async def client_whose_reader_is_cancelled(sdk: Any, stage: Stage) -> None:
    async with sdk.ClaudeSDKClient(stage.options()) as client:
        await client.query("wait")
        reading = asyncio.ensure_future(stage.read(client.receive_response()))
        await stage.asked()
        reading.cancel()
        await asyncio.wait([reading])
        stage.note("cancelled", reading.cancelled())
        await stage.release()
        await stage.trying("the rest", stage.read(client.receive_response()))


@program(fail(400, "no"), say("yes"))
async def client_after_an_error_result(sdk: Any, stage: Stage) -> None:
    async with sdk.ClaudeSDKClient(stage.options()) as client:
        for text in ("first", "second"):
            await client.query(text)
            await stage.read(client.receive_response())


@program(say("one"), say("after"))
async def client_clearing_its_conversation(sdk: Any, stage: Stage) -> None:
    async with sdk.ClaudeSDKClient(stage.options()) as client:
        for text in ("first", "/clear", "second"):
            await client.query(text)
            await stage.read(client.receive_response())


@program(say("one"), say("two"), say("after"))
async def client_compacting_its_conversation(sdk: Any, stage: Stage) -> None:
    async with sdk.ClaudeSDKClient(stage.options()) as client:
        for text in ("first", "second", "/compact", "third"):
            await client.query(text)
            await stage.read(client.receive_response())


@program(when("Deploy to moon", say("deployed")))
async def client_with_a_slash_command(sdk: Any, stage: Stage) -> None:
    stage.write(".claude/commands/deploy.md", "Deploy to $ARGUMENTS")
    async with sdk.ClaudeSDKClient(stage.options()) as client:
        await client.query("/deploy moon")
        await stage.read(client.receive_response())


@program(say("one"), say("two"))
async def client_read_by_two_one_after_the_other(sdk: Any, stage: Stage) -> None:
    async with sdk.ClaudeSDKClient(stage.options()) as client:
        await client.query("first")
        await stage.read(client.receive_messages(), count=2)
        await stage.read(client.receive_response())
        await client.query("second")
        await stage.read(client.receive_response())


@program(
    call(
        "Bash", command="while [ ! -e go ]; do sleep 0.02; done; echo late", run_in_background=True
    ),
    say("started"),
    say("it has ended"),
)
async def client_with_background_work(sdk: Any, stage: Stage) -> None:
    async with sdk.ClaudeSDKClient(stage.options(allowed_tools=["Bash"])) as client:
        await client.query("in the background")
        await stage.read(client.receive_response())
        stage.write("go", "")
        await stage.read(client.receive_response())
