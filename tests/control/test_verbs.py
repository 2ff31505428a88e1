from __future__ import annotations

import inspect
import pickle
import re
from pathlib import Path
from typing import Any, ClassVar, Generic, get_args

import pytest

from steersman import _json, control
from steersman._struct import fields_of, read_leniently, set_source
from steersman.control import (
    Answer,
    ApplyFlagSettings,
    BackgroundTasks,
    EndSession,
    FileSuggestions,
    GenerateSessionTitle,
    GetBinaryVersion,
    GetContextUsage,
    GetHooksListing,
    GetPlan,
    GetSessionCost,
    GetSettings,
    GetTaskOutput,
    GetUsage,
    Initialized,
    Interrupt,
    ListModels,
    ListPermissionRules,
    McpCall,
    McpReadResource,
    McpReconnect,
    McpServers,
    McpSetServers,
    McpStatus,
    McpToggle,
    ModelInfo,
    Part,
    PluginsReloaded,
    ReadFile,
    RegisterRepoRoot,
    ReloadOutputStyles,
    ReloadPlugins,
    ReloadSkills,
    RenameSession,
    RewindFiles,
    SeedReadState,
    SetColor,
    SetHasSubscribers,
    SetMaxThinkingTokens,
    SetMcpPermissionModeOverride,
    SideQuestion,
    StopTask,
    UpdateSettings,
    Verb,
)
from steersman.control.verbs import AnswerT
from tests.live import test_verbs as live
from tests.samples import Frame

VERBS: list[type[Verb[Any]]] = [
    each
    for each in (getattr(control, name) for name in control.__all__)
    if isinstance(each, type) and issubclass(each, Verb) and each is not Verb
]

ANSWERS: list[type[Part]] = [
    each
    for each in (getattr(control, name) for name in control.__all__)
    if isinstance(each, type) and issubclass(each, Part)
]

# The control requests that the official TypeScript SDK declares and a host may send.
DECLARED = {
    "apply_flag_settings",
    "background_tasks",
    "cancel_async_message",
    "file_suggestions",
    "get_binary_version",
    "get_context_usage",
    "get_hooks_listing",
    "get_session_cost",
    "get_settings",
    "get_task_output",
    "get_usage",
    "initialize",
    "interrupt",
    "list_models",
    "list_permission_rules",
    "mcp_call",
    "mcp_message",
    "mcp_read_resource",
    "mcp_reconnect",
    "mcp_set_servers",
    "mcp_status",
    "mcp_toggle",
    "read_file",
    "register_repo_root",
    "reload_output_styles",
    "reload_plugins",
    "reload_skills",
    "rename_session",
    "rewind_files",
    "seed_read_state",
    "set_color",
    "set_has_subscribers",
    "set_max_thinking_tokens",
    "set_model",
    "set_permission_mode",
    "stop_task",
    "update_settings",
}

# Answered by the CLI, or sent by a method of the official SDK, though not declared.
UNDECLARED = {
    "end_session",
    "generate_session_title",
    "get_plan",
    "set_mcp_permission_mode_override",
    "side_question",
}

INITIALIZE = "Initialize"
"""Its many fields are those of the options."""

PAGE = Path(__file__).parents[2] / "docs" / "verbs.md"


def tag_of(verb: type[Verb[Any]]) -> str:
    return str(verb.__struct_config__.tag)


def test_there_is_one_class_for_every_declared_request_and_the_known_others() -> None:
    tags = [tag_of(verb) for verb in VERBS]

    assert sorted(tags) == sorted(DECLARED | UNDECLARED)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_called_what_the_cli_calls_it(verb: type[Verb[Any]]) -> None:
    assert verb.__name__ == "".join(word.capitalize() for word in tag_of(verb).split("_"))


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_answered_with_what_its_type_says(verb: type[Verb[Any]]) -> None:
    (base,) = verb.__orig_bases__  # type: ignore[attr-defined]

    assert get_args(base) == (verb.ANSWER,)


class Pong(Answer, frozen=True, kw_only=True):
    pass


class Ping(Verb[Pong], frozen=True, kw_only=True, tag="ping"):
    pass


class LoudPing(Ping, frozen=True, kw_only=True, tag="loud_ping"):
    loud: bool = True


class Bare(Verb, frozen=True, kw_only=True, tag="bare"):  # type: ignore[type-arg]
    pass


class Stated(Verb[Answer], frozen=True, kw_only=True, tag="stated"):
    ANSWER: ClassVar[type[Answer]] = Pong


class Listing(Verb[AnswerT], Generic[AnswerT], frozen=True, kw_only=True, tag="listing"):
    pass


class Pongs(Listing[Pong], frozen=True, kw_only=True, tag="pongs"):
    pass


@pytest.mark.parametrize(
    ("verb", "answer"),
    [
        (Ping, Pong),
        (LoudPing, Pong),
        (Bare, Answer),
        (Stated, Pong),
        (Listing, Answer),
        (Pongs, Pong),
        (Verb, Answer),
    ],
)
def test_a_verb_of_yours_has_its_answer_from_its_type_parameter(
    verb: type[Verb[Any]], answer: type[Answer]
) -> None:
    assert verb.ANSWER is answer


def test_a_verb_survives_pickling() -> None:
    assert pickle.loads(pickle.dumps(LoudPing(loud=False))) == LoudPing(loud=False)
    assert pickle.loads(pickle.dumps(ReloadPlugins(refuse_if_busy=True))).ANSWER is PluginsReloaded


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_can_be_empty(answer: type[Part]) -> None:
    assert read_leniently(answer, {}) == answer()


@pytest.mark.parametrize("answer", ANSWERS)
def test_one_strange_item_does_not_hide_the_others(answer: type[Part]) -> None:
    lists = [field for field in fields_of(answer) if is_list_of_parts(field.type)]

    assert {field.name for field in lists} == set(answer.READERS)
    for field in lists:
        (part,) = get_args(field.type)
        odd = {each.encode_name: object for each in fields_of(part)}
        found = [{"unknown": 1}, "no object", odd]

        value = set_source(read_leniently(answer, {field.encode_name: found}), {})

        assert getattr(value, field.name) == [part(), part()]
        assert [each.raw for each in getattr(value, field.name)] == [found[0], odd]


def is_list_of_parts(wanted: Any) -> bool:
    return any(isinstance(each, type) and issubclass(each, Part) for each in get_args(wanted))


def test_the_parts_of_an_answer_keep_their_unknown_fields() -> None:
    found = {
        "mcpServers": [
            {"name": "a", "later": 1, "serverInfo": {"name": "x", "new": 2}},
            {"name": "b", "tools": [{"name": "t", "hint": 3}]},
        ]
    }

    read = set_source(read_leniently(McpServers, found), found)

    first, second = read.servers
    assert read.raw is found
    assert (first.raw, first.server_info.raw) == (found["mcpServers"][0], {"name": "x", "new": 2})
    assert [tool.raw for tool in second.tools] == [{"name": "t", "hint": 3}]
    assert second.server_info.raw == {}


def test_a_part_that_was_made_here_tells_its_own_fields() -> None:
    assert ModelInfo(value="opus", display_name="Opus").raw["displayName"] == "Opus"


def test_what_an_answer_lacks_is_not_shared_between_two() -> None:
    first, second = read_leniently(Initialized, {}), read_leniently(Initialized, {})

    assert first.account is not second.account
    assert first.commands is not second.commands


@pytest.mark.parametrize(
    ("verb", "needs"),
    [
        (Interrupt(), set()),
        (Interrupt(cancel_queued=True), {"interrupt_cancel_queued_v1"}),
        (McpReadResource(server_name="a", uri="ui://a"), {"mcp_read_resource_v1"}),
        (McpCall(tool="mcp__a__b"), set()),
        (
            McpCall(tool="mcp__a__b", check_permissions=True, result_not_for_model=True),
            {"mcp_call_check_permissions_v1", "mcp_call_result_not_for_model_v1"},
        ),
        (ReloadPlugins(refuse_if_busy=True), {"reload_plugins_refuse_if_busy_v1"}),
    ],
)
def test_a_verb_tells_which_capabilities_it_needs(verb: Verb[Any], needs: set[str]) -> None:
    assert verb.needs == needs


@pytest.mark.parametrize("verb", VERBS)
def test_capabilities_belong_to_fields_that_are_there(verb: type[Verb[Any]]) -> None:
    assert set(verb.FIELD_CAPABILITIES) <= {field.name for field in fields_of(verb)}


def test_only_what_takes_long_is_given_more_time() -> None:
    patient = {tag_of(verb): verb.TIMEOUT for verb in VERBS if verb.TIMEOUT is not None}

    assert patient == {
        "generate_session_title": 120,
        "get_context_usage": 120,
        "get_usage": 120,
        "initialize": 120,
        "mcp_call": 150,
        "mcp_read_resource": 120,
        "mcp_reconnect": 120,
        "mcp_set_servers": 120,
        "mcp_toggle": 120,
        "register_repo_root": 120,
        "reload_plugins": 120,
        "side_question": 300,
    }


def test_a_tool_that_may_take_long_is_waited_for() -> None:
    calls = [McpCall(tool="mcp__a__b"), McpCall(tool="mcp__a__b", timeout_ms=600_000)]

    assert [each.patience for each in calls] == [150, 630]
    assert Interrupt().patience is None


@pytest.mark.parametrize(
    ("verb", "fields"),
    [
        (GetContextUsage(), {}),
        (GetContextUsage(detail="full"), {"detail": "full"}),
        (GetSessionCost(), {}),
        (GetUsage(skip_behaviors=True), {"skip_behaviors": True}),
        (RewindFiles(user_message_id="u"), {"user_message_id": "u"}),
        (
            RewindFiles(user_message_id="u", dry_run=True),
            {"user_message_id": "u", "dry_run": True},
        ),
        (
            ReadFile(path="f", max_bytes=3, encoding="base64"),
            {"path": "f", "max_bytes": 3, "encoding": "base64"},
        ),
        (SeedReadState(path="f", mtime=1.5), {"path": "f", "mtime": 1.5}),
        (FileSuggestions(query=""), {"query": ""}),
        (
            RegisterRepoRoot(directory="d", reload_skills=True),
            {"directory": "d", "reload_skills": True},
        ),
        (McpStatus(), {}),
        (McpStatus(live_reply=True), {"liveReply": True}),
        (McpReconnect(server_name="s"), {"serverName": "s"}),
        (McpToggle(server_name="s", enabled=False), {"serverName": "s", "enabled": False}),
        (McpSetServers(servers={}), {"servers": {}}),
        (McpSetServers(servers={"a": {"command": "x"}}), {"servers": {"a": {"command": "x"}}}),
        (
            McpCall(tool="mcp__a__b", arguments={"x": 1}),
            {"tool": "mcp__a__b", "arguments": {"x": 1}},
        ),
        (McpReadResource(server_name="s", uri="ui://x"), {"serverName": "s", "uri": "ui://x"}),
        (
            SetMcpPermissionModeOverride(server_name="s", mode=None),
            {"serverName": "s", "mode": None},
        ),
        (ListModels(), {}),
        (SetMaxThinkingTokens(), {}),
        (SetMaxThinkingTokens(max_thinking_tokens=None), {"max_thinking_tokens": None}),
        (SetMaxThinkingTokens(max_thinking_tokens=0), {"max_thinking_tokens": 0}),
        (SetMaxThinkingTokens(thinking_display="omitted"), {"thinking_display": "omitted"}),
        (ListPermissionRules(), {}),
        (GetSettings(), {}),
        (GetHooksListing(), {}),
        (ApplyFlagSettings(settings={"model": None}), {"settings": {"model": None}}),
        (
            UpdateSettings(source="localSettings", settings={"outputStyle": "default"}),
            {"source": "localSettings", "settings": {"outputStyle": "default"}},
        ),
        (ReloadSkills(), {}),
        (ReloadPlugins(), {}),
        (ReloadPlugins(hold_on_cache_impact=True), {"hold_on_cache_impact": True}),
        (ReloadOutputStyles(), {}),
        (StopTask(task_id="t"), {"task_id": "t"}),
        (BackgroundTasks(), {}),
        (BackgroundTasks(tool_use_id="t"), {"tool_use_id": "t"}),
        (GetTaskOutput(task_id="t"), {"task_id": "t"}),
        (RenameSession(title="t", source="host"), {"title": "t", "source": "host"}),
        (SetColor(color="blue"), {"color": "blue"}),
        (SetHasSubscribers(has_subscribers=False), {"has_subscribers": False}),
        (GetBinaryVersion(), {}),
        (SideQuestion(question="why?"), {"question": "why?"}),
        (GenerateSessionTitle(description="d"), {"description": "d"}),
        (
            GenerateSessionTitle(description="d", persist=False),
            {"description": "d", "persist": False},
        ),
        (GetPlan(), {}),
        (EndSession(), {}),
        (EndSession(reason="done"), {"reason": "done"}),
    ],
    ids=lambda value: value.operation if isinstance(value, Verb) else "",
)
def test_a_verb_is_written_as_the_cli_reads_it(verb: Verb[Any], fields: Frame) -> None:
    assert _json.loads(_json.dumps(verb)) == {"subtype": verb.operation, **fields}


@pytest.mark.parametrize("verb", VERBS)
def test_the_page_about_verbs_tells_of_each(verb: type[Verb[Any]]) -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \| .* \|$", PAGE.read_text(), re.MULTILINE)
    fields = ", ".join(f"`{each.name}`" for each in fields_of(verb) if verb.__name__ != INITIALIZE)
    answer = "" if verb.ANSWER is Answer else f"`{verb.ANSWER.__name__}`"

    assert (verb.__name__, fields, answer) in rows


def test_the_page_about_verbs_tells_of_no_other() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)

    assert sorted(rows) == sorted(verb.__name__ for verb in VERBS)


def test_every_verb_was_put_to_the_stock_cli_or_says_why_not() -> None:
    assert set(live.EXERCISED) == set(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_the_live_test_of_a_verb_uses_it(verb: type[Verb[Any]]) -> None:
    exercise = live.EXERCISED[verb]

    assert not isinstance(exercise, str), "every verb of today can be tried"
    assert re.search(rf"\b{verb.__name__}\(|\.initialized\b", inspect.getsource(exercise))
