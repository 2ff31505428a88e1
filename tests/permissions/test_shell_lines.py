"""Command lines that were once granted or let through, everyday lines, and very long ones."""

from __future__ import annotations

import pytest

from steersman.permissions import Match, Policy, allow, ask, deny
from steersman.permissions.rules import ToolCall, parse_rule
from steersman.permissions.shell import LONGEST, commands_in, grants_command, stops_command
from steersman.permissions.shell_reader import MOST, read

OTHER_COMMANDS = (
    """git "it's" ; rm x "it's\"""",
    """echo "'$(rm)'\"""",
    "git log\n2>&1 rm x",
    "git log\n>/dev/null rm x",
    """git commit -m "it's"; touch PWNED; git commit -m "it's\"""",
    "git status\n>/dev/null touch PWNED",
    "git status\r>/dev/null touch PWNED",
    "git status\r\n>/dev/null touch PWNED",
)


@pytest.mark.parametrize("rule", ["git:*", "git *", "echo:*", "echo *"])
@pytest.mark.parametrize("line", OTHER_COMMANDS)
def test_no_approval_covers_a_line_with_another_command(rule: str, line: str) -> None:
    assert grants_command(rule, line) is not Match.YES


@pytest.mark.parametrize(
    "line",
    [
        *("git $x", "git `x`", 'git "$x"', 'git "a\\"b"', 'git "a!b"', "git a\\ b", "git a\\\nb"),
        *("git 'a", 'git "a', "git a\n", "git a\rb", "git a\x0bb", "git a\x00b", "git 'a\x1bb'"),
        *("git\u00a0a", "git '\u2028'", "git \u00e9", "git a # b", "git #", "git {a,b}", "git !"),
        *(
            "git =rm",
            "git ~[[ a",
            "git a[[ b",
            "git ~[a]",
            "git 2>&1 a",
            "git 'a\\ b'",
            "git '{a,b}'",
            'git "{"',
        ),
        *("git a &", "git a & b", "git a |& git b", "(git a)", "{ git a; }", "git a > f"),
        *("git a >> f", "git a < f", "git <<E\nE", "git <<< a", "git a &> f", "git a 3>&1"),
        *(">/dev/null git a", "git a>/dev/null", "git a >/dev/nullx", "git a 2>&1x", "git a >&f"),
        *("A=1 git a", "git a ;; git b", "git a &&", "&& git a", "; git a", "git a | | git b"),
        *("g*t a", "~/git a", "'git' a", "git'' a", "if git; then git; fi", "! git a", "-git a"),
    ],
)
def test_what_is_outside_the_small_grammar_is_not_covered(line: str) -> None:
    for rule in ("git:*", "git *", "git*", "* a", "*git*"):
        assert grants_command(rule, line) is not Match.YES


@pytest.mark.parametrize(
    "line",
    [
        *("git", "git a", " git\ta ", "git a;", "git a ; git b", "git a|git b", "git a&&git b"),
        *("git a || git b", "git 'a $x; rm'", 'git "it\'s; rm"', "git --a=b *.py ~ [a] x@y:z"),
        *("git a 2>&1", "git a >/dev/null 2>&1", "git a 2> /dev/null | git b", "git a </dev/null"),
        *("git '\u00e9'", 'git "a b"c'),
    ],
)
def test_what_is_inside_the_small_grammar_is_covered(line: str) -> None:
    assert grants_command("git:*", line) is Match.YES


@pytest.mark.parametrize(
    ("rule", "line", "found"),
    [
        ("xargs *", "xargs rm", Match.MAYBE),
        ("timeout:*", "timeout 5 make", Match.MAYBE),
        ("timeout 5 make", "timeout 5 make", Match.YES),
        ("bash *", "bash -c 'rm x'", Match.MAYBE),
        ("eval *", "eval rm", Match.MAYBE),
        ("find *", "find . -exec rm x", Match.MAYBE),
        ("find *", "find . -name x", Match.YES),
        # The shell expands the index of an array in an argument of these.
        ("printf *", "printf -v 'a[$(rm)]' x", Match.MAYBE),
        ("printf *", "printf 'a' x", Match.YES),
        ("* x", "time x", Match.MAYBE),
    ],
)
def test_a_wrapper_is_covered_only_as_a_whole_command(rule: str, line: str, found: Match) -> None:
    assert grants_command(rule, line) is found


HIDDEN = (
    *('git "$(rm)"', "git #c\\\nrm x", "git \\  2>&1\nrm x", "git #'\nrm '", "rm\\\n x"),
    *("function f { rm x; }", "coproc rm x", "sudo -u bob rm x", "doas -u a rm x", "env -u A rm x"),
    *("timeout -s KILL 5 rm x", "exec -a x rm y", 'bash -lc "rm x"', 'sh -ec "rm x"'),
    *('bash <<< "rm x"', "echo rm | sh", "$(echo rm) x", 'trap "rm x" EXIT', "parallel rm ::: x"),
    *("watch rm x", "ssh h rm x", "busybox rm x", ">f rm M", "2>&1 rm x", "{v}>f rm x"),
    *("flock f rm x", "nice -n 5 rm", "xargs -I{} rm", "find . -exec rm {} ;", "find . -delete"),
    *("r'm' x", '"rm" x', "/bin/rm x", "r\\m x", "/bin/r? x", "r{m,} x", "$'rm' x"),
    *("bash -c \"r''m a\"", "bash -c 'bash -c \"rm x\"'", "eval 'r\"\"m x'", "eval $x", "sh -c $x"),
    *(
        'env -S"rm x"',
        "env -vS 'rm x'",
        'env -S "$X"',
        "sudo --new echo rm x",
        "GIT_PAGER=rm git log",
    ),
    *("case x in x) rm y;; esac", "a=$(rm x)", ": ${x:-$(rm x)}", "diff <(rm x) y", "echo `rm x`"),
    *("cat <<E\n$(rm x)\nE", "sh <<E\nrm x\nE", "! rm x", "f() { rm x; }; f", "x=rm; $x y"),
    *(
        "printf -v 'a[$(rm x)]' y",
        "[[ -v 'a[$(rm)]' ]]",
        "for i in rm; do $i x; done",
        "time -p rm",
    ),
    *("{ rm x; }", "(rm x)", "true & rm x", "printf 'rm\\nx' | sh", "echo rm x > s; sh s"),
    *("echo cm0= | base64 -d | sh", "git a\rrm x", "git a\x0brm x", "git -c alias.x='!rm' x"),
    *("git rebase --exec 'rm x' y", "python -c 'import os; os.system(\"rm x\")'", "command rm x"),
    *("find . -exec $x ;", "find . -exec sh -c '$x' ;", "find . -execdir env -i rm {} +"),
    *("su bob -c '$x'", "sudo sudo sudo sudo sudo sudo echo rm"),
    *("git @{1}${x:-rm", "git ${x:-rm", "git ${x-rm"),
    *("echo x | xargs -I% rm %", "echo rm | xargs -I% % x", "mytool rm x", "git 'a\nrm x"),
)


@pytest.mark.parametrize("line", HIDDEN)
def test_a_denial_covers_a_line_that_may_start_its_program(line: str) -> None:
    for rule in ("rm:*", "rm *", "rm*"):
        assert stops_command(rule, line) is not Match.NO


EVERYDAY = (
    *(
        'git commit -m "rm old files"',
        "git rm x",
        "docker run --rm image",
        "docker rm x",
        "npm rm x",
    ),
    *('echo "rm x"', "grep -rn rm src", "git log | grep rm | awk '{print $1}'", "cat rm.txt"),
    *("python -m pytest -q", "python rm.py", "bash -c 'ls *.py'", "bash run.sh", "./run.sh a"),
    *('find . -name "*.py" -exec grep x {} +', 'for f in *.py; do wc -l "$f"; done', "which rm"),
    *("cat <<EOF > x\nhello\nEOF", "command -v rm", "sudo apt-get install rm", "ls # comment"),
    *('test -f a && echo "rm it"', "cd docs/rm && ls", "git ls-files | grep rm | xargs wc -l"),
    *(
        "sed -i 's/rm/x/' f",
        "if [ -f x ]; then echo y; fi",
        'echo $HOME "$(date)"',
        "pip install rm",
    ),
    *("npm run build 2>&1 | tail -5", "make -j4 test", "A=1 python x.py", "timeout 60 npm test"),
    *('curl -s "https://a.test/x?y=1&z=2" | jq .a', "tar xzf a.tgz", "git show HEAD^:src/a.py"),
)


@pytest.mark.parametrize("line", EVERYDAY)
def test_a_denial_lets_everyday_lines_be(line: str) -> None:
    assert stops_command("rm:*", line) is Match.NO


@pytest.mark.parametrize(
    ("rule", "line", "found"),
    [
        ("git push:*", "git $x", Match.MAYBE),
        ("git push:*", "git pull $x", Match.NO),
        ("git push:*", "echo push | xargs git", Match.MAYBE),
        ("git push:*", "git diff | black -", Match.NO),
        ("npm publish:*", "npm run build 2>&1 | tail -5", Match.NO),
        # Some file systems ignore case.
        ("rm:*", "RM x", Match.MAYBE),
        ("git * main", "git push $x", Match.MAYBE),
        ("echo 'a b'", "echo 'a b'", Match.YES),
        ("echo 'a b'", 'echo "a b"', Match.YES),
        ("./deploy.sh *", "sudo ./deploy.sh x", Match.YES),
        ("* --force *", "git push --force x", Match.YES),
    ],
)
def test_a_denial_compares_more_than_the_name(rule: str, line: str, found: Match) -> None:
    assert stops_command(rule, line) is found


def test_a_command_behind_a_word_of_the_shell_has_its_own_name() -> None:
    found = commands_in("if ! cat a; then touch b; fi")

    assert found == (("cat", "a"), ("touch", "b"), ("",))


def test_a_file_of_a_redirection_is_a_word_of_its_command() -> None:
    assert commands_in("echo a >.env; > .env") == (("echo", "a", ".env"), ("", ".env"))


LONG = (
    *("echo " + " " * 40_000, "echo " + "a" * 1_000_000, "git " + "'" * 1_000_000, ";a" * 500_000),
    *(
        "$(" * 500_000,
        "`" * 1_000_000,
        "sudo " * 200_000,
        "\\" * 1_000_000,
        "rm " + "*" * 1_000_000,
    ),
)


@pytest.mark.parametrize("line", LONG, ids=range(len(LONG)))
def test_a_line_above_the_limit_is_not_covered_by_an_approval_and_asked_about(line: str) -> None:
    call = ToolCall("Bash", {"command": line})

    assert len(line) > LONGEST
    assert Policy(allow("Bash(echo *)", "Bash(git *)")).decide(call).verdict == "cli"
    assert Policy(deny("Bash(x *)")).decide(call).verdict == "ask"
    assert Policy(ask("Bash(x *)")).decide(call).verdict == "ask"
    assert parse_rule("Edit(src/**)").match(call, "deny") is Match.MAYBE


@pytest.mark.timeout(10)
@pytest.mark.parametrize("line", LONG, ids=range(len(LONG)))
def test_a_line_at_the_limit_is_read_in_few_steps(line: str) -> None:
    line = line[:LONGEST]

    reading = read(line)

    words = sum(len(command.words) for command in reading.commands)
    assert words + len(reading.commands) <= 2 * MOST
    for rule in ("x *", "*a*a*a*a*a*a*b", "echo" + " *" * 50, "git:*"):
        assert grants_command(rule, line) in Match
        assert stops_command(rule, line) in Match
