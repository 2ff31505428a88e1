"""What may be given is kept in step with what is kept: `OptionKwargs` with `Options`."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping

import pytest

import steersman
from steersman import Agent, Options, Session
from steersman.options import OptionKwargs, fields, keywords
from steersman.testing.plugin import MakeAgent
from steersman.testing.stages import ExecutableStage, MemoryStage, Stage, StockStage
from tests.typing.given import given

AS_STORED: Mapping[str, tuple[str, str]] = {
    "fallback_model": ("str | tuple[str, ...] | None", "str | Sequence[str] | None"),
    "system_prompt": (
        "str | tuple[str, ...] | JsonObject | None",
        "str | Sequence[str] | PresetPrompt | CustomPrompt | PromptFile | JsonObject | None",
    ),
    "thinking": ("JsonObject | None", "ThinkingConfig | JsonObject | None"),
    "betas": ("tuple[str, ...]", "Sequence[str]"),
    "task_budget": ("Mapping[str, int] | None", "TaskBudget | Mapping[str, int] | None"),
    "output_format": ("JsonObject | None", "OutputFormat | JsonObject | None"),
    "tools": (
        "tuple[str, ...] | JsonObject | None",
        "Sequence[str] | ToolsPreset | JsonObject | None",
    ),
    "allowed_tools": ("tuple[str, ...]", "Sequence[str]"),
    "disallowed_tools": ("tuple[str, ...]", "Sequence[str]"),
    "tool_config": ("JsonObject | None", "ToolConfig | JsonObject | None"),
    "functions": ("tuple[Callable[..., object], ...]", "Sequence[Callable[..., object]]"),
    "mcp_servers": (
        "Mapping[str, ToolServer | McpServer | JsonObject] | str | Path",
        "Mapping[str, ServerForm] | str | Path",
    ),
    "require": ("bool | tuple[str, ...]", "bool | Sequence[str]"),
    "hooks": ("Hooks", "Hooks | HookForms"),
    "supported_dialog_kinds": ("tuple[str, ...]", "Sequence[str]"),
    "skills": (
        "tuple[str, ...] | Literal['all'] | None",
        "Sequence[str] | Literal['all'] | None",
    ),
    "plugins": ("tuple[PluginLike, ...]", "Sequence[PluginLike]"),
    "sandbox": ("JsonObject | None", "SandboxSettings | JsonObject | None"),
    "add_dirs": ("tuple[str | Path, ...]", "Sequence[str | Path]"),
    "inherit_env": ("bool | tuple[str, ...] | None", "bool | Sequence[str] | None"),
    "setting_sources": (
        "tuple[SettingSource, ...] | None",
        "Sequence[SettingSource] | None",
    ),
    "sinks": ("tuple[Sink, ...]", "Sequence[Sink]"),
}
"""Options that are kept in another form than they are given: the type of the field, and that of the
keyword. All others have one type."""

NAMES = [each.name for each in dataclasses.fields(Options)]
KEPT, GIVEN = inspect.getsource(fields), inspect.getsource(keywords)

TAKES_OPTIONS: list[Callable[..., object]] = [
    *(Agent, Agent.session, Agent.start, Agent.open, Agent.query, Agent.run),
    *typing.get_overloads(Agent.run),
    *(steersman.query, steersman.run),
    *typing.get_overloads(steersman.run),
    *(Session.fork, Options.replace, MakeAgent.__call__),
    *(Stage.agent, MemoryStage.agent, ExecutableStage.agent, StockStage.agent),
]


def types_in(source: str, name: str) -> dict[str, str]:
    """Return the annotations of a class, as they are written, in order."""
    (found,) = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and node.name == name
    ]
    return {
        node.target.id: ast.unparse(node.annotation)
        for node in found.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def differences(kept_source: str, given_source: str) -> Iterator[str]:
    """Yield how both lists differ in a way that `AS_STORED` does not have."""
    kept = types_in(kept_source, "Options")
    may_be_given = types_in(given_source, "OptionKwargs")
    if list(kept) != list(may_be_given):
        yield f"names or order: {sorted(kept.keys() ^ may_be_given.keys())}"
    for name in kept.keys() & may_be_given.keys():
        same = (kept[name], kept[name])
        found = (kept[name], may_be_given[name])
        if found != AS_STORED.get(name, same):
            yield f"{name}: kept as {found[0]}, given as {found[1]}"
    yield from (f"{name}: a row without an option" for name in AS_STORED.keys() - kept.keys())
    yield from (name for name, (one, other) in AS_STORED.items() if one == other)


def test_every_option_can_be_given_by_its_name() -> None:
    """If not: add the line to `options/keywords.py`, in the place of the field."""
    assert list(OptionKwargs.__annotations__) == NAMES
    assert not OptionKwargs.__required_keys__
    assert list(differences(KEPT, GIVEN)) == []


def test_what_is_kept_may_be_given() -> None:
    """The checkers compare the types, here and in `tests/typing`; this compares the names."""
    assert list(given(Options())) == NAMES
    assert Options(**given(Options(model="opus", tools=["Read"]))) == Options(
        model="opus", tools=["Read"]
    )


@pytest.mark.parametrize("call", TAKES_OPTIONS, ids=lambda each: each.__qualname__)
def test_no_option_is_called_like_a_parameter(call: Callable[..., object]) -> None:
    parameters = inspect.signature(call).parameters.values()

    last = [each for each in parameters if each.kind is each.VAR_KEYWORD]
    assert [each.annotation for each in last] == ["Unpack[OptionKwargs]"]
    assert {each.name for each in parameters}.isdisjoint(NAMES)


@pytest.mark.parametrize(
    ("kept", "may_be_given", "said"),
    [
        (KEPT, GIVEN.replace("    title: str | None\n", ""), "names or order: ['title']"),
        (KEPT.replace("    memory: bool =", "    memories: bool ="), GIVEN, "memor"),
        (KEPT.replace("    title: str | None =", "    title: str ="), GIVEN, "title: kept as str,"),
        (KEPT, GIVEN.replace("    betas: Sequence[str]", "    betas: list[str]"), "betas: kept"),
        (KEPT, GIVEN.replace("    betas: Sequence[str]", "    betas: tuple[str, ...]"), "betas"),
    ],
    ids=["a hidden option", "a renamed field", "a drifted field", "a drifted keyword", "a row"],
)
def test_what_is_planted_is_found(kept: str, may_be_given: str, said: str) -> None:
    assert (kept, may_be_given) != (KEPT, GIVEN)
    assert any(said in each for each in differences(kept, may_be_given))
