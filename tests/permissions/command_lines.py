"""Command lines by chance, and the programs that bash really starts for them.

The lines name only stand-ins, which record that they were started, and a few programs that start
others. They contain no path but `/dev/null`, so that no line can write outside its own folder.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

NAMES = ("git", "rm", "touch", "mk")
REAL = (
    *("awk", "bash", "cat", "cp", "env", "find", "flock", "nice", "nohup", "sed", "setsid", "sh"),
    *("timeout", "xargs"),
)
"""Programs that start others. They are not recorded."""
ARGUMENTS = (
    *(
        "a",
        "-x",
        "--all",
        "a=b",
        "*",
        "?",
        "{a,b}",
        "~",
        "$x",
        "${x}",
        "$HOME",
        "''",
        '""',
        "1",
        "-",
    ),
    *(
        "'it s'",
        '"it\'s"',
        "'a\"b'",
        '"a;b"',
        "'a|b'",
        '"#"',
        "a#b",
        "#",
        "!",
        "\\",
        "\\ ",
        "\\'",
        "é",
    ),
    *(
        "'$(rm)'",
        '"$(rm)"',
        '"`rm`"',
        "'`rm`'",
        "$(git)",
        "`mk`",
        "\"'$(rm)'\"",
        "$'a\\'b'",
        '$"a"',
    ),
    *("rm", "git", "r'm'", '"rm x"', "'rm; x'", "%", "a:b", "[a]", "^", "@{1}", "\u00a0", "\u2028"),
)
JOINTS = (
    *(
        " && ",
        " || ",
        "; ",
        " | ",
        ";",
        "|",
        "&&",
        " & ",
        "&",
        "|&",
        "\n",
        " \n ",
        "\t",
        "  ",
        "\r",
        "\\\n",
    ),
    *(
        " > f ",
        ">/dev/null ",
        " >/dev/null ",
        " 2>&1 ",
        " 2>&1\n",
        "\n2>&1 ",
        "\n>/dev/null ",
        " <<< ",
    ),
    *(
        "<(",
        "(",
        ")",
        "$(",
        "`",
        " { ",
        "; } ",
        " #",
        " # '\n",
        "# \\\n",
        "\n#",
        "'",
        '"',
        " <f ",
        "\x0b",
    ),
    *(
        " &> f ",
        " >& f ",
        "2> f ",
        " {v}>f ",
        "<<E\n",
        "\nE\n",
        "${x:-",
        "}",
        "$((",
        "))",
        "((",
        "[[ ",
    ),
)
PREFIXES = (
    *(
        "",
        "",
        "",
        "",
        "A=1 ",
        "env ",
        "env -u A ",
        "timeout 5 ",
        "timeout -s KILL 5 ",
        "nice -n 5 ",
    ),
    *(
        "exec ",
        "exec -a x ",
        "command ",
        "builtin ",
        "! ",
        ">f ",
        "2>&1 ",
        "xargs ",
        "nohup ",
        "time ",
    ),
    *(
        "coproc ",
        "function f { ",
        "if true; then ",
        "for i in 1; do ",
        "eval ",
        "setsid ",
        "A=$(",
        "\\",
    ),
    *("command -v ", "xargs -I{} ", "env -S ", "time -p ", "f() { ", "case a in a) ", "trap -- "),
)
FORMS = (
    *("{}", "{}", "{}", "{}", "{}", "({})", "{{ {}; }}", "$({})", '"$({})"', "`{}`", "echo $({})"),
    *(
        "bash -c '{}'",
        'sh -ec "{}"',
        "bash -lc '{}'",
        "eval '{}'",
        "trap '{}' EXIT",
        "echo {} | sh",
    ),
    *(
        "bash <<< '{}'",
        "cat <({})",
        "if {}; then {}; fi",
        "f() {{ {}; }}; f",
        "case a in a) {};; esac",
    ),
    *(
        "sh <<E\n{}\nE\n",
        "echo '{}' > s; sh s",
        "x='{}'; $x",
        "{} # it's\n{}",
        "git '{}'",
        'git "{}"',
    ),
    *("printf -v 'a[$({})]' x", "[[ -v 'a[$({})]' ]]", "for i in {}; do $i; done", "env -S '{}'"),
    *(
        ": ${{x:-$({})}}",
        "echo {} | xargs -I% %",
        'x=(a {}); "${{x[1]}}"',
        "alias y={}\ny",
        ". ./s",
    ),
)
STATEMENTS = (
    # `@@` is a statement, `@` is a command.
    *(
        "@",
        "@",
        "@",
        "@; @",
        "@ && @",
        "false || @",
        "@ | @",
        "@ |& @",
        "! @",
        "@ & wait",
        "time @",
    ),
    *("{ @@; }", "(@@)", "if @@; then @@; fi", "if false; then :; elif @@; then @@; else @@; fi"),
    *("while @@; do @@; break; done", "until @@; do break; done", "if :\nthen\n@@\nfi"),
    *("for i in a b; do @@; done", "for i do @@; done", "for i\ndo @@; done", "for i; do @@; done"),
    *("for i in a; { @@; }", "for i { @@; }", "for do do @@; done", "for in in in; do @@; done"),
    *("for ((i=0;i<1;i++)); do @@; done", "for ((i=0;i<1;i++)) { @@; }", "for i do\n@@\ndone"),
    *("select i in a; do @@; break; done <<< 1", "select i do @@; break; done <<< 1"),
    *("case a in a) @@;; esac", "case a in (a|b) @@;; esac", "case a in\na)\n@@\n;;\nesac"),
    *("case a in b) :;; *) @@ ;esac", "case a in a) @;& b) @;; esac", "case $(@) in *) @;; esac"),
    *(
        "f() { @@; }; f",
        "function f { @@; }; f",
        "function f() ( @@ ); f",
        "f() for i in 1; do @@; done; f",
    ),
    *(
        "f() if @; then :; fi; f",
        "coproc { @@; }; wait",
        "coproc n { @@; }; wait",
        "coproc @; wait",
    ),
    *("[[ -n x ]] && @", "[[ -n $(@) ]]", "((1)) && @", "x=$(@@)", "x=`@` @", 'echo "$(@@)"'),
    *(
        "echo $(@@)",
        "cat <(@@)",
        ": > >(@@)",
        "cat <<E\n$(@)\nE",
        "cat <<'E'\n@\nE",
        "bash <<E\n@@\nE",
    ),
    *("cat << E | sh\n@\nE", "bash <<< '@'", "eval '@@'", 'eval "@"', "bash -c '@@'", "sh -ec '@'"),
    *("bash -O extglob -O nullglob -O dotglob -O globstar -c '@'", "trap '@' EXIT", "env -S '@'"),
    *(
        "x=1 @",
        "@ > f",
        "> f @",
        "2>&1 @ < f",
        "@ {v}>f",
        "x=(a $(@))",
        "declare x=$(@)",
        "${x:-@}",
    ),
    *("echo @ | xargs env", "echo @ | xargs nice", "echo @ | xargs timeout 5", "echo @ | xargs"),
    *("echo @ | xargs flock l", "echo @ > c; xargs -a c env", "echo @ | xargs -I% %", "xargs @"),
    *("echo @ | sed e", "echo @ | sed -n '1e'", "echo a | sed 's,a,@,e'", "echo a | sed -e '1e @'"),
    *(
        "echo @ | awk '{system($0)}'",
        "awk 'BEGIN{system(\"@\")}'",
        "echo @ | awk '{print | \"sh\"}'",
    ),
    *("awk 'BEGIN{\"@\" | getline}'", "find . -maxdepth 0 -exec @ ;", "find . -exec sh -c '@' ';'"),
    *("flock l @", "flock l -c '@'", "timeout -s KILL 5 @", "nice -n 5 nohup @", "env -u A B=1 @"),
    *("command @", "exec @", "builtin eval '@'", "alias y='@'\ny", "shopt -s expand_aliases\n@"),
    *('set -- @; "$@"', "x='@'; $x", "x=@; eval $x", "printf -v 'a[$(@)]' x", "read x <<< '@'; $x"),
    *("mapfile -C '@; :' -c 1 x <<< a", "compgen -C '@'", "source <(echo @)", ". <(echo '@')"),
    *("# @\n@", "@ # '\n@", "echo \\\n@", "@\\\n x", "PROMPT_COMMAND='@' bash -ic :", "\t@", "@;"),
)
"""Statements of the grammar that tree-sitter-bash reads, and programs that run others."""
DEEPER = 0.2
"""The chance that a statement stands where a command could."""
SPELLED = (
    *("{}", "{}", "{}", "{}", "'{}'", '"{}"', "\\{}", "$'{}'", '$"{}"', "{}\\\n", "{{{},x}}"),
    *("$(echo {})", "`echo {}`", "${{y:-{}}}", "''{}", '{}""', "!{}", "=f {}"),
)
_HARMLESS = re.compile(r"/dev/null(?=[\s;|&)]|\Z)")


def lines(count: int, seed: int) -> Iterator[str]:
    """Yield this many different lines."""
    chance = random.Random(seed)
    seen: set[str] = set()
    while len(seen) < count:
        line = _line(chance)
        if line not in seen and "/" not in _HARMLESS.sub("", line):
            seen.add(line)
            yield line


def programs(count: int, seed: int) -> Iterator[str]:
    """Yield this many different lines of the grammar, with statements within statements."""
    chance = random.Random(seed)
    seen: set[str] = set()
    while len(seen) < count:
        line = _statement(chance, 3)
        if line not in seen and "/" not in _HARMLESS.sub("", line):
            seen.add(line)
            yield line


def _statement(chance: random.Random, depth: int) -> str:
    def one(found: re.Match[str]) -> str:
        is_deep = depth and (found.group() == "@@" or chance.random() < DEEPER)
        return _statement(chance, depth - 1) if is_deep else _simple(chance)

    return re.sub("@@?", one, chance.choice(STATEMENTS))


def _simple(chance: random.Random) -> str:
    name = chance.choice(SPELLED).format(chance.choice(NAMES))
    words = [chance.choice(("M", "a b", "-x", "x=1", "'y z'", "$x", "*")) for _ in range(2)]
    return " ".join([name, *words[: chance.randrange(3)]])


def _command(chance: random.Random) -> list[str]:
    atoms = [chance.choice(PREFIXES) if chance.random() < 0.4 else "", chance.choice(NAMES)]
    for _ in range(chance.randrange(4)):
        atoms += [" " if chance.random() < 0.9 else "", chance.choice(ARGUMENTS)]
    return atoms


def _plain(chance: random.Random) -> list[str]:
    name = chance.choice(NAMES)
    atoms: list[str] = []
    for number in range(chance.randrange(1, 4)):
        atoms += [chance.choice(JOINTS[:6])] if number else []
        atoms += [name]
        for _ in range(chance.randrange(3)):
            atoms += [" ", chance.choice(ARGUMENTS)]
    return atoms


def _line(chance: random.Random) -> str:
    if chance.random() < 0.3:
        atoms = _plain(chance)
    else:
        atoms = _command(chance)
        for _ in range(chance.randrange(3)):
            atoms += [chance.choice(JOINTS), *_command(chance)]
    for _ in range(chance.choice((0, 0, 1, 2, 3))):
        _mutate(chance, atoms)
    form = chance.choice(FORMS) if chance.random() < 0.5 else "{}"
    text = "".join(atoms)
    return form.format(*[text] * form.count("{}"))


def _mutate(chance: random.Random, atoms: list[str]) -> None:
    at = chance.randrange(len(atoms) + 1)
    kind = chance.randrange(3)
    if kind == 0 or at == len(atoms):
        atoms.insert(at, chance.choice(chance.choice((JOINTS, ARGUMENTS, NAMES))))
    elif kind == 1 and len(atoms) > 1:
        del atoms[at]
    else:
        atoms[at] = chance.choice(JOINTS)


def started(made: list[str], folder: Path) -> list[set[str]]:
    """Run lines in bash, and return the names of the stand-ins that each of them started."""
    bash = shutil.which("bash")
    if bash is None:
        if os.environ.get("CI"):
            pytest.fail("there is no bash to compare with")
        pytest.skip("there is no bash to compare with")
    stubs = folder / "stubs"
    if not stubs.exists():
        _make_stubs(stubs)
    for number, line in enumerate(made):
        (folder / f"{number}").mkdir()
        (folder / f"{number}.line").write_text(line)
    # A line may loop for ever: each is played on its own, and ended.
    script = (
        "ulimit -t 5 -f 100 -c 0; for ((n = 0; n < $2; n++)); do"
        ' IFS= read -r -d "" line < "$1/$n.line"; cd "$1/$n";'
        ' timeout -s KILL 5 bash --norc --noprofile -c "$3" bash "$line"'
        " < /dev/null > /dev/null 2>&1; done"
    )
    play = 'line=$1; set -- x; eval "$line"; wait'
    subprocess.run(
        [bash, "--norc", "--noprofile", "-c", script, "bash", str(folder), str(len(made)), play],
        env={"PATH": str(stubs), "FUNCNEST": "3", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=500,
        check=False,
    )
    found: list[set[str]] = []
    for number in range(len(made)):
        record = folder / f"{number}.started"
        found.append(set(record.read_text().split()) if record.exists() else set())
    return found


def _make_stubs(stubs: Path) -> None:
    stubs.mkdir()
    for name in NAMES:
        stub = stubs / name
        stub.write_text('#!/bin/sh\necho "${0##*/}" >> "$PWD.started"\n')
        stub.chmod(0o755)
    for name in REAL:
        found = shutil.which(name)
        if found is not None:
            (stubs / name).symlink_to(found)
