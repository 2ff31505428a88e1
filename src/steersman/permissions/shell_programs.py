"""Programs that start other programs, and programs that start none, for the reading of commands.

The one table of such programs, taken from the manuals of GNU coreutils, findutils, sed, gawk,
util-linux, git, man-db and bash. A program that is not in it may start whatever its arguments name.
What no table can know (a copy under another name, a script, an alias in a file) the page about
permissions names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wrapper:
    """How a wrapper such as `timeout` is written: its options with a value, and its operands."""

    short: str = ""
    """The letters of options that are followed by a value."""
    long: tuple[str, ...] = ()
    operands: int = 0
    """The number of words before the wrapped command that are not options."""


WRAPPERS = {
    "builtin": Wrapper(),
    "busybox": Wrapper(),
    "chroot": Wrapper(long=("--userspec", "--groups"), operands=1),
    "command": Wrapper(),
    "coproc": Wrapper(),
    "doas": Wrapper("Cu"),
    "env": Wrapper("uCS", ("--unset", "--chdir", "--split-string")),
    "exec": Wrapper("a"),
    "flock": Wrapper("wE", ("--wait", "--timeout", "--conflict-exit-code"), operands=1),
    "ionice": Wrapper("cnpPu", ("--class", "--classdata", "--pid", "--pgid", "--uid")),
    "nice": Wrapper("n", ("--adjustment",)),
    "nocorrect": Wrapper(),
    "noglob": Wrapper(),
    "nohup": Wrapper(),
    "setsid": Wrapper(),
    "ssh": Wrapper("BbcDEeFIiJLlmOopQRSWw", operands=1),
    "stdbuf": Wrapper("ioe", ("--input", "--output", "--error")),
    "sudo": Wrapper(
        "CDghpRrTtUu",
        (
            *("--close-from", "--chdir", "--group", "--host", "--prompt", "--chroot", "--role"),
            *("--command-timeout", "--type", "--other-user", "--user"),
        ),
    ),
    "time": Wrapper("fo", ("--format", "--output")),
    "timeout": Wrapper("ks", ("--kill-after", "--signal"), operands=1),
    "toybox": Wrapper(),
    "watch": Wrapper("nq", ("--interval", "--equexit")),
    "xargs": Wrapper(
        "adEILnPs",
        (
            *("--arg-file", "--delimiter", "--max-lines", "--max-args", "--max-procs"),
            *("--max-chars", "--process-slot-var"),
        ),
    ),
}
"""Commands that start the command in their arguments."""

SHELLS = frozenset({"ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "rbash", "sh"}) | {
    *("tcsh", "yash", "zsh"),
}
EVALUATORS = frozenset({".", "alias", "bind", "complete", "compgen", "emulate", "enable"}) | {
    *("eval", "fc", "hash", "mapfile", "parallel", "readarray", "repeat", "script", "source"),
    *("su", "trap", "zmodload"),
}
"""Commands that run text, or that change what a name runs."""
SUBSTITUTING = frozenset(
    {"[", "declare", "export", "let", "local", "printf", "read", "readonly"}
) | {
    *("test", "typeset", "unset", "wait", "getopts", "cd", "return", "exit", "shift"),
}
"""Builtins that may expand the index of an array, in a word that was quoted too."""
KEYWORDS = frozenset({"!", "{", "}", "do", "done", "elif", "else", "esac", "fi", "if", "then"}) | {
    *("until", "while"),
}
"""Words of the shell that are followed by a command."""
HEADS = frozenset({"for", "select"})
"""Words of the shell that are followed by a name, and then perhaps by `do` or `{` and a command."""
COPYING = frozenset({"cat", "cp", "dd", "install", "ln", "mv", "tee"})
"""Commands that can give a program another name."""
UNREADABLE = frozenset(
    {"[[", "case", "coproc", "for", "foreach", "function", "in", "select", "time"}
)
"""Words of the shell with a grammar of their own."""

_QUIET_NAMES = """
basename cat cd chgrp chmod chown cmp column comm cp cut date df diff dirname du echo
egrep expr false fgrep file fold grep head hostname id jq kill ln ls md5sum mkdir
mktemp mv nl od paste printenv printf ps pwd readlink realpath rev rm rmdir seq sha1sum
sha256sum sleep stat strings tac tail tee test touch tr tree true type uname uniq wc
whereis which whoami xxd yes [ :
"""
_QUIET = frozenset(_QUIET_NAMES.split())
_SUBCOMMANDS = {
    "apt": "install list remove search show update",
    "apt-get": "install remove update",
    "brew": "info install list search uninstall update",
    "cargo": "add build check clean doc fmt remove update",
    "docker": "images inspect kill logs ps pull push rm rmi start stop",
    "git": "add am apply archive blame branch checkout cherry-pick clean clone commit describe diff"
    " fetch grep init log ls-files ls-tree merge mv pull push reflog remote reset restore rev-parse"
    " revert rm shortlog show stash status switch tag worktree",
    "kubectl": "apply delete describe get logs",
    "npm": "add audit i info install list ls outdated remove rm search uninstall update view",
    "pip": "freeze install list show uninstall",
    "pnpm": "add i install list remove rm update",
    "podman": "images inspect kill logs ps pull push rm rmi start stop",
    "yarn": "add info install list remove",
}
_QUIET_SUBCOMMANDS = {name: frozenset(text.split()) for name, text in _SUBCOMMANDS.items()}
_GLOBAL_OPTIONS = {
    "apt": Wrapper("cot", ("--config-file", "--option", "--target-release")),
    "apt-get": Wrapper("cot", ("--config-file", "--option", "--target-release")),
    "cargo": Wrapper("CZ", ("--color", "--config", "--explain")),
    "docker": Wrapper("cHl", ("--config", "--context", "--host", "--log-level", "--tlscacert")),
    "git": Wrapper(
        "Cc",
        (
            *("--attr-source", "--config-env", "--git-dir", "--namespace", "--super-prefix"),
            "--work-tree",
        ),
    ),
    "kubectl": Wrapper(
        "ns",
        ("--as", "--cluster", "--context", "--kubeconfig", "--namespace", "--server", "--user"),
    ),
    "npm": Wrapper("Cw", ("--prefix", "--workspace", "--userconfig", "--loglevel")),
    "pip": Wrapper("", ("--cache-dir", "--log", "--proxy", "--python", "--timeout")),
    "pnpm": Wrapper("CF", ("--dir", "--filter")),
    "podman": Wrapper("cr", ("--connection", "--log-level", "--root", "--url")),
    "yarn": Wrapper("", ("--cwd",)),
}
"""The options with a value that stand before the subcommand of a program."""

_GIT_STARTS = (
    *("config", "config-env", "editor", "exec", "ext-diff", "extcmd", "open-files-in-pager"),
    *("receive-pack", "template", "textconv", "upload-pack"),
)
_GIT_LETTERS = re.compile(r"-[A-Za-z]*[uO].*|-[cx]")
"""Options of git that may start a program; git takes the beginning of a long one, and `-lO`."""
_SETS = re.compile(r"-o.*|--(?:conf|opt|script).*")
"""Options of the other programs that may set one."""
_FIND_STARTS = re.compile(r"-(?:exec|ok|f[pl]).*")
_MAY_START = {
    "find": _FIND_STARTS,
    "man": re.compile(r"-\w*[PHCEp]|--[phwc]"),
    "rg": re.compile(r"--[ph]"),
    "sort": re.compile(r"--c"),
}
"""Options with which a program starts one that they name."""
_ASSIGNMENT = re.compile(r"\w+(?:\[[^\]]*\])?\+?=")


def is_quiet(head: str, words: tuple[str, ...]) -> bool:
    """Return whether a command with these arguments certainly starts no program that they name."""
    if head in SUBSTITUTING and any("$" in word or "`" in word for word in words):
        return False
    if head in HEADS:
        return words[1:2] == ("in",)
    if head in _MAY_START:
        return not any(map(_MAY_START[head].match, words))
    if head in _QUIET_SUBCOMMANDS:
        first = words[0] if words else ""
        may_set = _git_starts if head == "git" else _SETS.fullmatch
        return first in _QUIET_SUBCOMMANDS[head] and not any(map(may_set, words))
    return head in _QUIET


def _git_starts(word: str) -> bool:
    if not word.startswith("--"):
        return _GIT_LETTERS.fullmatch(word) is not None
    name = word[2:].partition("=")[0]
    return bool(name) and any(each.startswith(name) for each in _GIT_STARTS)


_AWKS = frozenset({"awk", "gawk", "mawk", "nawk"})
_SEDS = frozenset({"gsed", "sed"})
_AWK_STARTS = re.compile(r"system|@|(?<!\|)\|(?!\|)|\A-[fil]|--(?:f|in|l)")
_SED_OPTION = re.compile(r"-(?:[nErsuz]*e|-e(?:x\w*)?\Z|-e(?:x\w*)?=)(?P<program>.*)", re.DOTALL)
_SED_PLACE = r"(?:\d+|\$|/(?:[^/\\]|\\.)*/I?)"
_SED_COMMAND = re.compile(
    rf"[ ;\n]*(?:{_SED_PLACE}(?:,[+~]?{_SED_PLACE})?)?[ !]*(?:[dDgGhHlnNpPqQx=}}{{]"
    r"|[aic]\\?[^\n]*|[sy]([/|,#@:!%])(?:(?!\1)[^\\]|\\.)*\1(?:(?!\1)[^\\]|\\.)*\1[gpiIM0-9]*)"
    r"(?:[ ;\n]+|(?=[{}])|(?<=[{}])|\Z)"
)


def runs_input(head: str, words: tuple[str, ...]) -> bool:
    """Return whether the program in the arguments of sed or awk may run what it reads."""
    if head in _AWKS:
        return any(map(_AWK_STARTS.search, words))
    return head in _SEDS and not all(map(_is_plain_sed, _sed_programs(words)))


def _sed_programs(words: tuple[str, ...]) -> list[str]:
    """Return the programs among the arguments of sed: those of `-e`, or else the first operand."""
    options = [_SED_OPTION.fullmatch(word) for word in words]
    programs = [
        found["program"] or "".join(words[at + 1 : at + 2])
        for at, found in enumerate(options)
        if found is not None
    ]
    return programs or [word for word in words if not word.startswith("-")][:1]


def _is_plain_sed(program: str) -> bool:
    """Return whether a program of sed has only commands that start nothing."""
    at = 0
    while at < len(program):
        found = _SED_COMMAND.match(program, at)
        if found is None or found.end() == at:
            return False
        at = found.end()
    return True


def before_subcommand(head: str, words: tuple[str, ...]) -> tuple[int, bool]:
    """Return how many arguments come before the subcommand of a program, and if that is sure."""
    known = _GLOBAL_OPTIONS.get(head)
    return (0, True) if known is None else _behind_options(known, words)


def starts_commands(head: str, words: tuple[str, ...]) -> bool:
    """Return whether a command may start what its arguments name: no approval of it is sure."""
    if head in WRAPPERS or head in SHELLS or head in EVALUATORS:
        return True
    if head in KEYWORDS or head in UNREADABLE:
        return True
    if head == "find":
        return any(map(_FIND_STARTS.match, words))
    return head in SUBSTITUTING and any("$" in word or "`" in word for word in words)


def behind_wrapper(head: str, words: tuple[str, ...]) -> tuple[int, bool]:
    """Return how many arguments of a wrapper come before its command, and if that is sure."""
    return _behind_options(WRAPPERS[head], words)


def _behind_options(known: Wrapper, words: tuple[str, ...]) -> tuple[int, bool]:
    at, is_sure, operands = 0, True, known.operands
    while at < len(words):
        word = words[at]
        if word == "--":
            at += 1
        elif word.startswith("--"):
            takes_value = "=" not in word and any(each.startswith(word) for each in known.long)
            is_sure = is_sure and (takes_value or "=" in word or word.startswith("--no-"))
            at += 2 if takes_value else 1
        elif word.startswith(("-", "+")) and len(word) > 1:
            letters = [letter in known.short for letter in word[1:]]
            at += 2 if any(letters) and letters.index(True) == len(letters) - 1 else 1
        elif operands:
            operands, at = operands - 1, at + 1
        elif _ASSIGNMENT.match(word):
            at += 1
        else:
            break
    return at, is_sure
