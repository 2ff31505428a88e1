"""`steersman chat` in a real terminal, on the stock CLI."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from steersman.testing.model import ScriptedModel
from steersman.testing.request import ModelRequest
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Answer, Script, Step, call, say
from tests.live.commands import PROGRAM, command_env
from tests.live.terminal import Terminal

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x1b[1;1H"
SHOWN = "\\x1b]0;owned\\x07\\x1b[2J\\x1b[1;1H"
CTRL_C, CTRL_D, CTRL_L, CTRL_O = "\x03", "\x04", "\x0c", "\x0f"
PROMPT = "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"
KEYS = "[y] yes [a] always here [n] no, because... [e] edit [?] why asked"

CHOICE = {
    "question": "Which?",
    "header": "Colour",
    "multiSelect": False,
    "options": [{"label": "red", "description": ""}, {"label": "blue", "description": ""}],
}
SGR = re.compile(rb"\x1b\[([0-9;]*)m")

Begin = Callable[..., Terminal]


def waits(name: str) -> Step:
    """A tool that runs until the file `name`.go exists."""
    return call("Bash", command=f"touch {name}; while [ ! -e {name}.go ]; do sleep 0.02; done")


def finish(project: Path, name: str) -> None:
    (project / f"{name}.go").touch()


@pytest.fixture
def begin(cli: Path, sandbox: CliSandbox) -> Iterator[Begin]:
    """Starts a chat with a scripted model, in which Bash runs without being asked about."""
    open_: list[ScriptedModel | Terminal] = []
    policy = sandbox.root / "policy.toml"
    policy.write_text('auto_approve = ["Bash"]\n')

    def begin(*steps: Answer, columns: int = 100, **more: str) -> Terminal:
        model = ScriptedModel(Script(*steps, strict=True)).__enter__()
        env = command_env(sandbox.env(model.url), cli, **more)
        words = [*PROGRAM, "chat", "--policy", str(policy)]
        terminal = Terminal(words, env, sandbox.project, columns=columns)
        open_.extend((model, terminal))
        terminal.wait(PROMPT if more.get("TERM") else "enter: next · ctrl-o: now · ctrl-l: later")
        return terminal

    yield begin
    for each in reversed(open_):
        each.__exit__(None, None, None)


def test_a_tool_is_steered_and_asks_are_answered_with_each_key(
    begin: Begin, sandbox: CliSandbox
) -> None:
    project = sandbox.project
    (project / "cart.py").write_text("total = 1\n")
    editor = sandbox.root / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/first/second/ "$1"\n')
    editor.chmod(0o755)
    cart = str(project / "cart.py")

    def after_steering(request: ModelRequest) -> Step:
        heard = "leave the fixtures alone" in str(request.body["messages"])
        return say(f"I{HOSTILE} heard: {heard}.") + call("Read", file_path=cart)

    terminal = begin(
        say("I will look first.") + waits("slow"),
        after_steering,
        call("Edit", file_path=cart, old_string="total = 1", new_string="total = 2"),
        call("Write", file_path=str(project / "edited"), content=f"first{HOSTILE}\n"),
        call("Write", file_path=str(project / "denied"), content="x\n"),
        call("Write", file_path=str(project / "more"), content="x\n"),
        say("All done."),
        EDITOR=str(editor),
    )
    terminal.type("mend the cart\r")
    terminal.wait(lambda _: (project / "slow").exists())
    terminal.wait("you mend the cart")
    terminal.type("leave the fixtures alone\r")
    terminal.wait("next leave the fixtures alone will be read after this tool")
    finish(project, "slow")

    terminal.wait(f"claude I{SHOWN} heard: True.")
    terminal.wait(f"+1 -1 - total = 1 + total = 2 {KEYS}")
    terminal.type("?")
    terminal.wait("[a] allows:")
    terminal.type("y")
    terminal.wait(f"+ first{SHOWN}")
    terminal.type("e")
    terminal.wait("/denied +1 -0")
    terminal.type("n")
    terminal.wait(f"no, because {PROMPT}")
    terminal.type("not that one\r")
    terminal.wait("/denied not that one")
    terminal.wait("/more +1 -0")
    terminal.type("a")
    terminal.wait("All done.")
    terminal.type(CTRL_D)

    assert terminal.end() == 0
    assert "steersman chat --resume" in terminal.words
    assert terminal.title == ""
    assert (project / "cart.py").read_text() == "total = 2\n"
    assert (project / "edited").read_text().startswith("second")
    assert (project / "more").exists()
    assert not (project / "denied").exists()


def test_now_later_resize_and_ctrl_c_once_and_twice(begin: Begin, sandbox: CliSandbox) -> None:
    project = sandbox.project
    terminal = begin(
        waits("one"),
        say("Turned at once."),
        say("And the later one."),
        say("Words in forty columns, which are wrapped and not cut off at all."),
        waits("two"),
        say("Still here."),
        waits("three"),
        NO_COLOR="1",
    )
    terminal.type("begin\r")
    terminal.wait(lambda _: (project / "one").exists())
    terminal.type(f"read this later{CTRL_L}")
    terminal.wait("later read this later will be read after this turn")
    terminal.type(f"turn round{CTRL_O}")
    terminal.wait("now turn round ends the turn after this tool")
    finish(project, "one")
    terminal.wait("claude Turned at once.")
    terminal.wait("claude And the later one.")

    terminal.resize(40, 40)
    terminal.wait("interrupt, twice: leave")
    terminal.type("be narrow\r")
    terminal.wait("wrapped and not cut off at all.")
    terminal.type("wait\r")
    terminal.wait(lambda _: (project / "two").exists())
    terminal.type(CTRL_C)
    terminal.wait("note interrupted")
    terminal.type("go on\r")
    terminal.wait("claude Still here.")
    terminal.type("wait again\r")
    terminal.wait(lambda _: (project / "three").exists())
    terminal.type(CTRL_C + CTRL_C)

    assert terminal.end() == 130
    styles = {part for found in SGR.findall(terminal.written) for part in found.split(b";")}
    assert styles <= {b"", b"0", b"1", b"2", b"4", b"7"}


def test_a_dumb_terminal_gets_plain_text(begin: Begin, sandbox: CliSandbox) -> None:
    written = sandbox.project / "written"
    terminal = begin(
        call("Write", file_path=str(written), content="x\n"),
        call("AskUserQuestion", questions=[CHOICE]),
        say("Plain."),
        TERM="dumb",
    )
    terminal.type("hi\r")
    terminal.wait(KEYS)
    terminal.type("n\r")
    terminal.wait(f"no, because {PROMPT}")
    terminal.type("not now\r")
    terminal.wait("ask Which? 1 red 2 blue")
    terminal.type("2\r")
    terminal.wait("claude Plain.")
    assert "you blue" in terminal.words
    terminal.type(CTRL_C)
    terminal.wait("ctrl-c again leaves")
    terminal.type("/exit\r")

    assert terminal.end() == 0
    assert b"\x1b" not in terminal.written
    assert not written.exists()
