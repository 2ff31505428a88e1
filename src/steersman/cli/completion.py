"""Completions for the shell: `eval "$(_STEERSMAN_COMPLETE=bash_source steersman)"`.

What may come next is read from the parser of the command. Where nothing is known, such as in place
of a path, the shell completes names of files.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import cast

from steersman.cli.commands import Command, summaries
from steersman.cli.parsers import Parser
from steersman.cli.statuses import COMPLETED, MISUSE

WORDS, POSITION = "COMP_WORDS", "COMP_CWORD"
"""The variables with the words of the line, one on each line, and the number of the last one."""

SCRIPTS = {
    "bash": r"""
_steersman_complete() {
    local IFS=$'\n'
    COMPREPLY=($(COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD="$COMP_CWORD" \
        _STEERSMAN_COMPLETE=bash_complete "$1" 2> /dev/null))
}
complete -o default -F _steersman_complete steersman
""",
    "zsh": r"""
#compdef steersman
_steersman_complete() {
    local -a found
    found=("${(@f)$(COMP_WORDS="${(F)words}" COMP_CWORD=$((CURRENT - 1)) \
        _STEERSMAN_COMPLETE=zsh_complete "${words[1]}" 2> /dev/null)}")
    if [[ -n "$found" ]]; then
        _describe steersman found
    else
        _files
    fi
}
compdef _steersman_complete steersman
""",
    "fish": r"""
function _steersman_complete
    set -l before (commandline -opc)
    set -lx COMP_WORDS (string join \n -- $before (commandline -ct) | string collect)
    set -lx COMP_CWORD (count $before)
    _STEERSMAN_COMPLETE=fish_complete steersman 2> /dev/null
end
complete --command steersman --arguments "(_steersman_complete)"
""",
}

GLOBAL = {
    "--help": "list the commands",
    "--version": "show the version",
    "--debug": "show where an error comes from",
}


def complete(found: Iterable[Command], instruction: str, environ: Mapping[str, str]) -> int:
    """Write what the shell asks for in `instruction`, and return the exit status."""
    shell, _, what = instruction.partition("_")
    if shell not in SCRIPTS or what not in ("source", "complete"):
        return MISUSE
    if what == "source":
        print(SCRIPTS[shell].strip())
        return COMPLETED
    words = environ.get(WORDS, "").split("\n")
    number = environ.get(POSITION, "")
    at = int(number) if number.isdecimal() else len(words)
    begun = words[at] if at < len(words) else ""
    for word, text in candidates(list(found), words[1:at], begun):
        if word.startswith(begun):
            print(_row(shell, word, text))
    return COMPLETED


def _row(shell: str, word: str, text: str) -> str:
    if shell == "bash" or not text:
        return word
    return f"{word}:{text}" if shell == "zsh" else f"{word}\t{text}"


def candidates(found: list[Command], words: list[str], begun: str) -> Iterator[tuple[str, str]]:
    """Yield what may follow `words`, with one line about each; `begun` is what is typed of it."""
    words = words[words[:1] == ["--debug"] :]
    if not words:
        yield from GLOBAL.items() if begun.startswith("-") else summaries(found).items()
        return
    parser = _parser_of(found, words[0])
    before = None
    for word in words:
        before = _option(parser, word)
        parser = _actions(parser).get(word, parser)
    if before is not None and before.nargs != 0:
        yield from ((str(each), "") for each in before.choices or ())
    elif begun.startswith("-"):
        for action in parser.arguments():
            yield from ((each, _help(action)) for each in action.option_strings)
    else:
        yield from _arguments(parser)


def _parser_of(found: list[Command], name: str) -> Parser:
    """Return a parser with one command in it, `name`, or none if that cannot be loaded."""
    parser = Parser(prog="steersman", add_help=False)
    commands = parser.add_subparsers(metavar="COMMAND")
    for command in found:
        if command.name == name:
            # Code of another distribution may raise anything, and a shell shows no error.
            with suppress(Exception):
                command.load()(commands)
    return parser


def _arguments(parser: Parser) -> Iterator[tuple[str, str]]:
    for action in parser.arguments():
        if action.nargs == argparse.PARSER:
            yield from ((name, _summary(each)) for name, each in _actions(parser).items())
        elif not action.option_strings:
            yield from ((str(each), "") for each in action.choices or ())


def _actions(parser: Parser) -> Mapping[str, Parser]:
    for action in parser.arguments():
        if action.nargs == argparse.PARSER:
            return cast("Mapping[str, Parser]", action.choices)
    return {}


def _option(parser: Parser, word: str) -> argparse.Action | None:
    return next((each for each in parser.arguments() if word in each.option_strings), None)


def _summary(parser: Parser) -> str:
    return " ".join((parser.description or "").split("\n\n")[0].split())


def _help(action: argparse.Action) -> str:
    text = action.help or ""
    return text % {"default": action.default} if "%(" in text else text
