from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.testing.request import ModelRequest
from steersman.testing.script import (
    Answer,
    Cut,
    Fail,
    Script,
    Stall,
    Step,
    Text,
    Thinking,
    ToolUse,
    Usage,
    call,
    calls,
    chunked,
    cut,
    echo,
    fail,
    say,
    stall,
    step,
    think,
    when,
)

GO = ModelRequest.of_prompt("go")
STOP = ModelRequest.of_prompt("stop")


def subagent(prompt: str, system: str = "") -> ModelRequest:
    mark = "x-anthropic-billing-header: cc_is_subagent=true;"
    return ModelRequest(
        {"system": f"{mark}\n{system}", "messages": [{"role": "user", "content": prompt}]}
    )


def session_title() -> ModelRequest:
    schema = {"type": "object", "properties": {"title": {"type": "string"}}}
    return ModelRequest(
        {
            "output_config": {"format": {"type": "json_schema", "schema": schema}},
            "messages": [{"role": "user", "content": "name this"}],
        }
    )


def test_a_step_is_the_sum_of_its_parts() -> None:
    whole = think("hm") + say("I look") + calls(call("Read", file_path="a"), call("Bash", id_="t1"))

    assert whole == Step(
        (
            Thinking("hm"),
            Text(("I look",)),
            ToolUse("Read", {"file_path": "a"}),
            ToolUse("Bash", {}, "t1"),
        )
    )


def test_step_makes_one_step_of_parts_and_steps() -> None:
    usage = Usage(input_tokens=7)

    made = step(Text(("a",)), call("Bash"), usage=usage, stop_reason="max_tokens")

    assert made == Step((Text(("a",)), ToolUse("Bash")), usage, "max_tokens")


def test_the_last_stop_reason_and_usage_of_a_sum_win() -> None:
    whole = say("a", stop_reason="refusal", usage=Usage(1)) + say("b").stopping("max_tokens")

    assert (whole.stop_reason, whole.usage) == ("max_tokens", Usage(1))
    assert whole.using(Usage(2)).usage == Usage(2)


def test_arguments_that_are_no_names_go_in_a_mapping() -> None:
    assert call("Grep", {"-n": True}, pattern="x") == Step(
        (ToolUse("Grep", {"-n": True, "pattern": "x"}),)
    )


def test_broken_input_stays_as_it_was_written() -> None:
    assert call("Bash", '{"command": ') == Step((ToolUse("Bash", '{"command": '),))


def test_chunks_that_do_not_make_the_text_are_refused() -> None:
    with pytest.raises(ValueError, match="do not make"):
        say("hello", chunks=["he", "lo"])


def test_given_chunks_are_the_text() -> None:
    assert say(chunks=["he", "llo"]) == say("hello", chunks=["he", "llo"])


@given(text=st.text(), count=st.integers(1, 9))
def test_any_number_of_chunks_makes_the_text(text: str, count: int) -> None:
    chunks = chunked(text, count)

    assert len(chunks) == count
    assert "".join(chunks) == text


def test_plain_steps_are_taken_in_order_and_then_the_prompt_is_echoed() -> None:
    script = Script(say("one"), say("two"))

    answers = [script.answer(GO) for _ in range(3)]

    assert answers == [say("one"), say("two"), say("Echo: go")]


def test_a_strict_script_refuses_what_it_has_no_step_for_and_tells_once() -> None:
    script = Script(strict=True)

    answers = [script.answer(GO), script.answer(GO)]

    complaint = "no step left for the main request 'go'"
    assert answers == [fail(400, f"script: {complaint}")] * 2
    with pytest.raises(AssertionError) as told:
        script.assert_complete()
    assert str(told.value) == complaint


def test_a_function_sees_the_request_it_answers() -> None:
    script = Script(lambda request: say(request.last_text.upper()))

    assert script.answer(GO) == say("GO")


def test_a_function_that_raises_refuses_the_request_and_is_told_at_the_end() -> None:
    def broken(_: ModelRequest) -> Step:
        raise KeyError("x")

    script = Script(broken)

    answer = script.answer(GO)

    assert answer == fail(400, "script: broken raised KeyError('x')")
    with pytest.raises(AssertionError, match="broken raised KeyError"):
        script.assert_complete()


def test_scenes_answer_their_own_prompts_in_any_order() -> None:
    script = Script(
        say("other"), when("go", say("went"), say("further")), when("stop", say("stood"))
    )

    answers = [script.answer(request) for request in (STOP, GO, ModelRequest.of_prompt("?"), GO)]

    assert answers == [say("stood"), say("went"), say("other"), say("further")]
    script.assert_complete()


def test_a_prompt_whose_scene_has_ended_does_not_take_plain_steps() -> None:
    script = Script(say("for others"), when("go", say("went")))
    script.answer(GO)

    assert script.answer(GO) == say("Echo: go")


def test_scenes_for_the_same_prompt_follow_each_other() -> None:
    script = Script(
        when("go", say("first")), when(lambda request: "g" in request.last_text, say("second"))
    )

    assert [script.answer(GO), script.answer(GO)] == [say("first"), say("second")]


def test_a_branch_answers_the_subagents_that_it_names() -> None:
    script = Script(say("main")).branch("look around", say("found")).branch("poet", say("rhymed"))

    answers = [
        script.answer(subagent("please look around")),
        script.answer(subagent("write", system="You are a poet.")),
        script.answer(ModelRequest.of_prompt("look around")),
    ]

    assert answers == [say("found"), say("rhymed"), say("main")]
    script.assert_complete()


def test_a_subagent_without_a_branch_takes_no_step_of_the_conversation() -> None:
    script = Script(say("main"))

    assert script.answer(subagent("look")) == say("Echo: look")
    assert script.answer(GO) == say("main")


def test_what_the_cli_asks_on_its_own_account_takes_no_step() -> None:
    script = Script(say("main"), strict=True).branch("name", say("wrong"))

    assert script.answer(session_title()) == say('{"title": "scripted"}')
    assert script.answer(GO) == say("main")


def test_a_function_may_branch_off_what_the_cli_asks_on_its_own_account() -> None:
    script = Script().branch(lambda request: "name" in request.first_text, say('{"title": "Mine"}'))

    assert script.answer(session_title()) == say('{"title": "Mine"}')


def test_a_refused_request_is_refused_again_until_the_conversation_goes_on() -> None:
    script = Script(fail(400, "bad"), say("good"))

    answers = [script.answer(request) for request in (GO, GO, STOP)]

    assert answers == [fail(400, "bad"), fail(400, "bad"), say("good")]


@pytest.mark.parametrize("failure", [fail(529), fail(400, once=True)])
def test_a_passing_failure_is_over_when_the_request_is_sent_again(failure: Step) -> None:
    script = Script(failure, say("good"))

    assert [script.answer(GO), script.answer(GO)] == [failure, say("good")]


def test_a_step_that_only_waits_is_followed_by_the_echo() -> None:
    assert Script(stall(1)).answer(GO) == stall(1) + echo(GO)


def test_an_empty_step_says_nothing() -> None:
    assert Script(step()).answer(GO) == step()


@pytest.mark.parametrize(
    ("left", "named"),
    [
        (say("hi", chunks=2), "say('hi')"),
        (think("hm") + call("Bash", command="ls"), "think('hm') + call('Bash', command='ls')"),
        (call("Bash", "{"), "call('Bash', '{')"),
        (
            step(Fail(529, "busy"), Stall(), Stall(2), Cut()),
            "fail(529, 'busy') + stall() + stall(2) + cut()",
        ),
        (echo, "echo"),
    ],
)
def test_the_first_step_that_was_not_reached_is_named(left: Answer, named: str) -> None:
    script = Script(say("one"), left, cut())
    script.answer(GO)

    with pytest.raises(AssertionError) as told:
        script.assert_complete()

    assert str(told.value) == f"step 2 of 3 was not reached: {named}"


def test_scenes_and_branches_that_were_not_reached_are_named_too() -> None:
    script = Script(when("go", say("a"))).branch("sub", say("b"))

    with pytest.raises(AssertionError) as told:
        script.assert_complete()

    assert str(told.value) == (
        "when('go') step 1 of 1 was not reached: say('a'); "
        "branch('sub') step 1 of 1 was not reached: say('b')"
    )


def test_a_misspelt_tool_of_a_call_fails_the_request_and_is_a_surprise() -> None:
    script = Script(call("mcp__functions__cuont"), strict=True)
    request = ModelRequest(
        {
            "tools": [{"name": "Read"}, {"name": "mcp__functions__count"}],
            "messages": [{"role": "user", "content": "go"}],
        }
    )

    answer = script.answer(request)

    assert isinstance(answer.parts[0], Fail)
    with pytest.raises(AssertionError, match="did you mean 'mcp__functions__count'"):
        script.assert_complete()


@pytest.mark.parametrize("name", ["mcp__functions__count", "Teleport", "Reed"])
def test_a_call_of_a_tool_that_is_offered_or_unlike_any_other_is_sent(name: str) -> None:
    script = Script(call(name))
    request = ModelRequest(
        {
            "tools": [{"name": "Read"}, {"name": "mcp__functions__count"}],
            "messages": [{"role": "user", "content": "go"}],
        }
    )

    assert script.answer(request) == call(name)
