"""What is wrong with an argument is told in full: which one, what it was, what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.errors import UsageError
from steersman.permissions import (
    asks,
    decisions,
    policy,
    policy_file,
    questions,
    rules,
    updates,
)

# Without types, because every call is wrong.
d: Any = decisions
p: Any = policy
q: Any = questions
u: Any = updates
f: Any = policy_file
parse_rule: Any = rules.parse_rule

QUESTION: Any = questions.Question("?")


def made(payload: asks.Payload) -> Any:
    return asks.Ask(id="i", session="s", payload=payload, created=0.0)


ASK = made(questions.CanUseTool(tool_name="Bash", input={}))
FORM = made(questions.Elicitation(mcp_server_name="m"))
DIALOG = made(questions.UserDialog(dialog_kind="k"))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: ASK.response(5), "answer: got 5, allowed: Allow(...) or Deny(...)"),
        (lambda: ASK.questions, "questions: got 'permission', allowed: an ask of kind question"),
        (FORM.always, "always: got 'elicitation', allowed: an ask of kind permission"),
        (lambda: ASK.always("ever"), "scope: got 'ever', allowed: session or keep"),
        (lambda: d.Allow(updated_input=5), "updated_input: got 5, allowed: a mapping, or None"),
        (
            lambda: d.Allow(updated_permissions=5),
            "updated_permissions: got 5, allowed: a list, or None",
        ),
        (
            lambda: d.Allow(updated_permissions=[5]),
            "updated_permissions: got 5, allowed: values such as AddRules(...) or SetMode(...)",
        ),
        (
            lambda: d.Allow(decision_classification="x"),
            (
                "decision_classification: got 'x', allowed: one of user_temporary,"
                " user_permanent, user_reject, or None"
            ),
        ),
        (lambda: d.Deny(5), "message: got 5, allowed: a text with the reason for the model"),
        (lambda: d.Deny("a", interrupt=1), "interrupt: got 1, allowed: True or False"),
        (
            lambda: d.ElicitationAnswer("x"),
            "action: got 'x', allowed: one of accept, decline, cancel",
        ),
        (lambda: d.ElicitationAnswer("accept", 5), "content: got 5, allowed: a mapping, or None"),
        (lambda: u.AddRules(rules=5), "rules: got 5, allowed: a list of rules"),
        (
            lambda: u.AddRules(rules=["("]),
            'rules: got \'(\', allowed: a ToolRule, or text such as "Write" or "Bash(git *)"',
        ),
        (
            lambda: u.AddRules(rules=[5]),
            'rules: got 5, allowed: a ToolRule, or text such as "Write" or "Bash(git *)"',
        ),
        (
            QUESTION.answer,
            "answer: got (), allowed: the label of a choice, or another text",
        ),
        (
            lambda: QUESTION.answer(""),
            "answer: got ('',), allowed: the label of a choice, or another text",
        ),
        (
            lambda: QUESTION.answer("a", "b"),
            "answer: got ('a', 'b'), allowed: one answer: this question is not multi_select",
        ),
        (
            lambda: q.QuestionAsk("i", "s", (QUESTION, QUESTION), {}).answer("a"),
            "answer: got ('a',), allowed: QuestionAsk.questions[n].answer(...) for each",
        ),
        (
            lambda: q.QuestionAsk("i", "s", (QUESTION,), {}).decision(5),
            "answer: got 5, allowed: what Question.answer() or Question.skip() returns",
        ),
        (p.allow, "allow: got no rule, allowed: at least one rule"),
        (lambda: p.deny("Bash", because=5), "because: got 5, allowed: a text"),
        (lambda: p.deny("Bash", when=5), "when: got 5, allowed: a function of a ToolCall"),
        (
            lambda: p.Policy(5),
            "rules: got [5], allowed: what allow(...), ask(...) and deny(...) return",
        ),
        (lambda: p.Policy(otherwise="x"), "otherwise: got 'x', allowed: cli, ask or deny"),
        (lambda: p.Policy(remember="x"), "remember: got 'x', allowed: session, keep or None"),
        (lambda: p.Policy(forbid="x"), "forbid: got 'x', allowed: a list of rules"),
        (lambda: p.Policy(available=5), "available: got 5, allowed: a list of rules"),
        (
            lambda: p.Policy(available=["Bash(x)"]),
            "available: got 'Bash(x)', allowed: the name of a built-in tool",
        ),
        (
            lambda: p.Policy(available=["mcp__a"]),
            "available: got 'mcp__a', allowed: the name of a built-in tool",
        ),
        (
            lambda: p.Policy(auto_approve=["Bash"], forbid=["Bash"]),
            "forbid: got ['Bash'], allowed: rules that auto_approve does not have",
        ),
        (
            lambda: parse_rule(5),
            "rule: got 5, allowed: a tool's name, or `Tool(content)`, such as Bash(git *)",
        ),
        (
            lambda: parse_rule("Bash("),
            "rule: got 'Bash(', allowed: a tool's name, or `Tool(content)`, such as Bash(git *)",
        ),
        (
            lambda: parse_rule("Bahs"),
            "rule: got 'Bahs', allowed: a rule for a tool\nWhat to do: did you mean Bash?",
        ),
        (
            lambda: parse_rule("Write(a)"),
            (
                "rule: got 'Write(a)', allowed: Edit(...) for paths: the CLI ignores others\n"
                "What to do: Edit(a) covers every tool that changes files, Write too"
            ),
        ),
        (
            lambda: parse_rule("Grep(a)"),
            (
                "rule: got 'Grep(a)', allowed: Read(...) for paths\n"
                "What to do: Read(a) covers every tool that reads files, Grep too"
            ),
        ),
        (
            lambda: parse_rule("mcp__a__b(x)"),
            (
                "rule: got 'mcp__a__b(x)', allowed: the name alone: rules for MCP tools have no"
                " content"
            ),
        ),
        (
            lambda: parse_rule("WebFetch(a.com)"),
            "rule: got 'WebFetch(a.com)', allowed: WebFetch(domain:example.com)",
        ),
        (lambda: f.read_table(5), "text: got 5, allowed: a text of TOML"),
        (
            lambda: f.read_table("="),
            "text: not TOML: Invalid statement (at line 1, column 1)",
        ),
        (
            lambda: f.read_table("x=1"),
            (
                "policy key: got 'x', allowed: rules, available, auto_approve, forbid, repeatable,"
                " otherwise, remember"
            ),
        ),
        (lambda: f.read_table("rules=5"), "rules: got 5, allowed: tables: [[rules]]"),
        (lambda: f.read_table("rules=[5]"), "rules[0]: got 5, allowed: a table"),
        (
            lambda: f.read_table('[[rules]]\nbecause="a"'),
            "rules[0]: got ['because'], allowed: exactly one of allow, deny, ask",
        ),
        (
            lambda: f.read_table('[[rules]]\nallow="a"\ndeny="b"'),
            "rules[0]: got ['allow', 'deny'], allowed: exactly one of allow, deny, ask",
        ),
        (
            lambda: f.read_table('[[rules]]\nallow="a"\nx=1'),
            "rules[0] key: got 'x', allowed: allow, deny or ask, because, agents",
        ),
        (
            lambda: f.read_table('[[rules]]\nallow="a"\nbecause=1'),
            "rules[0].because: got 1, allowed: a text",
        ),
        (
            lambda: f.read_table("[[rules]]\nallow=1"),
            "rules[0].allow: got 1, allowed: a text, or a list of texts",
        ),
        (
            lambda: f.read_table('[[rules]]\nallow="a"\nagents=[1]'),
            "rules[0].agents: got [1], allowed: a text, or a list of texts",
        ),
        (
            lambda: f.read_table("forbid=[1]"),
            "forbid: got [1], allowed: a text, or a list of texts",
        ),
        (lambda: p.deny("Bash", agents=5), "agents: got 5, allowed: a name, or a list of names"),
        (
            lambda: p.deny("Bash", agents=["a", 5]),
            "agents: got 5, allowed: a name, or a list of names",
        ),
        (lambda: FORM.response(5), "answer: got 5, allowed: ElicitationAnswer(...)"),
        (lambda: DIALOG.response(5), "answer: got 5, allowed: DialogAnswer(...)"),
    ],
)
def test_a_refusal_names_the_argument_and_what_is_allowed(
    make: Callable[[], Any], text: str
) -> None:
    with pytest.raises(UsageError) as refused:
        make()

    assert str(refused.value) == text
