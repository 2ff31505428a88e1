"""How a command line is read, word by word, and which programs start others."""

from __future__ import annotations

import pytest

from steersman.permissions.shell import Match, grants_command, stops_command
from steersman.permissions.shell_programs import behind_wrapper, is_quiet, starts_commands
from steersman.permissions.shell_reader import read, words_of_text
from tests.permissions.test_shell_lines import HIDDEN

LONGEST, DEEPEST, MOST = 16_384, 4, 3000


def shown(line: str) -> str:
    """A reading as text: commands between `/`, `~` before a word that is expanded, `text=written`,
    `>` before a file; `?` before what is unsure and at the end if it is not certain, `|` for flow.
    """
    reading = read(line)
    commands: list[str] = []
    for command in reading.commands:
        words = [
            ("~" if word.is_dynamic else "")
            + (word.text if word.text == word.written else f"{word.text}={word.written}")
            for word in command.words
        ]
        files = "".join(f" > {word.text}" for word in command.targets)
        commands.append(("" if command.is_sure else "?") + " ".join(words) + files)
    ends = ("" if reading.is_certain else " ?") + (" |" if reading.has_flow else "")
    return " / ".join(commands) + ends + ("" if reading.is_whole else " ...")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("git log", "git log"),
        ("git  log\t-p", "git log -p"),
        ("git 'a b' c", "git a b='a b' c"),
        ('git "a b"c', 'git a bc="a b"c'),
        ("git a\\ b", "git a b=a\\ b"),
        ('git "a\\b\\"c\\$"', 'git a\\b"c$="a\\b\\"c\\$"'),
        ("git $x ${y} $?", "git ~$x ~${y} ~$?"),
        ('git "$x"', 'git ~$x="$x"'),
        ("git $'a\\x62'", "?git ab=$'a\\x62' ?"),
        ("git a # b", "?git a ?"),
        ("git a#b", "git a#b"),
        ("git #c\nrm", "?git / ?rm ?"),
        ('git "it\'s"', "git it's=\"it's\""),
        ("a;b", "a / b"),
        ("a&&b||c", "a / b / c"),
        ("a|b", "a / b |"),
        ("a |& b", "a / b |"),
        ("a&b", "a / b"),
        ("a\nb", "a / b"),
        ("a\r\nb", "?a / ?b ?"),
        ("a\\\nb", "ab"),
        ("a\x0bb", "?a / ?b ?"),
        ("a > f", "a > f |"),
        ("a 2>f", "a > f |"),
        ("a {v}>f", "a > f |"),
        ("a >f b", "a b > f |"),
        ("a <<E\nx\nE", "?a > E / ?x / ?E ? |"),
        ("a <<<x", "a > x |"),
        ("a &>f", "a > f |"),
        ("a >&2", "a > 2 |"),
        ("> f", " > f |"),
        ("a 2 >f", "a 2 > f |"),
        ("a2>f", "a2 > f |"),
        ("(a)", "a"),
        ("x(a)", "?x / ?a ?"),
        ("a $(b c) d", "b c / a ~$( d"),
        ('a "$(b)"', 'b / a ~$(="$("'),
        ("a <(b)", "b / a ~<("),
        ("a=(b c)", "b c / ~a=("),
        ("a `b c` d", "b c / a ~` d"),
        ("a `b $(c)`", "c / b ~$( / a ~`"),
        ('a `b "`" c', '? c=" c / ?b ~`="` / ?a ~` ?'),
        ("$((1+2))", "?1+2 / ?~$=$(( ?"),
        ("((a))", "?a / ?~$=(( ?"),
        ("a)", "a ?"),
        ("(a", "?a ?"),
        ("a 'b", "?a ~'b ?"),
        ('a "b', '?a b="b ?'),
        ("a $", "a $"),
        ('a "$"', 'a $="$"'),
        ("a $.", "?a ~$. ?"),
        ("a *.py", "a ~*.py"),
        ("a [x]", "a ~[x]"),
        ("a [ x ]", "a [ x ]"),
        ("a {b,c}", "a ~{b,c}"),
        ("a {}", "a {}"),
        ("a ?", "a ?"),
        ("a ?x", "a ~?x"),
        ('a "*"', 'a *="*"'),
        ("[[ a ]]", "?[[ a ]] ?"),
        ("case x in", "?case x in ?"),
        ("function f", "?function f ?"),
        ("select x", "?select x ?"),
        ("coproc a", "?coproc a ?"),
        ("foreach x", "?foreach x ?"),
        ("repeat 3", "?repeat 3 ?"),
        ("esac", "?esac ?"),
        ("A=1 b", "A=1 b"),
        ("a=b", "a=b"),
        ("a =b", "a =b"),
        ("! a", "! a"),
        ("é", "é"),
        ("a\x00b", "?a\x00b ?"),
        ("", ""),
    ],
)
def test_a_line_is_read_as_these_commands(line: str, found: str) -> None:
    assert shown(line) == found


def test_a_line_with_too_many_tokens_is_not_read_to_its_end() -> None:
    assert read(" a" * (MOST // 2)).is_whole
    assert not read(" a" * (MOST // 2) + " ").is_whole
    assert stops_command("rm:*", " a" * MOST) is Match.MAYBE


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a b", ["a", "b"]),
        ("a/b c", ["b", "c"]),
        ("-xrm", ["-xrm", "m", "rm"]),
        ("--rm", ["--rm"]),
        ("'r'm", ["m", "r", "rm"]),
        ("r\\\nm", ["m", "r", "rm"]),
        ("a\\nb", ["a", "anb", "b", "nb"]),
        ("a\\tb", ["a", "atb", "b", "tb"]),
        ("-x", ["-x"]),
        ("a=b:c", ["a", "b", "c"]),
    ],
)
def test_a_text_mentions_these_names(text: str, names: list[str]) -> None:
    assert sorted(words_of_text(text)) == names


SURE = [
    'git "$(rm)"',
    "git \\  2>&1\nrm x",
    "rm\\\n x",
    "sudo -u bob rm x",
    "doas -u a rm x",
    "env -u A rm x",
    "timeout -s KILL 5 rm x",
    "exec -a x rm y",
    "watch rm x",
    "ssh h rm x",
    "busybox rm x",
    ">f rm M",
    "2>&1 rm x",
    "{v}>f rm x",
    "flock f rm x",
    "nice -n 5 rm",
    "xargs -I{} rm",
    "r'm' x",
    '"rm" x',
    "/bin/rm x",
    "r\\m x",
    "a=$(rm x)",
    "diff <(rm x) y",
    "echo `rm x`",
    "! rm x",
    "time -p rm",
    "{ rm x; }",
    "(rm x)",
    "true & rm x",
    "command rm x",
    "echo x | xargs -I% rm %",
]


def test_a_denial_is_sure_of_a_program_by_its_name_only() -> None:
    assert [line for line in HIDDEN if stops_command("rm:*", line) is Match.YES] == SURE


VALUES = {
    "chroot": "--userspec --groups",
    "doas": "-C -u",
    "env": "-u -C -S --unset --chdir --split-string",
    "exec": "-a",
    "flock": "-w -E --wait --timeout --conflict-exit-code",
    "ionice": "-c -n -p -P -u --class --classdata --pid --pgid --uid",
    "nice": "-n --adjustment",
    "ssh": "-B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w",
    "stdbuf": "-i -o -e --input --output --error",
    "sudo": (
        "-C -D -g -h -p -R -r -T -t -U -u --close-from --chdir --group --host --prompt --chroot"
        " --role --command-timeout --type --other-user --user"
    ),
    "time": "-f -o --format --output",
    "timeout": "-k -s --kill-after --signal",
    "watch": "-n -q --interval --equexit",
    "xargs": (
        "-a -d -E -I -L -n -P -s --arg-file --delimiter --max-lines --max-args --max-procs"
        " --max-chars --process-slot-var"
    ),
}
"""Options with a value, as the manuals of these programs say."""

BARE = "builtin busybox command coproc nocorrect noglob nohup setsid toybox"
OPERANDS = {"chroot": 1, "flock": 1, "ssh": 1, "timeout": 1}


@pytest.mark.parametrize("name", [*VALUES, *BARE.split()])
def test_a_wrapper_starts_the_command_behind_its_options(name: str) -> None:
    before = ("x",) * OPERANDS.get(name, 0)
    options = tuple(part for each in VALUES.get(name, "").split() for part in (each, "v"))

    assert starts_commands(name, ())
    assert behind_wrapper(name, (*before, "rm", "-x")) == (len(before), True)
    assert behind_wrapper(name, (*options, *before, "rm")) == (len(options) + len(before), True)
    assert behind_wrapper(name, ("-X", *before, "rm")) == (1 + len(before), True)
    assert behind_wrapper(name, ("--", "A=1", *before, "rm"))[1]


@pytest.mark.parametrize(
    ("name", "words", "found"),
    [
        ("env", "A=1 b[0]+=2 rm x", (2, True)),
        ("env", "-i -u X rm", (3, True)),
        ("env", "-iu X rm", (2, True)),
        ("env", "-uX rm", (1, True)),
        ("env", "-ui rm", (1, True)),
        ("env", "- rm", (0, True)),
        ("env", "--unset=X rm", (1, True)),
        ("env", "--uns X rm", (2, True)),
        ("env", "--unknown rm", (1, False)),
        ("env", "--unknown=1 rm", (1, True)),
        ("env", "-- rm -- x", (1, True)),
        ("xargs", "+x rm", (1, True)),
        ("timeout", "5 6 rm", (1, True)),
        ("timeout", "", (0, True)),
    ],
)
def test_the_words_before_a_wrapped_command_are_counted(
    name: str, words: str, found: tuple[int, bool]
) -> None:
    assert behind_wrapper(name, tuple(words.split())) == found


STARTING = """
ash bash csh dash fish ksh mksh rbash sh tcsh yash zsh . alias bind complete compgen emulate enable
eval fc hash mapfile parallel readarray repeat script source su trap zmodload ! { } do done elif
else esac fi if then until while [[ case coproc for foreach function in select time
"""
SUBSTITUTING = (
    "[ declare export let local printf read readonly test typeset unset wait getopts cd return exit"
    " shift"
)


@pytest.mark.parametrize("name", STARTING.split())
def test_what_may_start_its_arguments_is_never_surely_approved(name: str) -> None:
    assert starts_commands(name, ("x",))
    assert grants_command(f"{name} *", f"{name} x") is not Match.YES


@pytest.mark.parametrize("name", SUBSTITUTING.split())
def test_a_builtin_that_expands_an_index_starts_commands_only_with_one(name: str) -> None:
    assert not starts_commands(name, ("x",))
    for word in ("a[$(rm)]", "a[`rm`]"):
        assert starts_commands(name, ("x", word))
        assert not is_quiet(name, ("x", word))


@pytest.mark.parametrize(
    ("line", "quiet"),
    [
        *(("cat rm", True), ("python rm", False), ("find . -name rm", True)),
        *(("find . -exec rm", False), ("find . -okdir rm", False), ("find . -fprint rm", False)),
        *(("sort -u rm", True), ("sort --compress-program=rm", False), ("rg rm", True)),
        *(("rg --pre rm", False), ("rg --hostname-bin rm", False), ("git", False)),
        *(("git log rm", True), ("git bisect rm", False), ("git -c x", False)),
        *(("git log -c", False), ("git log --ext-diff", False), ("git grep -Orm", False)),
        *(("git diff --extcmd=rm", False), ("git log -cx", True), ("printf x", True)),
        *(("apt install rm", True), ("apt-get remove rm", True), ("brew install rm", True)),
        *(("cargo add rm", True), ("docker rm x", True), ("kubectl get rm", True)),
        *(("npm rm x", True), ("pip install rm", True), ("pnpm rm x", True)),
        *(("podman rm x", True), ("yarn add rm", True), ("yarn run rm", False)),
        *(("docker run rm", False), ("cargo run -u rm", False), ("pip install -c rm", True)),
    ],
)
def test_a_quiet_command_starts_nothing_that_it_names(line: str, *, quiet: bool) -> None:
    head, *words = line.split()

    assert is_quiet(head, tuple(words)) is quiet


@pytest.mark.parametrize(
    ("rule", "line", "found"),
    [
        ("git", "git", Match.YES),
        ("git", "git log", Match.NO),
        ("git *", "git", Match.YES),
        ("git *", "gitk", Match.NO),
        ("git * -p", "git log -p", Match.YES),
        ("git * -p *", "git log -p", Match.NO),
        ("git * -p *", "git log -p x", Match.YES),
        ("git*", "gitk", Match.YES),
        ("git  log:*", "git log -p", Match.YES),
        ("git log:*", "git logs", Match.NO),
        ("*log*x*", "git log x", Match.YES),
        ("*x*log*", "git log x", Match.NO),
        ("a*a", "a", Match.NO),
        ("a*a", "aa", Match.YES),
        ("git *", "git a; ls", Match.MAYBE),
        ("ls *", "git a; git b", Match.NO),
        ("git *", "git " + "x" * (LONGEST - 4), Match.YES),
        ("git *", "git " + "x" * (LONGEST - 3), Match.MAYBE),
        ("git *", "git a\tb", Match.YES),
        ("git *", "git 'a\tb'", Match.MAYBE),
    ],
)
def test_an_approval_compares_the_whole_command(rule: str, line: str, found: Match) -> None:
    assert grants_command(rule, line) is found


@pytest.mark.parametrize(
    ("rule", "line", "found"),
    [
        ("rm", "rm x", Match.NO),
        ("rm", "rm", Match.YES),
        ("rm x*", "rm xy", Match.YES),
        ("r*", "rm x", Match.YES),
        ("r*", "/bin/rm x", Match.YES),
        ("r*", "python rm", Match.MAYBE),
        ("q*", "python rm", Match.NO),
        ("/bin/rm:*", "rm x", Match.NO),
        ("rm * x *", "rm a x", Match.YES),
        ("git push:*", "python git push", Match.MAYBE),
        ("git push:*", "python git", Match.NO),
        ("rm:*", "x" * LONGEST, Match.NO),
        ("rm:*", "x" * (LONGEST + 1), Match.MAYBE),
        ("rm:*", "sudo " * (DEEPEST - 1) + "rm", Match.YES),
        ("rm:*", "sudo " * DEEPEST + "rm", Match.YES),
        ("rm:*", "sudo " * (DEEPEST + 1) + "rm", Match.MAYBE),
        ("rm:*", "timeout $t rm x", Match.YES),
        ("rm:*", "sudo", Match.NO),
        ("rm:*", "find . -delete", Match.MAYBE),
        ("unlink:*", "find . -delete", Match.MAYBE),
        ("cp:*", "find . -delete", Match.NO),
        ("cp:*", "find . -exec ls {} ;", Match.NO),
        ("cp:*", "find . -exec ls ; -ok cp x y ;", Match.MAYBE),
        ("cp:*", "find . " + "-exec ls x " * DEEPEST, Match.NO),
        ("cp:*", "find . " + "-exec ls x " * (DEEPEST + 1), Match.MAYBE),
        ("cp:*", "source x", Match.MAYBE),
        ("cp:*", ". x", Match.MAYBE),
        ("cp:*", "sh run.sh", Match.NO),
        ("cp:*", "sh -s", Match.MAYBE),
        ("cp:*", "sh", Match.NO),
        ("cp:*", "cat x | sh", Match.MAYBE),
        ("cp:*", "sh -c 'ls x'", Match.NO),
        ("cp:*", "sh -c 'cp x y'", Match.MAYBE),
        ("cp:*", "eval 'ls $x'", Match.NO),
        ("cp:*", "alias a='$x'", Match.MAYBE),
        ("cp:*", "alias a='`x`'", Match.MAYBE),
        ("cp:*", "alias a='ls'", Match.NO),
        ("cp:*", "command -v cp", Match.NO),
        ("cp:*", "command -V cp", Match.NO),
        ("cp:*", "EDITOR=cp git commit", Match.MAYBE),
        ("cp:*", "EDITOR=vi git commit", Match.NO),
        ("cp:*", "env -S 'cp x'", Match.MAYBE),
        ("cp:*", "env -S 'ls x'", Match.NO),
        ("cp:*", "xargs -I{} ls {}", Match.NO),
        ("cp:*", "echo cp | awk 1", Match.NO),
        ("cp:*", "echo cp | tool", Match.MAYBE),
        ("cp:*", "$x", Match.MAYBE),
        ("cp:*", "CP x", Match.MAYBE),
        ("cp:*", "/bin/CP x", Match.MAYBE),
    ],
)
def test_a_denial_covers_what_may_start_its_program(rule: str, line: str, found: Match) -> None:
    assert stops_command(rule, line) is found
