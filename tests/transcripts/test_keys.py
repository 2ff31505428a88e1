"""Names of sessions and their parts."""

from __future__ import annotations

import pytest

from steersman.transcripts import clean_title, is_safe_subpath, is_session_id, project_key

LONG = "/workspace/project/" + "x" * 100 + "/" + "é" * 30 + "/" + "y" * 100


@pytest.mark.parametrize(
    ("directory", "key"),
    [
        ("/workspace/project", "-workspace-project"),
        ("/a_b/c.d e", "-a-b-c-d-e"),
        ("/caf\u00e9", "-caf-"),
        ("/cafe\u0301", "-caf-"),  # composed first
        ("/\U0001d11e", "---"),  # two units in JavaScript
        ("/" + "a" * 199, "-" + "a" * 199),
        ("/" + "é日" * 101, "-" * 200 + "-ex61yz"),
        (
            "/" + "a" * 200,
            "-" + "a" * 199 + "-b6ymvl",
        ),
    ],
)
def test_the_key_of_a_project_is_its_path_without_other_characters(
    directory: str, key: str
) -> None:
    assert project_key(directory) == key


def test_the_key_of_a_path_can_be_made_of_decomposed_characters_as_they_are() -> None:
    assert project_key("/cafe\u0301", compose=False) == "-cafe-"


def test_the_key_of_a_long_path_ends_in_its_hash() -> None:
    key = project_key(LONG)

    assert len(key.rpartition("-")[0]) == 200
    assert key != project_key(LONG + "z")


@pytest.mark.parametrize(
    "text", ["12345678-1234-4234-8234-123456789abc", "F" * 8 + "-0000" * 3 + "-" + "0" * 12]
)
def test_a_uuid_is_a_session_id(text: str) -> None:
    assert is_session_id(text)


@pytest.mark.parametrize(
    "text",
    ["", "x", "../12345678-1234-4234-8234-123456789abc", "12345678-1234-4234-8234-123456789abc\n"],
)
def test_nothing_else_is_a_session_id(text: str) -> None:
    assert not is_session_id(text)


@pytest.mark.parametrize("subpath", ["subagents/agent-x", "subagents/workflows/run-1/agent-a.b"])
def test_a_part_of_a_session_is_a_safe_subpath(subpath: str) -> None:
    assert is_safe_subpath(subpath)


@pytest.mark.parametrize(
    "subpath",
    [
        "",
        "/",
        "/etc",
        "a/",
        "a//b",
        "..",
        "a/../b",
        ".",
        "a/.",
        "a\\b",
        "a\0b",
        "a\nb",
        "C:x",
        "a/ /b",
        "a/...",
        " .. /x",
    ],
)
def test_a_subpath_that_could_lead_elsewhere_is_not_safe(subpath: str) -> None:
    assert not is_safe_subpath(subpath)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("plain", "plain"),
        ("  two \n lines\t", "two lines"),
        ("a\u202eb\u2066c\u200fd", "abcd"),
        ("\x1b[31mred\x07", "[31mred"),
        ("\ud800\ue000\u200b", ""),
        ("grüße 日本 🎉", "grüße 日本 🎉"),
        ("a\u2028b", "a b"),
    ],
)
def test_a_title_has_no_characters_that_are_not_seen(text: str, clean: str) -> None:
    assert clean_title(text) == clean
