"""Imports are rewritten, everything else stays, and what is not decided is named."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.cli.main import main
from steersman.compat.migrating import migrate_requirements, migrate_source

PROGRAMS = Path(__file__).parent / "moved"

Rewritten = dict[int, str]
"""The lines that differ, by their numbers."""

WANTED: dict[str, tuple[Rewritten, list[tuple[int, str]]]] = {
    "back_end": (
        {
            9: "import steersman.compat as claude_agent_sdk  # the whole package:"
            " `claude_agent_sdk.ClaudeSDKClient` reads well below",
            10: "from steersman.compat.types import (",
            19: "    from steersman.compat import Message, PermissionResult",
        },
        [],
    ),
    "bot": (
        {
            3: "import os, steersman.compat as sdk, sys",
            4: "from steersman.compat import ClaudeAgentOptions, ClaudeSDKClient, HookMatcher, \\",
            7: 'GRÜSSE = "Grüß Gott"; from steersman.compat import AssistantMessage as Antwort,'
            " TextBlock",
            23: "    import steersman.compat.types as t",
        },
        [(33, "._query is private")],
    ),
    "trio_program": (
        {
            6: "    from steersman.compat import (ClaudeAgentOptions, ClaudeSDKClient,",
            8: "    from steersman.compat import CLINotFoundError, ProcessError",
        },
        [],
    ),
    "ci_script": (
        {
            7: "import steersman.compat as claude_code_sdk",
            8: "from steersman.compat import ClaudeAgentOptions as ClaudeCodeOptions, query",
            9: "from steersman.compat.types import AssistantMessage, TextBlock",
            22: "    assert isinstance(options, claude_code_sdk.ClaudeAgentOptions)",
        },
        [(7, "had the system prompt of Claude Code"), (19, "append_system_prompt= is no more")],
    ),
    "test_suite": (
        # One import is private, so that the file stays as it is.
        {},
        [
            (9, "SubprocessCLITransport: claude_agent_sdk._internal.transport.subprocess_cli is"),
            (17, "setattr('claude_agent_sdk.query') replaces a name"),
            (18, "'claude_agent_sdk' names the package in a text"),
            (21, "patch('claude_agent_sdk._internal.client.InternalClient.process_query')"),
            (34, "import_module('claude_agent_sdk') imports by a name"),
        ],
    ),
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("name", WANTED)
def test_a_program_gets_other_imports_and_nothing_else(name: str, newline: str) -> None:
    encoding = "latin-1" if name == "bot" else "utf-8"
    text = (PROGRAMS / f"{name}.txt").read_text(encoding="utf-8")
    before = text.replace("\n", newline).encode(encoding)
    rewritten, notes = WANTED[name]

    after = migrate_source(before)

    lines = text.split("\n")
    for number, line in rewritten.items():
        lines[number - 1] = line
    assert after.data.decode(encoding) == newline.join(lines)
    assert [each.line for each in after.notes] == [line for line, _ in notes]
    for found, (_, said) in zip(after.notes, notes, strict=True):
        assert said in found.text
    again = migrate_source(after.data)
    assert again.data == after.data
    assert set(again.notes) <= set(after.notes)


@pytest.mark.parametrize("name", [name for name, (lines, _) in WANTED.items() if lines])
def test_what_the_rewritten_imports_name_is_there(name: str) -> None:
    text = (PROGRAMS / f"{name}.txt").read_text(encoding="utf-8").replace("latin-1", "utf-8")
    count = 0
    for node in ast.walk(ast.parse(migrate_source(text.encode()).data)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("steersman"):
            module = importlib.import_module(node.module or "")
            for each in node.names:
                assert hasattr(module, each.name)
                count += 1
    assert count


SUITE = "run_session_store_conformance"
STATEMENTS = {
    "import claude_agent_sdk": "import steersman.compat as claude_agent_sdk",
    "import claude_agent_sdk.types": "import steersman.compat as claude_agent_sdk",
    "import claude_agent_sdk.query": "import steersman.compat as claude_agent_sdk",
    "import claude_agent_sdk.testing as k": "import steersman.compat.testing as k",
    "import claude_agent_sdk.testing.session_store_conformance as k": (
        "import steersman.compat.testing as k"
    ),
    "import a, claude_agent_sdk as b, c.d": "import a, steersman.compat as b, c.d",
    "from claude_agent_sdk import *": "from steersman.compat import *",
    "from claude_agent_sdk import types": "from steersman.compat import types",
    "from claude_agent_sdk import __version__": "from steersman.compat import __version__",
    "from claude_agent_sdk.client import ClaudeSDKClient": (
        "from steersman.compat import ClaudeSDKClient"
    ),
    "from claude_agent_sdk.query import query as q": "from steersman.compat import query as q",
    "from claude_agent_sdk . types import Message": "from steersman.compat.types import Message",
    "from claude_agent_sdk \\\n . \\\n types import Message": (
        "from steersman.compat.types import Message"
    ),
    "from \\\n claude_agent_sdk import query": "from \\\n steersman.compat import query",
    f"from claude_agent_sdk.testing.session_store_conformance import {SUITE}": (
        f"from steersman.compat.testing import {SUITE}"
    ),
    "x = 'ä'; import claude_agent_sdk as s; y = 'ü'": (
        "x = 'ä'; import steersman.compat as s; y = 'ü'"
    ),
    "if x:\n\timport claude_agent_sdk": "if x:\n\timport steersman.compat as claude_agent_sdk",
    "from claude_code_sdk import ClaudeCodeOptions as O": (
        "from steersman.compat import ClaudeAgentOptions as O"
    ),
    "from claude_agent_sdk._internal.message_parser import parse_message as p": (
        "from steersman.compat.parsing import parse_message as p"
    ),
    "from claude_agent_sdk._errors import ProcessError": (
        "from steersman.compat import ProcessError"
    ),
    "from claude_agent_sdk._internal.transport import Transport": (
        "from steersman.compat import Transport"
    ),
    "from .claude_agent_sdk import query": "from .claude_agent_sdk import query",
    "from my.claude_agent_sdk import query": "from my.claude_agent_sdk import query",
    "import claude_agent_sdk_extras": "import claude_agent_sdk_extras",
    "import steersman.compat as claude_agent_sdk": "import steersman.compat as claude_agent_sdk",
}


@pytest.mark.parametrize(("before", "after"), STATEMENTS.items(), ids=range(len(STATEMENTS)))
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["", "BOM"])
def test_a_statement_is_rewritten(before: str, after: str, mark: str) -> None:
    found = migrate_source(f"{mark}{before}  # why\n\x0cz = 1".encode())

    assert found.data.decode() == f"{mark}{after}  # why\n\x0cz = 1"
    assert [each for each in found.notes if "system prompt" not in each.text] == []


UNDECIDED = {
    "from claude_agent_sdk import Nonsense": "steersman.compat has no such name",
    "from claude_agent_sdk.types import Nonsense": "steersman.compat.types has no such name",
    "from claude_agent_sdk.types import Any, __file__": "__file__: steersman.compat.types has no",
    "from claude_agent_sdk import query, _internal": "_internal: steersman.compat has no such name",
    "from claude_agent_sdk._internal.query import Query": "claude_agent_sdk._internal.query is",
    "from claude_agent_sdk._errors import MessageParseError": "catch ClaudeSDKError",
    "import claude_agent_sdk._internal.client": "claude_agent_sdk._internal.client is private",
    "import claude_agent_sdk.query as q": "claude_agent_sdk.query is private",
    "import claude_agent_sdk.nonsense": "steersman.compat has no module nonsense",
    "__import__('claude_agent_sdk.types')": "__import__('claude_agent_sdk.types') imports",
    "import_module(f'claude_agent_sdk.{x}')": "'claude_agent_sdk.' names the package",
    "from claude_\uff41gent_sdk import query  # claude_agent_sdk": "a form that is not rewritten",
    "from claude_agent_sdk._internal.transport import ProcessTransport": "write your own transport",
    "version('claude-agent-sdk')": "'claude-agent-sdk' names the distribution",
    "client._transport.close()  # claude_agent_sdk": "._transport is private",
    "def claude_agent_sdk(:": "cannot be read as Python (",
    "# claude_agent_sdk\nx = '\0'": "cannot be read as Python (",
}


@pytest.mark.parametrize(("text", "said"), UNDECIDED.items(), ids=range(len(UNDECIDED)))
def test_what_is_not_decided_stays_and_is_told(text: str, said: str) -> None:
    found = migrate_source(text.encode())

    assert found.data == text.encode()
    assert len(found.notes) == 1
    assert said in found.notes[0].text
    assert found.notes[0].line in (1, 2)


def test_a_file_with_an_import_that_is_not_rewritten_stays_as_a_whole() -> None:
    """With classes of both packages `isinstance` would be false without an error."""
    text = (
        b"import claude_agent_sdk\nfrom claude_agent_sdk import TextBlock\n"
        b"from claude_agent_sdk._internal.query import Query\n"
    )

    found = migrate_source(text)

    assert found.data == text
    (note,) = found.notes
    assert note.line == 3
    assert "nothing in this file is changed" in note.text


INSTRUMENTED = {
    "import ddtrace.auto": "ddtrace",
    "from braintrust import init_logger, auto_instrument": "braintrust",
    "import weave as w": "weave",
    "from langsmith.integrations.claude_agent_sdk import configure_claude_agent_sdk": "langsmith",
    "from openinference.instrumentation.claude_agent_sdk import X": "openinference",
    "from openinference.instrumentation import claude_agent_sdk as c": "openinference",
}


@pytest.mark.parametrize(("text", "name"), INSTRUMENTED.items(), ids=range(len(INSTRUMENTED)))
def test_an_instrumentor_in_the_code_is_told(text: str, name: str) -> None:
    found = migrate_source(f"import os\n{text}\n".encode())

    (note,) = found.notes
    assert note.line == 2
    assert note.text.startswith(name)
    assert "steersman.compat.install()" in note.text
    assert found.data == f"import os\n{text}\n".encode()


def test_what_only_looks_like_an_instrumentor_is_not_told() -> None:
    texts = (b"from langsmith import traceable\n", b"x = 'ddtrace'\n", b"import weaver\n")

    assert [migrate_source(each).notes for each in texts] == [(), (), ()]


def test_instrumentors_in_requirements_are_told() -> None:
    text = (
        b"claude-agent-sdk==0.2.182\nDDTrace>=4  # traces\nddtrace-helper\n"
        b'"openinference-instrumentation-claude_agent_sdk>=0.1",\n# weave\nlangsmith[otel]\n'
    )

    found = migrate_requirements(text)

    assert [(each.line, each.text.partition(" ")[0]) for each in found.notes] == [
        (1, "claude-agent-sdk:"),
        (2, "ddtrace"),
        (4, "openinference-instrumentation-claude-agent-sdk"),
        (6, "langsmith"),
    ]
    assert "add steersman" in found.notes[0].text
    assert all("steersman.compat.install()" in each.text for each in found.notes[1:])


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python reads such files")
@pytest.mark.parametrize(
    "line", ["def f[T](x: T) -> T: ...", "class A[T]: ...", "type X = int", "type X[T] = list[T]"]
)
def test_a_file_of_a_later_python_names_the_python_that_reads_it(line: str) -> None:
    (note,) = migrate_source(f"import claude_agent_sdk\n{line}\n".encode()).notes

    assert note.line == 2
    assert "3.12" in note.text
    assert "cannot be read as Python 3.11" in note.text


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ("'claude_agent_sdk'", True),
        ("'claude_agent_sdk.types.TextBlock'", True),
        ("'claude_agent_sdk.ClaudeSDKClient.query'", True),
        ("'claude_agent_sdk.query.query'", True),
        ("'claude_agent_sdk._internal.query.Query'", True),
        ("'claude_code_sdk.ClaudeCodeOptions'", True),
        ("'claude_agent_sdk.request.duration'", False),
        ("'claude_agent_sdk.types.nonsense'", False),
    ],
)
def test_a_string_is_told_if_it_is_the_path_of_something(text: str, *, is_told: bool) -> None:
    assert bool(migrate_source(f"x = {text}\n".encode()).notes) is is_told


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ("from claude_code_sdk import query", True),
        ("from claude_code_sdk.types import Message", True),
        ("import claude_code_sdk.types", True),
        ("import claude_agent_sdk, claude_code_sdk", True),
        ("from claude_agent_sdk import query", False),
        ("from .claude_code_sdk import query", False),
        ("from my.claude_code_sdk import query", False),
        ("import my.claude_code_sdk", False),
    ],
)
def test_a_program_of_the_older_package_is_told_of_its_system_prompt(
    text: str, *, is_told: bool
) -> None:
    notes = migrate_source(f"\n{text}\nf(append_system_prompt='x')\n".encode()).notes

    told = ("claude_code_sdk had the system prompt", "append_system_prompt= is no more")
    assert [each.line for each in notes] == ([2, 3] if is_told else [])
    for note, said in zip(notes, told, strict=False):
        assert note.text.startswith(said)


@pytest.mark.parametrize(
    "data",
    [
        b"# -*- coding: utf-8 -*-\nimport claude_agent_sdk\nx = '\xff'\n",
        b"# -*- coding: nonsense -*-\nimport claude_agent_sdk\n",
        b"import claude_agent_sdk\nx = " + b"-" * 100_000 + b"1\n",
    ],
    ids=["no UTF-8", "an unknown encoding", "too deep"],
)
def test_a_file_that_cannot_be_read_is_told(data: bytes) -> None:
    found = migrate_source(data)

    assert found.data == data
    assert "cannot be read as Python" in found.notes[0].text


PIECES = st.sampled_from(
    [
        *STATEMENTS,
        *UNDECIDED,
        "",
        "    ",
        "x = '''claude_agent_sdk\n'''",
        "def f(): pass",
        "\r",
        "é = 1",
        "(",
        "@",
    ]
)


@given(st.lists(PIECES, max_size=6), st.sampled_from(["\n", "\r\n", "; "]))
def test_nothing_breaks_it_and_a_second_run_changes_nothing(pieces: list[str], joint: str) -> None:
    data = joint.join(pieces).encode()

    once = migrate_source(data)

    assert migrate_source(once.data).data == once.data
    try:
        ast.parse(data.decode())
    except (SyntaxError, ValueError):
        assert once.data == data
    else:
        ast.parse(once.data.decode())


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of sources, and much that is none."""
    monkeypatch.chdir(tmp_path)
    source = "import claude_agent_sdk as sdk\n"
    for name in ("app/main.py", "app/script", ".venv/x.py", "env/y.py", "node_modules/z.py"):
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    root = tmp_path / "project"
    (root / "env" / "pyvenv.cfg").write_text("")
    (root / "requirements.txt").write_text("fastapi\nclaude-agent-sdk>=0.2\n")
    (root / "book.ipynb").write_text('{"source": ["import claude_agent_sdk"]}\n')
    (tmp_path / "outside.py").write_text(source)
    (root / "app" / "link.py").symlink_to(tmp_path / "outside.py")
    (root / "app" / "main.py").chmod(0o755)
    return root


def test_without_write_there_is_a_diff_that_patch_takes(
    project: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["migrate", "project"]) == 1

    found = capsysbinary.readouterr()
    assert (project / "app" / "main.py").read_text() == "import claude_agent_sdk as sdk\n"
    book, requirements, total = found.err.decode().splitlines()
    assert book.startswith("project/book.ipynb:1: claude_agent_sdk: notebooks are not rewritten")
    assert requirements.startswith("project/requirements.txt:2: claude-agent-sdk: names the pack")
    assert total == "files to change with --write: 1; places for you to decide: 2"
    subprocess.run(
        ["git", "apply", "--unsafe-paths", "-p1"],
        input=found.out,
        cwd=project.parent,
        check=True,
        timeout=20,
    )
    assert (project / "app" / "main.py").read_text() == "import steersman.compat as sdk\n"


def test_with_write_files_are_changed_and_a_second_run_changes_nothing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["migrate", "--write", "project/app", "project/app/main.py"]) == 0
    assert capsys.readouterr().out == "changed project/app/main.py\n"
    assert main(["migrate", "--write", "project/app"]) == 0
    assert capsys.readouterr().out == ""

    main_file = project / "app" / "main.py"
    assert main_file.read_text() == "import steersman.compat as sdk\n"
    assert main_file.stat().st_mode & 0o777 == 0o755
    assert "steersman" not in (project.parent / "outside.py").read_text()
    assert sorted(each.name for each in main_file.parent.iterdir()) == [
        "link.py",
        "main.py",
        "script",
    ]


def test_a_file_that_is_named_is_taken_whatever_its_name(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["migrate", "--write", "project/app/script"]) == 0
    assert (project / "app" / "script").read_text() == "import steersman.compat as sdk\n"


def test_a_path_that_is_not_there_is_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", "/no/such/path"]) == 2
    assert "PATH" in capsys.readouterr().err
    assert main(["migrate"]) == 2
