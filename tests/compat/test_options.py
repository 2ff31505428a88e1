"""Options in the official form reach the CLI as the official package passes them."""

from __future__ import annotations

import dataclasses
import json
import os
import warnings
from pathlib import Path
from typing import Any

import claude_agent_sdk
import pytest

import steersman.compat
from steersman import _json
from steersman._factory import tool_servers
from steersman._launch.plan import plan
from steersman.compat import ClaudeAgentOptions
from steersman.compat.options import Translated, TranslationWarning, translate
from tests.compat.canonical import Line, canonical
from tests.compat.option_rows import HOST, SAMPLE, Store, U, prepared, recorded, rows
from tests.compat.recording import Record

HEAD_START = 5
"""Seconds by which the time limit of a hook ends before the CLI's."""

WARNS = "TranslationWarning"

DIFFERENCES: dict[str, tuple[str, Line]] = {
    "tools: tuple": ("a tuple is a list too", {"flags": {"--tools": "Read"}}),
    "tools: odd": ("the same, with a warning", {"warned": [WARNS]}),
    "allowed_tools: odd": ("the same, with a warning", {"warned": [WARNS]}),
    "hooks: bad_pattern": ("the same, with a warning", {"warned": [WARNS]}),
    "tools: text": ("the same, with a warning", {"warned": [WARNS]}),
    "allowed_tools: text": (
        "one rule, not one for each letter",
        {"flags": {"--allowedTools": ["Read"]}, "warned": [WARNS]},
    ),
    "system_prompt: odd": ("the same, with a warning", {"warned": [WARNS]}),
    "output_format: other": ("the same, with a warning", {"warned": [WARNS]}),
    "output_format: no_schema": ("the same, with a warning", {"warned": [WARNS]}),
    "output_format: text": ("the same, with a warning", {"warned": [WARNS]}),
    "env: no_results": ("steersman needs the variable", {"warned": [WARNS]}),
    "env: number": ("another class of error, before the start", {"error": "TypeError"}),
    "extra_args: format": ("the protocol needs the flag", {"warned": [WARNS]}),
    "session_id: odd": ("the CLI refuses it", {"error": "ValueError"}),
    "resume: as another": ("the CLI refuses it", {"error": "ValueError"}),
    "fork_session: alone": ("it has no effect", {"flags": {}, "warned": [WARNS]}),
    "fallback_model: sequence": (
        "a list is several models",
        {"flags": {"--fallback-model": "a,b"}},
    ),
    "fallback_model: the same": (
        "a model that is the main one cannot help",
        {"flags": {"--model": "opus"}, "warned": [WARNS]},
    ),
    "max_thinking_tokens: none": (
        "the form of the official TypeScript SDK",
        {"flags": {"--thinking": "disabled"}},
    ),
    "thinking: odd": ("the same, with a warning", {"warned": [WARNS]}),
    "thinking: no_budget": ("another class of error", {"error": "ValueError"}),
    "thinking: twice": ("the same, with a warning", {"warned": [WARNS]}),
    "hooks: unknown": ("the same, with a warning", {"warned": [WARNS]}),
    "hooks: silent": ("the same, with a warning", {"warned": [WARNS]}),
    "hooks: no_matchers": (
        "the CLI has no matchers there",
        {
            "initialize": {
                "systemPrompt": [""],
                "hooks": {"Stop": [{"matcher": None, "timeout": None}]},
            },
            "warned": [WARNS],
        },
    ),
    "hooks: no_time": (
        "no limit, and a warning",
        {
            "initialize": {
                "systemPrompt": [""],
                "hooks": {"PreToolUse": [{"matcher": "*", "timeout": None}]},
            },
            "warned": [WARNS],
        },
    ),
    "hooks: no_guard": ("the same, with a warning", {"warned": [WARNS]}),
    "user": ("the start raises it, not the translation", {"error": ""}),
}
"""Rows in which ours differs: why, and what differs."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in os.environ:
        monkeypatch.delenv(name)
    for name, value in HOST.items():
        monkeypatch.setenv(name, value)
    return prepared(tmp_path)


def planned(options: ClaudeAgentOptions) -> Record:
    """Return what a session with these options would start, without a start."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            native = translate(options).options
            found = plan(
                native,
                program="claude",
                host_env=os.environ,
                new_session_id="00000000-0000-4000-8000-000000000000",
                servers=tool_servers(native),
            )
        except (ValueError, TypeError, steersman.compat.ClaudeSDKError) as error:
            return Record(error=error, warned=[])
    launch = found.launch
    tokens = [
        each if isinstance(each, str) else f"{each.prefix}/private/{each.name}"
        for each in launch.argv
    ]
    private = {f"/private/{name}": content.decode() for name, content in launch.files.items()}
    named = {token.partition("=")[2] for token in tokens}
    paths = [Path(name) for name in named if name.startswith("/")]
    files = {str(path): path.read_text() for path in paths if path.is_file()}
    return Record(
        argv=tokens[1:],
        env=dict(launch.env),
        files={**files, **private},
        sent=[{"request": _json.loads(_json.dumps(found.initialize))}],
        warned=sorted({each.category.__name__ for each in warned}),
    )


def as_official(row: Line) -> Line:
    """Return a row without what steersman adds to time limits of hooks."""
    for matchers in row.get("initialize", {}).get("hooks", {}).values():
        for each in matchers:
            each["timeout"] = each["timeout"] and each["timeout"] - HEAD_START
    return row


def test_every_option_arrives_as_from_the_official_package(place: Path) -> None:
    sample = json.loads(SAMPLE.read_text())["rows"]
    given = rows(steersman.compat, place)

    found = {
        name: as_official(canonical(planned(ClaudeAgentOptions(**options)), place, HOST))
        for name, options in given.items()
    }

    assert list(found) == list(sample)
    for name, (_reason, differs) in DIFFERENCES.items():
        assert found[name] != sample[name], name
        sample[name] = _changed(sample[name], differs)
        if differs.get("error") == "":
            del found[name], sample[name]
    assert {name: (found[name], row) for name, row in sample.items() if found[name] != row} == {}


def _changed(row: Line, differs: Line) -> Line:
    if "error" in differs:
        return {"warned": [], **differs}
    kept: Line = {"env": {"CLAUDE_CODE_ENTRYPOINT": "sdk-py"}, "removed": ["CLAUDECODE"]}
    if "error" in row:
        row = {**kept, "initialize": {"systemPrompt": [""]}}
    return {key: value for key, value in {**row, **differs}.items() if value}


def test_every_field_of_the_options_is_in_a_row(place: Path) -> None:
    given = {name for options in rows(steersman.compat, place).values() for name in options}

    fields = {each.name for each in dataclasses.fields(ClaudeAgentOptions)}

    assert fields - given == {"cli_path"}


def test_the_sample_is_of_the_installed_official_package() -> None:
    version = json.loads(SAMPLE.read_text())["version"]

    assert version == claude_agent_sdk.__version__, "run python -m tests.compat.option_rows"


@pytest.mark.process
async def test_both_packages_start_the_same_program(place: Path) -> None:
    """The sample and the plan are what a process really gets."""
    names = ("everything", "env: own", "mcp_servers: in_process")
    sample = json.loads(SAMPLE.read_text())["rows"]

    official = await recorded(claude_agent_sdk, place, names)
    ours = await recorded(steersman.compat, place, names)

    assert official == {name: sample[name] for name in names}
    assert {name: as_official(row) for name, row in ours.items()} == official


def test_secrets_of_servers_and_settings_are_not_on_argv(place: Path) -> None:
    server = {"command": "x", "env": {"TOKEN": "hush-1"}}
    options = ClaudeAgentOptions(
        mcp_servers=json.dumps({"mcpServers": {"a": server}}),
        settings='{"env": {"TOKEN": "hush-2"}}',
        system_prompt="hush-3",
    )

    found = planned(options)

    assert "hush" not in json.dumps(found.argv)
    assert "hush-1" in json.dumps(found.files)
    assert "hush-2" in json.dumps(found.files)


def test_the_cli_continues_the_current_span(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with the official package, which also drops a state of another span."""
    trace = pytest.importorskip("opentelemetry.trace")
    monkeypatch.setenv("TRACESTATE", "of=another")
    span = trace.SpanContext(0xABC, 0xDEF, is_remote=False, trace_flags=trace.TraceFlags(1))

    with trace.use_span(trace.NonRecordingSpan(span)):
        current = planned(ClaudeAgentOptions()).env
        given = planned(ClaudeAgentOptions(env={"TRACEPARENT": "mine"})).env
    without = planned(ClaudeAgentOptions()).env

    assert current["TRACEPARENT"] == f"00-{0xABC:032x}-{0xDEF:016x}-01"
    assert current["TRACESTATE"] == ""
    assert given["TRACEPARENT"] == "mine"
    assert (without.get("TRACEPARENT"), without["TRACESTATE"]) == (None, "of=another")


def test_a_long_comma_list_of_rules_becomes_single_rules(place: Path) -> None:
    """A long list is passed in the settings, where the CLI splits nothing."""
    texts = [f"Bash(git {n}:*),Read(//data/{n}, and more/**) Write" for n in range(100)]

    found = planned(ClaudeAgentOptions(allowed_tools=texts))

    (settings,) = found.files.values()
    rules = json.loads(settings)["permissions"]["allow"]
    assert rules[:3] == ["Bash(git 0:*)", "Read(//data/0, and more/**)", "Write"]
    assert len(rules) == 300


def test_a_warning_names_the_line_of_the_program() -> None:
    with pytest.warns(TranslationWarning, match="fork_session") as warned:
        translate(ClaudeAgentOptions(fork_session=True))

    assert [each.filename for each in warned] == [__file__]


async def no_opinion(*_: Any) -> dict[str, Any]:
    return {}


def hooked(event: str, **fields: Any) -> dict[str, Any]:
    hooks: list[Any] = [no_opinion]
    return {"hooks": {event: [steersman.compat.HookMatcher(hooks=hooks, **fields)]}}


OTHER_PRESET = {"type": "preset", "preset": "other"}
WARNINGS: list[tuple[dict[str, Any], str]] = [
    ({"system_prompt": OTHER_PRESET}, f"system_prompt: {OTHER_PRESET} is no known form"),
    ({"system_prompt": {"type": "other"}}, "system_prompt: {'type': 'other'} is no known form"),
    ({"thinking": {"type": "adaptive"}, "max_thinking_tokens": 5}, "max_thinking_tokens has no"),
    ({"thinking": {"type": "other"}}, "thinking: 'other' is no known type; the CLI decides"),
    ({"output_format": {"type": "text"}}, "output_format has no effect: it is not {"),
    ({"model": "a", "fallback_model": "b, a"}, "fallback_model: 'a' is the main model too"),
    ({"tools": "Read"}, "tools: 'Read' is no list of names; the CLI uses its default set"),
    ({"tools": ["Raed"]}, "tools: there is no tool for 'Raed'; did you mean Read?"),
    ({"allowed_tools": "Read"}, "allowed_tools: pass a list of rules, not a text"),
    ({"allowed_tools": ["bash(ls)"]}, "allowed_tools: there is no tool for 'bash(ls)'; did you"),
    ({"disallowed_tools": "Read"}, "disallowed_tools: pass a list of rules, not a text"),
    ({"disallowed_tools": ["Wirte"]}, "disallowed_tools: there is no tool for 'Wirte'; did you"),
    ({"fork_session": True}, "fork_session has no effect without resume or continue_conversation"),
    ({"env": {"CLAUDE_CODE_STARTUP_FAILURE_RESULTS": "0"}}, "env['CLAUDE_CODE_STARTUP_FAILURE_R"),
    ({"extra_args": {"output-format": "json"}}, "extra_args: --output-format has no effect"),
    ({"extra_args": {"input-format": None}}, "extra_args: --input-format has no effect"),
    (hooked("Nope"), "hooks: this release does not know the event 'Nope'"),
    (hooked("CwdChanged"), "hooks: CwdChanged will not be called: the CLI never calls back"),
    (hooked("Stop", matcher="x"), "hooks: the matcher 'x' has no effect: the CLI has no matchers"),
    (
        hooked("PreToolUse", matcher="Wirte|Edit"),
        "hooks: the matcher 'Wirte|Edit' names no tool 'Wirte'; did you mean Write?",
    ),
    (hooked("PreToolUse", matcher="("), "hooks: the matcher '(' may be no pattern, and never"),
    (hooked("PreToolUse", timeout=0), "hooks: timeout=0 of PreToolUse is no limit; pass seconds"),
    (hooked("Stop", on_failure="block"), "hooks: on_failure='block' has no effect at Stop"),
    (
        {"can_use_tool": no_opinion, "permission_mode": "bypassPermissions"},
        "can_use_tool will not be invoked: permission_mode 'bypassPermissions' allows every call",
    ),
    (
        {"can_use_tool": no_opinion, "allowed_tools": ["Read", "Bash(ls)", "Edit(*)", "Read"]},
        "can_use_tool will not be invoked for: Read, Edit. An entry of allowed_tools allows",
    ),
    (
        {"can_use_tool": no_opinion, "skills": "all"},
        "can_use_tool will not be invoked for: Skill. An entry of allowed_tools allows",
    ),
]


@pytest.mark.parametrize(("options", "said"), WARNINGS, ids=range(len(WARNINGS)))
def test_a_warning_names_the_option_and_what_it_does_instead(
    options: dict[str, Any], said: str
) -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        translate(ClaudeAgentOptions(**options))

    (only,) = warned
    assert str(only.message).startswith(said)


QUIET: list[dict[str, Any]] = [
    {"tools": ["Read", "mcp__a__b"]},
    {"tools": {"type": "preset", "preset": "claude_code"}},
    {"system_prompt": {"type": "preset", "preset": "claude_code"}},
    {"thinking": {"type": "adaptive"}},
    {"fork_session": True, "resume": U},
    {"fork_session": True, "continue_conversation": True},
    {"model": "a", "fallback_model": "b"},
    {"extra_args": {"output-format": "stream-json"}},
    {"can_use_tool": no_opinion, "allowed_tools": ["Bash(ls)"], "permission_mode": "plan"},
    hooked("PreToolUse", matcher="^Wri(te|t).*"),
    hooked("PreToolUse", matcher="(?<name>Bash)"),
    hooked("PreToolUse", matcher="Write|Edit", timeout=0.5),
    hooked("Stop", matcher="*"),
    hooked("Stop", matcher=""),
    hooked("UserPromptSubmit", on_failure="block"),
    hooked("SessionStart", matcher="startup", on_failure="continue"),
]


@pytest.mark.parametrize("options", QUIET, ids=range(len(QUIET)))
def test_an_option_that_does_what_it_says_is_not_warned_of(options: dict[str, Any]) -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        translate(ClaudeAgentOptions(**options))

    assert [str(each.message) for each in warned] == []


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("Bash(a (b, c) d), Read", ("Bash(a (b, c) d)", "Read")),
        ("Odd) Read,Write", ("Odd)", "Read", "Write")),
        ("Bash(never closed, Read", ("Bash(never closed, Read",)),
    ],
)
def test_a_text_of_rules_is_split_where_no_bracket_is_open(
    text: str, rules: tuple[str, ...]
) -> None:
    assert translate(ClaudeAgentOptions(allowed_tools=[text])).options.allowed_tools == rules


def test_a_system_prompt_of_several_texts_stays_several() -> None:
    given: Any = ["Be brief.", "Be kind."]

    assert translate(ClaudeAgentOptions(system_prompt=given)).options.system_prompt == tuple(given)


def test_denials_with_bash_are_passed_as_they_are_unless_extra_args_has_them() -> None:
    """The option of a session would remove Monitor and other tools like Bash too."""

    def settled(**options: Any) -> tuple[Any, Any]:
        found = translate(ClaudeAgentOptions(**options)).options
        return tuple(found.disallowed_tools), dict(found.extra_args)

    theirs = {"disallowedTools": "Edit"}
    assert settled(disallowed_tools=["Bash", "Read"]) == ((), {"disallowedTools": "Bash,Read"})
    assert settled(disallowed_tools=["Read"]) == (("Read",), {})
    assert settled(disallowed_tools=["Bash"], extra_args=theirs) == (("Bash",), theirs)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "settings: the file cannot be read: .*No such file"),
        (b"[1]", "settings: the file has no JSON object"),
        (b"nonsense", "settings: the file has no JSON object"),
        (b"\xff", "settings: the file cannot be read: .*utf-8"),
    ],
)
def test_settings_that_a_sandbox_cannot_be_added_to_are_an_error(
    place: Path, content: bytes | None, said: str
) -> None:
    path = place / "own.json"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(steersman.compat.CLIConnectionError, match=said):
        translate(ClaudeAgentOptions(settings=str(path), sandbox={"enabled": True}))


def test_a_sandbox_is_added_to_settings_in_any_form(place: Path) -> None:
    path = place / "own.json"
    path.write_text('\ufeff{"a": 1, "sandbox": {"old": 1}}', encoding="utf-8")

    for given in (str(path), '{"a": 1}', {"a": 1, "sandbox": {"old": 1}}):
        options = ClaudeAgentOptions(settings=given, sandbox={"enabled": True})  # type: ignore[arg-type]
        assert translate(options).options.settings == {"a": 1, "sandbox": {"enabled": True}}


def test_the_latest_conversation_of_a_store_needs_a_list_of_its_sessions() -> None:
    class OfTheProtocol(steersman.compat.SessionStore):
        """Has `list_sessions` of the protocol, which only raises."""

        async def append(self, key: Any, entries: Any) -> None: ...

        async def load(self, key: Any) -> Any: ...

    class Bare:
        async def append(self, key: Any, entries: Any) -> None: ...

        async def load(self, key: Any) -> Any: ...

    classes: list[Any] = [OfTheProtocol, Bare]
    for store in (each() for each in classes):
        with pytest.raises(ValueError, match=r"^continue_conversation needs a session_store with"):
            translate(ClaudeAgentOptions(session_store=store, continue_conversation=True))
        both = ClaudeAgentOptions(session_store=store, continue_conversation=True, resume=U)
        assert translate(both).options.session_store is store
    listing: Any = Store()
    found = translate(ClaudeAgentOptions(session_store=listing, continue_conversation=True))
    assert found.options.continue_conversation


def test_a_failing_propagator_does_not_prevent_the_start(
    place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    propagate = pytest.importorskip("opentelemetry.propagate")
    pytest.importorskip("opentelemetry.trace")

    class Failing(type(propagate.get_global_textmap())):  # type: ignore[misc] # of the program
        def inject(self, *_: Any, **__: Any) -> None:
            raise RuntimeError("no propagation")

    before = propagate.get_global_textmap()
    propagate.set_global_textmap(Failing([]))
    try:
        found = planned(ClaudeAgentOptions())
    finally:
        propagate.set_global_textmap(before)

    assert found.error is None
    assert "TRACEPARENT" not in found.env
    assert "the current span cannot be passed to the CLI" in caplog.text


def test_options_that_were_translated_can_be_replaced_without_a_check() -> None:
    """A session replaces its options when it restarts the CLI."""
    options = translate(ClaudeAgentOptions(allowed_tools=["Bash("], max_turns=-1)).options

    changed = options.replace(resume=U, permission_mode="plan")

    assert (changed.allowed_tools, changed.max_turns, changed.resume) == (("Bash(",), -1, U)


def test_stderr_arrives_by_line() -> None:
    lines: list[str] = []
    translated = _with_stderr(lines.append)

    for chunk in ("first\n\n  padded  \r\nha", "lf", " rest\nlast"):
        translated.options.stderr(chunk)  # type: ignore[misc]
    translated.finish_stderr()
    translated.finish_stderr()

    assert lines == ["first", "  padded", "half rest", "last"]


def test_a_failing_callback_for_stderr_does_not_reach_the_session() -> None:
    def fail(_: str) -> None:
        raise ValueError

    translated = _with_stderr(fail)

    translated.options.stderr("a line\n")  # type: ignore[misc]


def _with_stderr(callback: Any) -> Translated:
    translated = translate(ClaudeAgentOptions(stderr=callback))
    assert translated.options.stderr is not None
    return translated


FLAGS: list[tuple[str, str | None, str, Any]] = [
    ("effort", "high", "effort", "high"),
    ("fallback-model", "b", "fallback_model", "b"),
    ("max-budget-usd", "5", "max_budget_usd", "5"),
    ("max-turns", "5", "max_turns", "5"),
    ("model", "opus", "model", "opus"),
    ("permission-mode", "plan", "permission_mode", "plan"),
    ("permission-prompt-tool", "mcp__a__b", "permission_prompt_tool_name", "mcp__a__b"),
    ("resume", U, "resume", U),
    ("resume-session-at", U, "resume_session_at", U),
    ("session-id", U, "session_id", U),
    ("setting-sources", "user,,local", "setting_sources", ("user", "local")),
    ("settings", '{"a":1}', "settings", '{"a":1}'),
    ("system-prompt", "Be brief.", "system_prompt", "Be brief."),
    ("continue", None, "continue_conversation", True),
    ("include-hook-events", None, "include_hook_events", True),
    ("include-partial-messages", None, "include_partial_messages", True),
    ("strict-mcp-config", None, "strict_mcp_config", True),
]


@pytest.mark.parametrize(("flag", "value", "option", "wanted"), FLAGS)
def test_a_flag_with_an_option_becomes_that_option(
    flag: str, value: str | None, option: str, wanted: Any
) -> None:
    """The session reads its options, for instance whether partial messages are shown."""
    found = translate(ClaudeAgentOptions(extra_args={flag: value})).options
    other = translate(ClaudeAgentOptions(extra_args={flag: None if value else "x"})).options

    assert (getattr(found, option), found.extra_args) == (wanted, {})
    assert getattr(other, option) == getattr(translate(ClaudeAgentOptions()).options, option)
    assert other.extra_args == {flag: None if value else "x"}


@pytest.mark.parametrize("flag", ["print", "verbose", "replay-user-messages"])
def test_a_flag_that_the_session_passes_itself_is_not_passed_twice(flag: str) -> None:
    assert translate(ClaudeAgentOptions(extra_args={flag: None})).options.extra_args == {}


def test_a_prompt_that_extra_args_asks_to_replay_is_a_message() -> None:
    flagged = translate(ClaudeAgentOptions(extra_args={"replay-user-messages": None}))

    assert flagged.replays_prompts
    assert not translate(ClaudeAgentOptions()).replays_prompts


async def test_a_store_is_called_where_the_program_runs() -> None:
    called: list[object] = []

    async def call(function: Any, *args: Any) -> Any:
        called.append(function.__name__)
        return await function(*args)

    given: Any = Store()
    options = ClaudeAgentOptions(session_store=given)
    store = translate(options, call=call).options.session_store

    assert store is not None
    assert await store.load({"project_key": "p", "session_id": U}) is None
    assert called == ["load"]


@pytest.mark.process
@pytest.mark.soak_only
async def test_the_sample_is_what_the_official_package_passes(place: Path) -> None:
    assert await recorded(claude_agent_sdk, place) == json.loads(SAMPLE.read_text())["rows"]
