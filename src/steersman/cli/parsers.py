"""The parsers of all commands: their arguments, and the help about them.

Nothing else is imported, so help and completions are fast. The function that carries a command out
is named here, imported once its words are read, and called with them as keywords.
"""

from __future__ import annotations

import argparse
import os
import shutil
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from math import inf
from typing import TYPE_CHECKING, Any

from steersman.cli.commands import SUMMARIES, Commands
from steersman.cli.statuses import COMPLETED

if TYPE_CHECKING:
    Takes = argparse.ArgumentParser | argparse._ArgumentGroup  # pyright: ignore[reportPrivateUsage] # it has no public name
    Actions = argparse._SubParsersAction[argparse.ArgumentParser]  # pyright: ignore[reportPrivateUsage] # it has no public name

STORE_VARIABLE = "STEERSMAN_STORE"
STORE_FORMS = (
    "sqlite:///absolute/path, postgresql://user@host/database, or the path of a SQLite file"
)
AddAction = Callable[[str, str, str], argparse.ArgumentParser]

WIDEST = 100
NOT_WORDS = frozenset({"run", "stdin", "ignores_arguments"})
"""What a namespace has beside the words of a command."""


class Paragraphs(argparse.HelpFormatter):
    """Help whose descriptions keep their paragraphs."""

    def __init__(self, prog: str) -> None:
        width = min(WIDEST, shutil.get_terminal_size((80, 24)).columns)
        super().__init__(prog, max_help_position=30, width=width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        filled = (
            textwrap.fill(" ".join(each.split()), width, initial_indent=indent)
            for each in text.split("\n\n")
        )
        return "\n\n".join(filled)


class Parser(argparse.ArgumentParser):
    """Takes options before, between and after arguments, and no abbreviations."""

    _is_mixing = False

    def __init__(self, **words: Any) -> None:
        super().__init__(formatter_class=Paragraphs, allow_abbrev=False, **words)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] # no names for its overloads
        """Return what was read, and the words that no argument takes."""
        takes_the_rest = any(each.nargs in REST for each in self.arguments())
        if self._is_mixing or takes_the_rest or args is None:
            return super().parse_known_args(args, namespace)
        self._is_mixing = True
        try:
            # After `--`, what begins with a dash is no option; the mixing form loses that.
            read = self.parse_known_args if "--" in args else self.parse_known_intermixed_args
            found, rest = read(args, namespace)
        finally:
            self._is_mixing = False
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found, rest

    def arguments(self) -> Sequence[argparse.Action]:
        """Return the options and the arguments, in their order."""
        return self._actions


REST = (argparse.PARSER, argparse.REMAINDER)


def add_asks(commands: Commands) -> None:
    """Add `steersman asks`."""
    actions = _group(commands, "asks", "The inbox of a store: list and answer its asks.")
    add_one = partial(_action, actions, "steersman.cli.asks")
    listing = add_one("list", "list_asks", "List the open asks, the oldest first.")
    listing.add_argument("--session", metavar="ID", help="only those of this conversation")
    listing.add_argument("--kind", choices=["permission", "question", "elicitation", "dialog"])
    listing.add_argument("--assignee", metavar="NAME")
    showing = add_one("show", "show_ask", "Show one open ask, with its whole input.")
    answering = add_one("answer", "answer_ask", "Answer an ask; the first answer counts.")
    for one in (showing, answering):
        one.add_argument("ask", metavar="ASK", help="the id of the ask")
        one.add_argument("--session", metavar="ID", help="if two conversations have this id")
    given = answering.add_mutually_exclusive_group(required=True)
    _flag(given, "--allow", "let the tool run")
    given.add_argument("--deny", metavar="TEXT", help="do not; the model reads the text")
    given.add_argument("--choose", metavar="TEXT", help="answer the one question of the ask")
    given.add_argument("--answer", metavar="JSON", help="an answer as JSON; - reads stdin")
    answering.add_argument("--by", metavar="NAME", help="who answers; default: your login name")
    answering.add_argument("--seen", metavar="DIGEST", help="refuse if this is not its digest")
    watching = add_one("watch", "watch_asks", "Print what happens, until you press Ctrl-C.")
    for one in (listing, showing, answering, watching):
        _add_store(one)
        _add_json(one)
    _run_by(answering, "steersman.cli.asks:answer_ask", with_stdin=True)


def add_cassette(commands: Commands) -> None:
    """Add `steersman cassette`."""
    actions = _group(commands, "cassette", "Check recorded conversations.")
    linting = _action(
        actions,
        "steersman.cli.cassette",
        "lint",
        "lint_files",
        "Find secrets in cassettes; the exit status is 1 if there are any.",
    )
    linting.add_argument("paths", nargs="+", metavar="FILE")


def add_chat(commands: Commands) -> None:
    """Add `steersman chat`."""
    chat = _command(
        commands,
        "chat",
        "steersman.cli.chat:talk",
        """Talk with the model, and steer it while it works.

        Type at any time: enter sends what you typed into the running turn, at its next tool; ctrl-o
        sends it now, ctrl-l after the turn. Ctrl-c interrupts the turn, twice leaves, as /exit and
        ctrl-d do. A tool call that needs a permission is shown with what it would change, and
        answered with a key: y, a, n, e or ?. A line that begins with / is a command of the CLI, as
        /compact.""",
    )
    _add_agent_words(chat)


def add_console(commands: Commands) -> None:
    """Add `steersman console`."""
    console = _command(
        commands,
        "console",
        "steersman.cli.console:serve",
        "Serve a page for your sessions, on this machine only, until you press Ctrl-C.",
    )
    what = console.add_mutually_exclusive_group()
    what.add_argument("--agent", metavar="MODULE:NAME", help="the agent; default: Agent()")
    _flag(what, "--demo", "a scripted model: offline, no key", dest="is_demo")
    console.add_argument("--port", type=int, default=0, help="default: one that is free")
    console.add_argument(
        "--journals", metavar="DIR", help="keep sessions and asks here; default: until the end"
    )


def add_demo(commands: Commands) -> None:
    """Add `steersman demo`."""
    demo = _command(
        commands,
        "demo",
        "steersman.cli.demo:play",
        "Show a conversation in the terminal, offline and at no cost.",
    )
    where = demo.add_mutually_exclusive_group()
    _flag(where, "--embedded", "use the embedded scripted CLI, not the stock one")
    _flag(where, "--real", "use your own login and a real model; costs money")
    _flag(demo, "--yes", "with --real: do not ask first")
    _run_by(demo, "steersman.cli.demo:play", with_stdin=True)


def add_doctor(commands: Commands) -> None:
    """Add `steersman doctor`."""
    doctor = _command(
        commands,
        "doctor",
        "steersman.cli.doctor:examine",
        """Find out whether this machine can run a session, and if not, why.

        Looks at the CLI, its handshake, its login, settings, MCP servers, directories, limits,
        proxies and the clock. Starts the CLI, but sends nothing to the API. Each failure names its
        cause and what to do. Exit status: 0 if sessions can run, else 5.""",
    )
    _add_json(doctor, "one JSON object")
    doctor.add_argument("--cli", metavar="PATH", help="the CLI to look at")
    doctor.add_argument("--cwd", metavar="DIR", help="the directory that sessions would work in")


def add_fleet(commands: Commands) -> None:
    """Add `steersman fleet`."""
    actions = _group(
        commands,
        "fleet",
        """Workers that run the jobs of a store, and what they do.

        A URL with a password can be read on a command line: put it into STEERSMAN_STORE.""",
    )
    add_one = partial(_action, actions, "steersman.cli.fleet")
    worker = add_one("worker", "run_worker", "Run jobs until SIGTERM or `steersman fleet drain`.")
    _add_worker_words(worker)
    status = add_one(
        "status",
        "show_status",
        "Show workers, jobs that are not settled, their holds, and budgets.",
    )
    jobs = add_one("jobs", "list_jobs", "List jobs, the oldest first. Prompts are not shown.")
    jobs.add_argument("--conversation", metavar="NAME", help="only those of this conversation")
    jobs.add_argument(
        "--state",
        dest="states",
        action="append",
        default=[],
        choices=["queued", "running", "parked", "held", "settled"],
        help="only those in this state; may be given again",
    )
    jobs.add_argument("--most", metavar="N", type=_number(int, 1), default=100, help=_DEFAULT)
    drain = add_one(
        "drain", "drain", "Have a worker, or all of them, take no more jobs, finish, and end."
    )
    drain.add_argument("worker", metavar="WORKER", nargs="?")
    cancel = add_one("cancel", "cancel", "End a job as cancelled; a turn that runs is interrupted.")
    cancel.add_argument("job", metavar="JOB")
    for one in (worker, status, jobs, drain, cancel):
        _add_store(one, "sqlite:///absolute/path or postgresql://user@host/database")
    for one in (status, jobs):
        _add_json(one)


def _add_worker_words(worker: argparse.ArgumentParser) -> None:
    add = worker.add_argument
    add(
        "--agent",
        dest="agents",
        metavar="[NAME=]MODULE:NAME",
        action="append",
        required=True,
        help="the agent for jobs of this name; without a name, `default`",
    )
    add("--slots", metavar="N", type=_number(int, 1, 1000), default=4, help=_DEFAULT)
    add(
        "--lease",
        metavar="SECONDS",
        type=_number(float, 0.5),
        default=15.0,
        help=f"others take this worker's jobs so many seconds after it was killed; {_DEFAULT}",
    )
    add(
        "--park-after",
        metavar="SECONDS",
        type=_number(float, 0.0, is_above=True),
        default=1.0,
        help=f"a session that waits for a person gives its slot back after that; {_DEFAULT}",
    )
    add(
        "--drain-timeout",
        metavar="SECONDS",
        type=_number(float, 0.0),
        default=30.0,
        help=f"turns that run longer after SIGTERM are parked; {_DEFAULT}",
    )
    add(
        "--connections",
        metavar="N",
        type=_number(int, 6),
        default=6,
        help=f"connections to PostgreSQL, at most; {_DEFAULT}",
    )
    add("--create", action="store_true", help="make the SQLite file if it is not there")


def add_journal(commands: Commands) -> None:
    """Add `steersman journal`."""
    actions = _group(
        commands,
        "journal",
        "Read a journal, as `steersman run --journal FILE` and `Agent(journal=...)` write it.",
    )
    add_one = partial(_action, actions, "steersman.cli.journal")
    show = add_one("show", "show_entries", "Show the entries, one by one.")
    cost = add_one("cost", "show_cost", "Show what each turn cost, and all of them, by model.")
    asks = add_one(
        "asks", "show_decisions", "Show what was asked and decided about tool calls, and by whom."
    )
    policy = add_one(
        "policy",
        "try_policy",
        """Show what the POLICY in a TOML file would have decided about the calls of a journal.

        Each line has what happened, what would happen, and the rule that decides.""",
    )
    for one in (show, cost, asks, policy):
        one.add_argument("journal", metavar="FILE")
        _add_json(one)
    show.add_argument(
        "--after", metavar="N", type=int, default=0, help="only entries above this number"
    )
    _flag(show, "--partial", "also partial messages and bookkeeping")
    policy.add_argument("policy", metavar="POLICY")
    _flag(policy, "--changed", "only calls with another outcome")


def add_migrate(commands: Commands) -> None:
    """Add `steersman migrate`."""
    migrate = _command(
        commands,
        "migrate",
        "steersman.cli.migrate:migrate",
        """Rewrite the imports of claude_agent_sdk, and of claude_code_sdk, to steersman.compat.

        PATH is a file or a directory. Nothing but imports is changed. What cannot be decided is
        listed on stderr, as `file:line: what`; the exit status is 1 then.""",
    )
    migrate.add_argument("paths", metavar="PATH", nargs="+")
    _flag(migrate, "--write", "write the files; without it, a diff is shown")


def add_report(commands: Commands) -> None:
    """Add `steersman report`."""
    report = _command(
        commands,
        "report",
        "steersman.cli.report:report",
        """Explain the flight record BUNDLE: a file, or a directory, whose newest record is taken.

        `Agent(flight_recorder="crashes/")` writes one after every error that ends a turn or a
        session.""",
    )
    report.add_argument("bundle", metavar="BUNDLE")
    report.add_argument("--last", metavar="N", type=int, default=10, help=_DEFAULT)
    _add_json(report, "the record as one line of JSON")


def add_run(commands: Commands) -> None:
    """Add `steersman run`."""
    run = _command(
        commands,
        "run",
        "steersman.cli.run:run_prompt",
        """Send one PROMPT (- reads it from stdin), and write the answer to stdout.

        On a terminal the text is shown while it is written, and you are asked about tool calls that
        need a permission. In a pipe, only the answer is written, at the end. Everything else goes
        to stderr: tool calls, denials, the cost, and the id of the conversation for --resume.

        Exit status: 0 completed, 1 failed, 2 misuse, 3 completed but a tool call was denied, 4
        limit reached, 5 could not start (no CLI, no login), 130 interrupted.""",
    )
    run.add_argument("prompt", metavar="PROMPT")
    _add_agent_words(run)
    run.add_argument("--schema", metavar="FILE", help="a JSON schema for the answer")
    _flag(run, "--no-asks", "deny what needs a permission; do not ask")
    form = run.add_mutually_exclusive_group()
    _flag(form, "--json", "write one JSON object: answer, cost, calls", dest="is_json")
    _flag(form, "--stream-json", "write one JSON line per message", dest="is_stream")


def add_sessions(commands: Commands) -> None:
    """Add `steersman sessions`."""
    actions = _group(
        commands,
        "sessions",
        """Stored conversations: list, read, search, follow, rename, tag, fork, export, remove.

        No CLI is started. SESSION is the id of a conversation, or the beginning of it.""",
    )
    add_one = partial(_action, actions, "steersman.cli.sessions")
    reading, changing = _reading_sessions(add_one), _changing_sessions(add_one)
    for one in reading:
        _add_json(one)
    for one in (*reading, *changing):
        _add_place(one)


def _reading_sessions(add_one: AddAction) -> Sequence[argparse.ArgumentParser]:
    listing = add_one("list", "list_sessions", "List conversations, the newest first.")
    _flag(listing, "--archived", "also those that were archived")
    show = add_one("show", "show_messages", "Show the messages of a conversation.")
    show.add_argument("--last", metavar="N", type=int, help="only the last messages")
    show.add_argument("--agent", metavar="ID", help="those of a subagent")
    _flag(show, "--whole", "also all lines of what tools were given and gave")
    search = add_one(
        "search",
        "search",
        """Find messages that have all words of TEXT, the best first.

        Words in double quotes must follow each other. Case and accents do not matter.""",
    )
    search.add_argument("text", metavar="TEXT", nargs="+")
    tail = add_one(
        "tail",
        "follow",
        "Show the last messages of a conversation, and further ones until you press Ctrl-C.",
    )
    tail.add_argument("--last", metavar="N", type=int, default=5, help=_DEFAULT)
    for one in (listing, search):
        one.add_argument("--limit", metavar="N", type=int, default=20, help=_DEFAULT)
    for one in (show, tail):
        one.add_argument("session", metavar="SESSION")
    return listing, show, search, tail


def _changing_sessions(add_one: AddAction) -> Sequence[argparse.ArgumentParser]:
    rename = add_one("rename", "rename", "Give a conversation a title.")
    tag = add_one("tag", "tag", "Give a conversation a tag; without TAG, remove it.")
    fork = add_one(
        "fork", "fork", "Copy a conversation, and write the new id, for `steersman run --resume`."
    )
    fork.add_argument("--up-to", metavar="UUID", help="the last message to copy")
    fork.add_argument("--title", metavar="TEXT", help="the title of the copy")
    export = add_one(
        "export",
        "export",
        "Write a conversation as Markdown, HTML or JSON. An existing file is not replaced.",
    )
    forms = ["markdown", "html", "json"]
    export.add_argument("--format", dest="form", choices=forms, default=forms[0], help=_DEFAULT)
    export.add_argument("--output", "-o", metavar="FILE", help="default: stdout")
    remove = add_one("rm", "remove", "Remove conversations, with their subagents. Asks first.")
    _flag(remove, "--yes", "do not ask first")
    for one in (rename, tag, fork, export):
        one.add_argument("session", metavar="SESSION")
    remove.add_argument("session", metavar="SESSION", nargs="+")
    rename.add_argument("title", metavar="TITLE")
    tag.add_argument("tag", metavar="TAG", nargs="?")
    for one in (rename, tag, remove):
        _flag(one, "--force", "even while a CLI has it open")
    return rename, tag, fork, export, remove


def _add_place(parser: argparse.ArgumentParser) -> None:
    """Add the options that name where the conversations are."""
    place = parser.add_argument_group("where")
    place.add_argument(
        "--project",
        metavar="DIR",
        default=".",
        help="conversations of this directory, and of its other worktrees;"
        " default: the current directory",
    )
    _flag(place, "--all", "conversations of all directories", dest="is_all")
    place.add_argument("--config", metavar="DIR", help="another directory than ~/.claude")
    place.add_argument("--store", metavar="URL", help="a session store, as for `steersman asks`")


def _add_agent_words(parser: argparse.ArgumentParser) -> None:
    """Add what `run` and `chat` have in common: the options that make an agent."""
    add = parser.add_argument
    add(
        "--agent",
        metavar="MODULE:NAME",
        help="an Agent of your own, or a function that returns one",
    )
    add("--cwd", metavar="DIR", help="the directory to work in")
    add("--model", metavar="NAME", help="the model, by alias or full name")
    add(
        "--policy",
        metavar="FILE",
        help="rules about tool calls, in TOML; what no rule decides is asked",
    )
    add("--max-usd", metavar="USD", type=float, help="stop when this much has been spent")
    add("--resume", metavar="SESSION", help="continue this conversation")
    add("--journal", metavar="FILE", help="write everything that happens here")


_DEFAULT = "default: %(default)s"


def _flag(to: Takes, name: str, text: str, *, dest: str | None = None) -> None:
    to.add_argument(name, action="store_true", dest=dest or name[2:].replace("-", "_"), help=text)


def _add_json(parser: argparse.ArgumentParser, text: str = "JSON, one object per line") -> None:
    _flag(parser, "--json", text, dest="is_json")


def _add_store(parser: argparse.ArgumentParser, forms: str = STORE_FORMS) -> None:
    parser.add_argument(
        "--store",
        metavar="URL",
        default=os.environ.get(STORE_VARIABLE, ""),
        help=f"{forms}; default: ${STORE_VARIABLE}",
    )


def _number(
    kind: Callable[[str], float],
    least: float,
    most: float = float("inf"),
    *,
    is_above: bool = False,
) -> Callable[[str], float]:
    """Return the function that reads a number from `least` to `most`, or above `least`."""

    def read(text: str) -> float:
        try:
            number = kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number of this kind") from None
        if not least <= number <= most or (is_above and number == least):
            over = "" if most == inf else f" and at most {most:g}"
            floor = "above" if is_above else "at least"
            raise argparse.ArgumentTypeError(f"{text} is not {floor} {least:g}{over}")
        return number

    return read


def _group(commands: Commands, name: str, text: str) -> Actions:
    parser = commands.add_parser(name, help=SUMMARIES[name])
    parser.description = textwrap.dedent(text)
    return parser.add_subparsers(required=True, metavar="ACTION")


def _command(commands: Commands, name: str, place: str, text: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=SUMMARIES[name])
    parser.description = text
    return _run_by(parser, place)


def _action(
    actions: Actions, module: str, name: str, function: str, text: str
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=text.split("\n\n", maxsplit=1)[0], description=text)
    return _run_by(parser, f"{module}:{function}")


def _run_by(
    parser: argparse.ArgumentParser, place: str, *, with_stdin: bool = False
) -> argparse.ArgumentParser:
    """Have the function at `place` carry the command out."""
    parser.set_defaults(run=partial(_run, place, with_stdin))
    return parser


def _run(place: str, with_stdin: bool, chosen: argparse.Namespace) -> int:  # noqa: FBT001 - bound by partial
    module, _, name = place.partition(":")
    words = {key: value for key, value in vars(chosen).items() if key not in NOT_WORDS}
    if with_stdin:
        words["stdin"] = chosen.stdin
    function: Callable[..., int | None] = getattr(import_module(module), name)
    return function(**words) or COMPLETED
