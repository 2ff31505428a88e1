from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from steersman._struct import WireStruct
from steersman.messages import User, parse_message
from steersman.messages.builtin import (
    ALIASES,
    INPUTS,
    LISTS,
    OUTPUTS,
    AskUserQuestionInput,
    BashInput,
    BashOutput,
    Choice,
    FileEditOutput,
    FileReadOutput,
    GrepInput,
    Hunk,
    ListMcpResourcesOutput,
    McpResource,
    Question,
    ToolInput,
    ToolOutput,
    typed_input,
    typed_output,
)
from tests.samples import Frame, alone
from tests.samples.strategies import ANY_JSON, ANY_TEXT

SCHEMAS = {row["tool"]: row["schema"] for row in alone("recorded", "tool_schemas")}
RESULTS = alone("recorded", "tool_results")
DECLARED = alone("declared", "tool_results")


def required_of(cls: type[WireStruct]) -> set[str]:
    """What a tool must be given: the fields that are not None when they are left out."""
    made = cls()
    return {
        field.encode_name for field in structs.fields(cls) if getattr(made, field.name) is not None
    }


@pytest.mark.parametrize("tool", SCHEMAS)
def test_a_tool_that_the_cli_offered_has_the_fields_of_its_schema(tool: str) -> None:
    schema = SCHEMAS[tool]

    cls = INPUTS[tool]

    assert required_of(cls) == set(schema.get("required", ()))
    assert set(schema["properties"]) - set(cls.__struct_encode_fields__) == set()


@pytest.mark.parametrize("row", RESULTS, ids=lambda row: row["tool"])
def test_what_a_tool_was_given_is_read_in_its_class_field_by_field(row: Frame) -> None:
    given = typed_input(row["tool"], row["input"])

    assert isinstance(given, ToolInput)
    assert known_in(given) == row["input"]
    assert given.raw == row["input"]


@pytest.mark.parametrize("row", RESULTS + DECLARED, ids=lambda row: row["tool"])
def test_what_a_tool_gave_back_is_read_in_its_class(row: Frame) -> None:
    output = typed_output(row["tool"], row["output"])

    if isinstance(row["output"], str):
        assert output == row["output"]
        return
    assert type(output) is OUTPUTS[row["tool"]]
    whole = (
        {LISTS[type(output)]: row["output"]} if isinstance(row["output"], list) else row["output"]
    )
    assert output.raw == whole
    known = known_in(output)
    assert known
    assert all(holds(whole[name], value) for name, value in known.items())


def test_every_tool_with_an_output_has_a_sample_of_it() -> None:
    assert {row["tool"] for row in RESULTS + DECLARED} >= set(OUTPUTS)


def known_in(value: WireStruct) -> dict[str, Any]:
    """The fields that are there, as they stand on the wire."""
    names = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
    found = {wire: plain(getattr(value, name)) for wire, name in names}
    return {wire: each for wire, each in found.items() if each is not None}


def plain(value: Any) -> Any:
    if isinstance(value, WireStruct):
        return known_in(value)
    return [plain(each) for each in value] if isinstance(value, list) else value


def holds(whole: Any, part: Any) -> bool:
    """Whether `part` says nothing that `whole` does not."""
    if isinstance(part, dict):
        return all(name in whole and holds(whole[name], each) for name, each in part.items())
    if isinstance(part, list):
        return len(part) == len(whole) and all(map(holds, whole, part))
    return bool(whole == part)


def test_a_field_that_does_not_fit_is_its_default_and_its_neighbours_stay() -> None:
    given = {"command": "ls", "timeout": "soon", "run_in_background": True}

    read = typed_input("Bash", given)

    assert read == BashInput(command="ls", run_in_background=True)
    assert isinstance(read, BashInput)
    assert read.raw is given


def test_flags_have_words() -> None:
    read = typed_input("Grep", {"pattern": "x", "-A": 2, "-i": True})

    assert read == GrepInput(pattern="x", lines_after=2, ignore_case=True)


def test_what_stands_inside_an_input_knows_where_it_came_from() -> None:
    option = {"label": "Blue", "description": "b", "new": 1}
    asked = {"question": "Which?", "header": "W", "options": [option], "multiSelect": "no"}

    read = typed_input("AskUserQuestion", {"questions": [asked, "strange"]})

    assert isinstance(read, AskUserQuestionInput)
    assert read.questions == [
        Question(question="Which?", header="W", options=[Choice(label="Blue", description="b")]),
        Question(),
    ]
    assert [each.raw for each in read.questions] == [asked, {}]
    assert read.questions[0].options[0].raw == option


def test_an_older_name_of_a_tool_means_the_same() -> None:
    assert set(ALIASES.values()) <= set(INPUTS)
    assert type(typed_input("Task", {})) is INPUTS["Agent"]
    assert type(typed_output("KillShell", {})) is OUTPUTS["TaskStop"]


def test_a_bare_list_stands_in_a_field() -> None:
    found = [{"uri": "u", "name": "n", "server": "s", "mimeType": "m"}]

    output = typed_output("ListMcpResourcesTool", found)

    assert output == ListMcpResourcesOutput(
        resources=[McpResource(uri="u", name="n", server="s", mime_type="m")]
    )
    assert output.resources[0].raw == found[0]


@pytest.mark.parametrize("value", [None, "Error: no", [{"type": "text"}], {"a": 1}])
@pytest.mark.parametrize("tool", ["mcp__calc__add", "BrandNew"])
def test_what_a_foreign_tool_gave_back_stays_as_it_is(tool: str, value: Any) -> None:
    assert typed_output(tool, value) is value


def test_a_message_and_the_name_of_its_tool_are_enough() -> None:
    message = parse_message(
        {"type": "user", "tool_use_result": {"stdout": "hi", "stderr": "", "interrupted": False}}
    )
    assert isinstance(message, User)

    match typed_output("Bash", message.tool_use_result):
        case BashOutput(stdout=stdout, interrupted=False):
            assert stdout == "hi"
        case other:
            raise AssertionError(other)


def test_an_edit_tells_its_places_and_a_read_its_lines() -> None:
    outputs = {row["tool"]: typed_output(row["tool"], row["output"]) for row in reversed(RESULTS)}

    edit, read = outputs["Edit"], outputs["Read"]

    assert isinstance(edit, FileEditOutput)
    assert edit.structured_patch == [
        Hunk(old_start=1, old_lines=2, new_start=1, new_lines=2, lines=["-hello", "+bye", " world"])
    ]
    assert isinstance(read, FileReadOutput)
    assert read.file
    assert (read.type, read.file.content) == ("text", "hello\nworld\n")


@given(
    tool=st.sampled_from(sorted(INPUTS)),
    data=st.data(),
    added=st.dictionaries(ANY_TEXT, ANY_JSON, max_size=2),
)
def test_nothing_that_a_model_may_write_is_too_much(
    tool: str, data: st.DataObject, added: Frame
) -> None:
    names = INPUTS[tool].__struct_encode_fields__
    given = {**added, **{name: data.draw(ANY_JSON) for name in names[:4]}}

    read = typed_input(tool, given)

    assert isinstance(read, ToolInput)
    assert read.raw is given
    assert json.dumps(read.raw) == json.dumps(given)


@given(tool=st.sampled_from(sorted(OUTPUTS)), data=st.data(), strange=ANY_JSON)
def test_nothing_that_a_tool_may_give_back_is_too_much(
    tool: str, data: st.DataObject, strange: Any
) -> None:
    given = {name: data.draw(ANY_JSON) for name in OUTPUTS[tool].__struct_encode_fields__[:4]}

    assert isinstance(typed_output(tool, given), ToolOutput)
    typed_output(tool, strange)
