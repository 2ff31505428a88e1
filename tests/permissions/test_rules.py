"""Rules cover the calls that they cover for the CLI; each row was observed with CLI 2.1.325."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.errors import UsageError
from steersman.permissions import Match, Place, ToolCall, parse_rule
from steersman.permissions.updates import Behavior
from steersman_conformance.scenes.names import AGENTS, SKILLS

HERE = Place("/project", "/people/ann")


def match(rule: str, tool: str, behavior: Behavior = "allow", **given_: Any) -> Match:
    return parse_rule(rule).match(ToolCall(tool, given_, place=HERE), behavior)


@pytest.mark.parametrize(
    ("rule", "command", "found"),
    [
        ("Bash(git push:*)", "git push", Match.YES),
        ("Bash(git push:*)", "git push origin", Match.YES),
        ("Bash(git push:*)", "git\tpush", Match.YES),
        ("Bash(git push:*)", " git  push", Match.YES),
        ("Bash(git push:*)", "git push 2>&1", Match.YES),
        ("Bash(git push:*)", "gitx push", Match.NO),
        ("Bash(git push:*)", "git", Match.NO),
        ("Bash(git push:*)", "git -C /tmp push", Match.NO),
        ("Bash(git push:*)", "/usr/bin/git push", Match.NO),
        ("Bash(npm run *)", "npm run", Match.YES),
        ("Bash(npm run *)", "npm run build", Match.YES),
        ("Bash(make test)", "make test", Match.YES),
        ("Bash(make test)", "make tests", Match.NO),
        ("Bash(touch*)", "touchy", Match.YES),
        ("Bash(touch *)", "touchy", Match.NO),
        ("Bash(touch *)", "touch", Match.YES),
        ("Bash(* --version)", "make --version", Match.YES),
        ("Bash(* --version)", "make --version x", Match.NO),
        ("Bash(* deploy *)", "x deploy y", Match.YES),
        ("Bash(* deploy *)", "deploy", Match.NO),
        ("Bash(git * main)", "git push origin main", Match.YES),
        ("Bash(git * main)", "git push origin main2", Match.NO),
        ("Bash(make a:* b)", "make a:x b", Match.YES),
        ("Bash(git push:*)", "git push && git push x", Match.YES),
        ("Bash(git push:*)", "git push 'a b'", Match.YES),
        ("Bash(git push:*)", "git 'push'", Match.NO),
        ("Bash(mkfifo a:*)", "mkfifo 'a z'", Match.NO),
        ("Bash(echo 'a b')", "echo 'a b'", Match.YES),
        # Here only the CLI knows: it parses the shell, and has rules for the other commands.
        ("Bash(git push:*)", "git push | cat", Match.MAYBE),
        ("Bash(git push:*)", "git push && touch b", Match.MAYBE),
        ("Bash(git push:*)", "git push > out", Match.MAYBE),
        ("Bash(git push:*)", "timeout 5 git push", Match.MAYBE),
        ("Bash(git push:*)", "git push; echo $(touch q)", Match.MAYBE),
        ("Bash(git push:*)", "(git push)", Match.MAYBE),
        ("Bash(git push:*)", "git push & ", Match.MAYBE),
        ("Bash(git push:*)", 'git push "$(rm x)"', Match.MAYBE),
        ("Bash(git push:*)", "git push \\\nrm x", Match.MAYBE),
    ],
)
def test_an_approval_covers_a_command_line_only_if_it_covers_all_of_it(
    rule: str, command: str, found: Match
) -> None:
    assert match(rule, "Bash", command=command) is found


@pytest.mark.parametrize("prefix", ["", "echo a && ", "FOO=1 ", "sudo ", "env ", "timeout 3 "])
@pytest.mark.parametrize("command", ["rm a", "rm", "/bin/rm a", "r'm' a", "\\rm a", "rm\ta"])
def test_a_denial_finds_its_command_behind_others(prefix: str, command: str) -> None:
    assert match("Bash(rm *)", "Bash", "deny", command=prefix + command) is Match.YES


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("echo $(rm a)", Match.YES),
        ("`rm a`", Match.YES),
        ('echo "$(rm a)"', Match.YES),
        ("(rm a)", Match.YES),
        ("if true; then rm a; fi", Match.YES),
        ("xargs rm a", Match.YES),
        ("echo a; rm a &", Match.YES),
        ("echo x | rm y", Match.YES),
        ("exec rm a", Match.YES),
        ("echo rm a", Match.NO),
        ("echo 'a; rm b'", Match.NO),
        ("rmdir a", Match.NO),
        # What hides a command in an argument is asked about.
        ("bash -c 'rm a'", Match.MAYBE),
        ("eval 'rm a'", Match.MAYBE),
        ("find . -exec rm {} ;", Match.MAYBE),
        ("$TOOL a", Match.MAYBE),
    ],
)
def test_a_denial_looks_into_the_line(command: str, found: Match) -> None:
    assert match("Bash(rm *)", "Bash", "deny", command=command) is found


@pytest.mark.parametrize(
    ("rule", "path", "fits"),
    [
        ("Edit(src/**)", "/project/src/a", True),
        ("Edit(src/**)", "/project/src/d/a", True),
        ("Edit(src/**)", "/project/other/src/a", False),
        ("Edit(src/**)", "/project/srcx/a", False),
        ("Edit(src/**)", "/elsewhere/src/a", False),
        ("Edit(/top/**)", "/project/top/a", True),
        ("Edit(/top/**)", "/project/sub/top/a", False),
        ("Edit(*.md)", "/project/s/t/a.md", True),
        ("Edit(*.md)", "/project/.hid.md", True),
        ("Edit(one.txt)", "/project/s/one.txt", True),
        ("Edit(deep/*)", "/project/deep/b/a", True),
        ("Edit(deep/*)", "/project/s/deep/a", False),
        ("Edit(dir)", "/project/s/dir/a", True),
        ("Edit(sl/)", "/project/s/sl/a", True),
        ("Edit(sl/)", "/project/sl", False),
        ("Edit(//abs/**)", "/abs/a", True),
        ("Edit(~/h/**)", "/people/ann/h/a", True),
        ("Edit(~/h/**)", "~/h/a", True),
        ("Edit(./dot/**)", "/project/dot/a", True),
        ("Edit(./dot/**)", "/project/s/dot/a", False),
        ("Edit(q?.txt)", "/project/q1.txt", True),
        ("Edit(q?.txt)", "/project/q12.txt", False),
        ("Edit([ab].c)", "/project/a.c", True),
        ("Edit([ab].c)", "/project/c.c", False),
        ("Edit(**/mid/**)", "/project/s/mid/t/a", True),
        ("Edit(UP.txt)", "/project/up.txt", True),
        ("Edit({x,y}.z)", "/project/x.z", False),
        ("Edit(one.txt)", "/project/src/../one.txt", True),
        ("Edit(/top/**)", "/project/top/../esc", False),
        ("Edit(src/**)", "src/a", True),
    ],
)
def test_paths_are_patterns_as_in_a_gitignore(rule: str, path: str, *, fits: bool) -> None:
    expected = Match.YES if fits else Match.NO

    assert match(rule, "Write", file_path=path) is expected
    assert match(rule, "NotebookEdit", notebook_path=path) is expected


@pytest.mark.parametrize(
    ("rule", "tool", "behavior", "found"),
    [
        ("mcp__box", "mcp__box__ping", "allow", Match.YES),
        ("mcp__box", "mcp__boxes__ping", "allow", Match.NO),
        ("mcp__box__*", "mcp__box__ping", "allow", Match.YES),
        ("mcp__box__p*", "mcp__box__ping", "allow", Match.YES),
        ("mcp__box__ping", "mcp__box__pong", "allow", Match.NO),
        ("mcp__*", "mcp__box__ping", "allow", Match.NO),
        ("mcp__*__ping", "mcp__box__ping", "allow", Match.NO),
        ("mcp__*", "mcp__box__ping", "deny", Match.YES),
        ("Edit", "Write", "allow", Match.NO),
        ("Write", "Write", "allow", Match.YES),
        ("Bash()", "Bash", "allow", Match.YES),
        ("Bash(*)", "Bash", "allow", Match.YES),
        ("Task", "Agent", "deny", Match.YES),
    ],
)
def test_names_alone_cover_tools(rule: str, tool: str, behavior: Behavior, found: Match) -> None:
    assert match(rule, tool, behavior) is found


@pytest.mark.parametrize(
    ("rule", "url", "fits"),
    [
        ("WebFetch(domain:example.com)", "http://example.com/x", True),
        ("WebFetch(domain:example.com)", "https://EXAMPLE.com:8080/", True),
        ("WebFetch(domain:example.com)", "http://sub.example.com/", False),
        ("WebFetch(domain:example.com)", "http://example.com.evil.org/", False),
        ("WebFetch(domain:*.wild.com)", "http://a.wild.com/", True),
        ("WebFetch(domain:*.wild.com)", "http://wild.com/", False),
        ("WebFetch(domain:example.com)", "http://[broken", False),
    ],
)
def test_pages_are_known_by_their_host(rule: str, url: str, *, fits: bool) -> None:
    assert match(rule, "WebFetch", url=url) is (Match.YES if fits else Match.NO)


def test_a_file_that_must_not_be_read_is_not_written_either_nor_named_in_a_command() -> None:
    rule = "Read(.env)"

    assert match(rule, "Read", "deny", file_path="/project/s/.env") is Match.YES
    assert match(rule, "Write", "deny", file_path="/project/.env") is Match.YES
    assert match(rule, "Bash", "deny", command="cat .env") is Match.YES
    assert match(rule, "Bash", "deny", command="cat src/a") is Match.NO
    assert match(rule, "Write", "allow", file_path="/project/.env") is Match.NO


def test_a_file_that_must_not_be_written_may_be_read_in_a_command() -> None:
    rule = "Edit(src/**)"

    assert match(rule, "Bash", "deny", command="cat src/a") is Match.NO
    assert match(rule, "Bash", "deny", command="echo a > src/a") is Match.YES
    assert match(rule, "Bash", "deny", command="sed -i s/a/b/ src/a") is Match.YES
    assert match(rule, "Bash", "deny", command="touch src/a") is Match.YES
    assert match(rule, "Bash", "deny", command="src/a") is Match.NO
    # The CLI lets these run; our policy asks.
    assert match(rule, "Bash", "deny", command="truncate -s0 src/a") is Match.MAYBE


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "*",
        5,
        None,
        "Bash(",
        "(x)",
        # The CLI takes these and they never do anything.
        "Write(src/**)",
        "MultiEdit(a)",
        "Grep(a)",
        "mcp__box__ping(a)",
        "WebFetch(example.com)",
    ],
)
def test_a_rule_that_would_silently_do_nothing_is_refused(rule: Any) -> None:
    with pytest.raises(UsageError):
        parse_rule(rule)


@given(st.text("ab rm$()'\"`;&|\\<>\n{}", max_size=30), st.sampled_from(["allow", "deny"]))
def test_no_command_line_is_too_strange(line: str, behavior: Behavior) -> None:
    assert match("Bash(rm *)", "Bash", behavior, command=line) in Match


@given(st.text("ab;|& $(`'\"\n", max_size=20))
def test_what_is_surely_approved_has_no_other_command_in_it(tail: str) -> None:
    line = f"git {tail}"

    if match("Bash(git *)", "Bash", command=line) is Match.YES:
        outside_quotes = [part for n, part in enumerate(line.split("'")) if n % 2 == 0]
        assert not any("$(" in part or "`" in part for part in outside_quotes)
        assert match("Bash(git *)", "Bash", "deny", command=line) is Match.YES


# Names of skills and agents


@pytest.mark.parametrize("behavior", ["ask", "deny"])
def test_a_guard_covers_every_spelling_by_which_the_cli_finds_a_skill(behavior: Behavior) -> None:
    found = {
        name: parse_rule("Skill(deploy)").match(
            ToolCall("Skill", {"skill": name}, other_names=("Ship It", "deploy")), behavior
        )
        for name, runs in SKILLS.items()
        if runs
    }

    assert set(found.values()) == {Match.YES}


@pytest.mark.parametrize("behavior", ["ask", "deny"])
def test_a_guard_covers_every_spelling_by_which_the_cli_finds_an_agent(behavior: Behavior) -> None:
    wrong = [
        name
        for name, started in AGENTS.items()
        if started
        and parse_rule(f"Agent({started})").match(
            ToolCall("Agent", {"subagent_type": name} if name else {}), behavior
        )
        is not Match.YES
    ]

    assert wrong == []


def test_an_approval_covers_a_skill_and_an_agent_only_as_they_are_written() -> None:
    by_skill = [
        name
        for name in SKILLS
        if parse_rule("Skill(deploy)").match(ToolCall("Skill", {"skill": name}), "allow")
        is Match.YES
    ]
    by_agent = [
        name
        for name in AGENTS
        if parse_rule("Agent(Explore)").match(ToolCall("Agent", {"subagent_type": name}), "allow")
        is Match.YES
    ]

    assert (by_skill, by_agent) == (["deploy"], ["Explore"])


def test_other_skills_and_agents_are_not_covered() -> None:
    skill, agent = parse_rule("Skill(deploy)"), parse_rule("Agent(Explore)")

    assert skill.match(ToolCall("Skill", {"skill": "destroy"}), "deny") is Match.NO
    assert agent.match(ToolCall("Agent", {"subagent_type": "Plan"}), "deny") is Match.NO
    assert agent.match(ToolCall("Agent"), "deny") is Match.NO


def test_a_skill_that_the_cli_has_not_listed_may_be_every_skill() -> None:
    call = ToolCall("Skill", {"skill": "Ship It"}, other_names=None)

    assert parse_rule("Skill(deploy)").match(call, "ask") is Match.MAYBE
    assert parse_rule("Skill(Ship It)").match(call, "allow") is Match.YES
