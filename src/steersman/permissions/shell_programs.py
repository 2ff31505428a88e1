"""Programs that start other programs, and programs that start none, for the reading of commands."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = [
    "EVALUATORS",
    "KEYWORDS",
    "SHELLS",
    "SUBSTITUTING",
    "WRAPPERS",
    "Wrapper",
    "behind_wrapper",
    "is_quiet",
    "starts_commands",
]


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
UNREADABLE = frozenset(
    {"[[", "case", "coproc", "for", "foreach", "function", "in", "select", "time"}
)
"""Words of the shell with a grammar of their own."""

_QUIET_NAMES = """
basename cat cd chgrp chmod chown cmp column comm cp cut date df diff dirname du echo
egrep expr false fgrep file fold for grep head hostname id jq kill ln ls man md5sum mkdir
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
_STARTING = re.compile(
    r"-c|-u|-x|-O.*|--(?:config|exec|upload-pack|receive-pack|open-files|ext-diff|ed|extcmd).*"
)
_FIND_STARTS = re.compile(r"-(?:exec|ok|f[pl]).*")
_ASSIGNMENT = re.compile(r"\w+(?:\[[^\]]*\])?\+?=")


def is_quiet(head: str, words: tuple[str, ...]) -> bool:
    """Return whether a command with these arguments certainly starts no program that they name."""
    if head in SUBSTITUTING and any("$" in word or "`" in word for word in words):
        return False
    if head == "find":
        return not any(map(_FIND_STARTS.match, words))
    if head == "sort":
        return not any(word.startswith("--c") for word in words)
    if head == "rg":
        return not any(word.startswith(("--p", "--h")) for word in words)
    if head in _QUIET_SUBCOMMANDS:
        first = words[0] if words else ""
        is_known = first in _QUIET_SUBCOMMANDS[head]
        return is_known and not (head == "git" and any(map(_STARTING.fullmatch, words)))
    return head in _QUIET


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
    wrapper = WRAPPERS[head]
    at, is_sure, operands = 0, True, wrapper.operands
    while at < len(words):
        word = words[at]
        if word == "--":
            at += 1
        elif word.startswith("--"):
            takes_value = "=" not in word and any(each.startswith(word) for each in wrapper.long)
            is_sure = is_sure and (takes_value or "=" in word)
            at += 2 if takes_value else 1
        elif word.startswith(("-", "+")) and len(word) > 1:
            letters = [letter in wrapper.short for letter in word[1:]]
            at += 2 if any(letters) and letters.index(True) == len(letters) - 1 else 1
        elif operands:
            operands, at = operands - 1, at + 1
        elif _ASSIGNMENT.match(word):
            at += 1
        else:
            break
    return at, is_sure
