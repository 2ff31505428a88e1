from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman._launch.environment import ALWAYS, INHERITED, MARKS, PROTOCOL, environment
from steersman.errors import UsageError

HOST = {
    "PATH": "/usr/bin",
    "HOME": "/home/me",
    "USER": "me",
    "CLAUDE_CODE_OAUTH_TOKEN": "token",
    "LC_ALL": "C.UTF-8",
    "XDG_CACHE_HOME": "/cache",
    "ANTHROPIC_API_KEY": "key",
    "CLAUDE_CONFIG_DIR": "/config",
    "https_proxy": "http://proxy",
    "CLAUDECODE": "1",
    "CLAUDE_CODE_ENTRYPOINT": "cli",
    "CLAUDE_CODE_SSE_PORT": "1234",
    "DATABASE_PASSWORD": "canary",
    "GITHUB_TOKEN": "canary",
    "AWS_SECRET_ACCESS_KEY": "cloud",
    "AWS_REGION": "eu",
    "ANTHROPIC_VERTEX_PROJECT_ID": "cloud",
    "GOOGLE_APPLICATION_CREDENTIALS": "cloud",
    "ANTHROPIC_FOUNDRY_API_KEY": "cloud",
}
HARMLESS = {
    name: HOST[name]
    for name in (
        "PATH",
        "HOME",
        "USER",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "LC_ALL",
        "XDG_CACHE_HOME",
        "ANTHROPIC_API_KEY",
        "CLAUDE_CONFIG_DIR",
        "https_proxy",
    )
}
BEDROCK = {name: HOST[name] for name in ("AWS_SECRET_ACCESS_KEY", "AWS_REGION")}
VERTEX = {
    name: HOST[name] for name in ("ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_APPLICATION_CREDENTIALS")
}
FOUNDRY = {"ANTHROPIC_FOUNDRY_API_KEY": "cloud"}

NAMES = st.sampled_from([*HOST, "OTHER", "CLAUDE_CODE_USE_BEDROCK"])
HOSTS = st.dictionaries(NAMES, st.text(max_size=5))


def test_by_default_only_what_is_on_the_list_passes() -> None:
    assert environment(HOST, None, {}) == {**HARMLESS, **ALWAYS}


def test_every_name_on_the_list_has_its_reason() -> None:
    assert all(len(reason) > 5 for reason in INHERITED.values())


@pytest.mark.parametrize(
    ("switch", "cloud"),
    [
        ("CLAUDE_CODE_USE_BEDROCK", BEDROCK),
        ("CLAUDE_CODE_USE_VERTEX", VERTEX),
        ("CLAUDE_CODE_USE_FOUNDRY", FOUNDRY),
    ],
)
def test_cloud_credentials_come_along_with_their_own_switch_only(
    switch: str, cloud: dict[str, str]
) -> None:
    by_host = environment({**HOST, switch: "1"}, None, {})
    by_caller = environment(HOST, None, {switch: "true"})

    assert by_host == {**HARMLESS, **cloud, **ALWAYS, switch: "1"}
    assert by_caller == {**HARMLESS, **cloud, **ALWAYS, switch: "true"}


@pytest.mark.parametrize("off", ["", "0", "false", "FALSE"])
def test_a_switch_that_is_off_brings_no_credentials(off: str) -> None:
    found = environment({**HOST, "CLAUDE_CODE_USE_BEDROCK": off}, None, {})

    assert not BEDROCK.items() & found.items()


def test_names_and_patterns_add_to_the_list() -> None:
    found = environment(HOST, ("GITHUB_TOKEN", "DATABASE_*"), {})

    assert found == {
        **HARMLESS,
        **ALWAYS,
        "GITHUB_TOKEN": "canary",
        "DATABASE_PASSWORD": "canary",
    }


def test_true_is_everything_but_the_marks_of_a_surrounding_session() -> None:
    everything = {name: value for name, value in HOST.items() if name not in MARKS}

    assert environment(HOST, inherit=True, added={}) == {**everything, **ALWAYS}


def test_false_is_nothing_but_what_we_set_and_the_caller_gives() -> None:
    assert environment(HOST, inherit=False, added={"A": "b"}) == {**ALWAYS, "A": "b"}


def test_what_the_caller_gives_wins() -> None:
    added = {"PATH": "/mine", "CLAUDE_CODE_ENTRYPOINT": "mine"}

    found = environment(HOST, None, added)

    assert {name: found[name] for name in added} == added


@pytest.mark.parametrize("name", PROTOCOL)
@pytest.mark.parametrize("inherit", [True, None, ("CLAUDE_*",)])
def test_no_environment_changes_a_variable_that_the_protocol_needs(
    name: str,
    inherit: bool | tuple[str, ...] | None,  # noqa: FBT001 - what the option takes
) -> None:
    assert environment({**HOST, name: "0"}, inherit, {})[name] == PROTOCOL[name]
    assert environment(HOST, inherit, {name: PROTOCOL[name]})[name] == PROTOCOL[name]
    with pytest.raises(UsageError, match=name):
        environment(HOST, inherit, {name: "0"})


@given(
    host=HOSTS,
    inherit=st.none() | st.booleans() | st.lists(NAMES | st.just("*")).map(tuple),
    added=st.dictionaries(st.sampled_from(["PATH", "MINE"]), st.text(max_size=3)),
)
def test_the_mark_of_a_surrounding_session_never_passes_and_nothing_is_made_up(
    host: dict[str, str],
    inherit: bool | tuple[str, ...] | None,  # noqa: FBT001 - what the option takes
    added: dict[str, str],
) -> None:
    found = environment(host, inherit, added)

    assert "CLAUDECODE" not in found
    assert found.items() <= {**host, **ALWAYS, **added}.items()
    assert {**ALWAYS, **added}.items() <= found.items()
