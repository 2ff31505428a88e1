"""The source is written in plain technical English, under names that say what a thing does."""

from __future__ import annotations

import pytest

from tests.house.words import (
    Module,
    bad_beginnings,
    bad_names,
    bad_words,
    found_in,
    module_of,
    modules,
    not_used,
    rules,
    twice,
    words_of,
)

ROOMS = sorted({each.path.partition("/")[0].removesuffix(".py") for each in modules()})


@pytest.mark.parametrize("room", ROOMS)
def test_every_docstring_names_its_subject(room: str) -> None:
    assert [line for module in modules(room) for line in bad_beginnings(module)] == []


@pytest.mark.parametrize("room", ROOMS)
def test_docstrings_and_comments_use_plain_words(room: str) -> None:
    assert [line for module in modules(room) for line in bad_words(module)] == []


@pytest.mark.parametrize("room", ROOMS)
def test_names_use_plain_words(room: str) -> None:
    assert [line for module in modules(room) for line in bad_names(module)] == []


def test_a_room_has_each_module_name_once() -> None:
    assert twice(each.path for each in modules()) == []


# --- The rules themselves -----------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "A stand-in for a class that msgspec does not know.",
        "Remove a listener that `session.on` registered.",
        "A foregone conclusion; an essay about hearsay and questionnaires.",
        "Bytes sent over a channel; the total is over the limit, and 3 is over 2.",
        "The option `revive` and the class `Revival`; ``say()``.",
        'The CLI sends "hello" in capitals.',
        "Of course the caller may cancel.",
        "Take the line apart, output it, and back up the rest.",
    ],
)
def test_a_plain_text_is_left_alone(text: str) -> None:
    assert found_in(text) == []


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Greets the CLI.", "Greets"),
        ("The tool\nservers are ready.", "tool servers"),
        ("Takes it back.", "Takes it back"),
        ("The CLI goes\n    on.", "goes on"),
        ("All is over.", "is over"),
        ("Where it stands in the line.", "stands in"),
        ("A person's answer.", "person"),
        ("Once it is gone.", "gone"),
    ],
)
def test_a_word_that_is_not_used_is_found(text: str, word: str) -> None:
    assert [found for _, found, _ in found_in(text)] == [word]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("goes_on_now", ["goes", "on", "now"]),
        ("PhoneBook", ["phone", "book"]),
        ("_HTTPServer2", ["http", "server", "2"]),
        ("MAX_TOLD", ["max", "told"]),
    ],
)
def test_a_name_is_split_into_its_words(name: str, words: list[str]) -> None:
    assert words_of(name) == words


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("is_told", ["told"]),
        ("PersonListener", ["person"]),
        ("take_back_all", ["take back"]),
        ("_stand_ins", []),
        ("listeners", []),
        ("essay", []),
    ],
)
def test_a_name_is_judged_by_whole_words(name: str, found: list[str]) -> None:
    assert [word for word, _ in not_used(name)] == found


def module(text: str, path: str = "_session/new.py") -> Module:
    return module_of(path, text)


def test_names_of_all_kinds_are_looked_at() -> None:
    text = """
class Greeter:
    told: int = 0
    def hear(self, question: str) -> None:
        self.gone = question
def said() -> None:
    person = 1
"""

    found = [line.rpartition("the name ")[2].split()[0] for line in bad_names(module(text))]

    assert found == ["told", "hear", "question", "gone", "said"]


def test_a_public_name_may_keep_its_word() -> None:
    assert bad_names(module("def say(text): ...", "testing/script.py")) == []
    assert bad_names(module("class Revival: ...", "options/limits.py")) == []
    assert bad_names(module("class Rival:\n    def say(self): ...", "options/limits.py")) != []


def test_a_comment_is_read_over_its_line_breaks() -> None:
    text = "# The CLI goes\n# on here.\nx = 1  # and is gone\n"

    assert [line.split("'")[1] for line in bad_words(module(text))] == ["goes on", "gone"]


def test_a_module_name_may_come_once_in_a_room() -> None:
    assert twice(["tools/run.py", "tools/_run/run.py", "cli/run.py", "run.py"]) == ["tools/run"]
    assert twice(["tools/__init__.py", "tools/_run/__init__.py"]) == []


def test_every_exception_has_a_reason() -> None:
    assert all(entry["reason"] for entry in rules()["allowed"])
    assert all(rules()["twice"].values())
