"""`python -m steersman.compat` runs a program as `python` does, with our modules in it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from steersman.compat.__main__ import main

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
RUNNER = ("-m", "steersman.compat")


def python(
    *words: str, cwd: Path, path: str = "", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    places = os.pathsep.join(filter(None, [str(ROOT / "src"), path]))
    env = {"PATH": os.defpath, "HOME": str(cwd), "PYTHONPATH": places, **(env or {})}
    return subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


NAMES = """\
import importlib, importlib.metadata, importlib.util, inspect, pickle, sys
import claude_agent_sdk
import claude_agent_sdk as sdk
import claude_agent_sdk.types as types
import claude_agent_sdk.query
from claude_agent_sdk import ClaudeAgentOptions, query, types as again
from claude_agent_sdk.client import ClaudeSDKClient
from claude_agent_sdk.query import query as same
from claude_agent_sdk.testing import run_session_store_conformance
from claude_agent_sdk.testing.session_store_conformance import run_session_store_conformance as r
import steersman.compat

assert types is again is sdk.types and query is same is sdk.query and callable(query)
assert ClaudeSDKClient is sdk.ClaudeSDKClient is steersman.compat.ClaudeSDKClient
assert ClaudeAgentOptions is types.ClaudeAgentOptions is steersman.compat.ClaudeAgentOptions
assert r is run_session_store_conformance
assert importlib.import_module("claude_agent_sdk.types") is types
assert importlib.metadata.version("claude-agent-sdk") == sdk.__version__ == "0.2.182"
assert importlib.metadata.version(sdk.__name__) and importlib.metadata.version("pytest")

# Modules and classes say that they are of the official package; ours stay what they are.
for module in (sdk, types, sys.modules["claude_agent_sdk.query"]):
    assert module.__name__ == module.__spec__.name, module
assert importlib.util.find_spec("claude_agent_sdk.client").name == "claude_agent_sdk.client"
assert steersman.compat.__name__ == steersman.compat.__spec__.name == "steersman.compat"
assert steersman.compat.types.__spec__.name == "steersman.compat.types"
wrong = [
    name for name in sdk.__all__ if inspect.isclass(getattr(sdk, name))
    and getattr(sdk, name).__module__.partition(".")[0] not in ("claude_agent_sdk", "builtins")
]
assert not wrong, wrong
assert types.TextBlock.__module__ == "claude_agent_sdk.types"
assert (query.__module__, ClaudeSDKClient.__module__) == (
    "claude_agent_sdk.query", "claude_agent_sdk.client"
)
assert pickle.loads(pickle.dumps(sdk.TextBlock("a"))) == sdk.TextBlock("a")
assert inspect.signature(sdk.query) and "TextBlock" in dir(sdk) and vars(types)["TextBlock"]
namespace = {}
exec("from claude_agent_sdk import *", namespace)
assert set(sdk.__all__) <= set(namespace)

# What instrumentation does: it wraps a method, sets a function of the package, takes it back.
def wrapped(*args, **kw):
    return "wrapped"
claude_agent_sdk.query, claude_agent_sdk.ClaudeSDKClient.query = wrapped, wrapped
from claude_agent_sdk import query as third
assert third() == steersman.compat.query() == steersman.compat.ClaudeSDKClient.query() == "wrapped"
from unittest import mock
with mock.patch("claude_agent_sdk.query", "mocked"), mock.patch("claude_agent_sdk.tool", "mocked"):
    assert claude_agent_sdk.query == steersman.compat.tool == "mocked"
assert claude_agent_sdk.query is wrapped and callable(claude_agent_sdk.tool)
sdk._mark = True
assert sdk._mark and steersman.compat._mark
del sdk._mark
assert not hasattr(sdk, "_mark") and not hasattr(sdk, "__wrapped__")

for name in ("_internal.query", "_internal.sessions", "nonsense"):
    try:
        importlib.import_module("claude_agent_sdk." + name)
    except ImportError as error:
        assert "private module" in str(error) and "client.session" in str(error), error
        assert error.name.startswith("claude_agent_sdk._") or name == "nonsense"
    else:
        raise AssertionError(name)
print("all good")
"""

DOORS = """\
import asyncio, claude_agent_sdk, steersman.compat
from claude_agent_sdk import ClaudeSDKClient, CLIConnectionError, ResultMessage, StreamEvent
from claude_agent_sdk._errors import MessageParseError, CLIConnectionError as same
from claude_agent_sdk._internal.client import InternalClient
from claude_agent_sdk._internal.message_parser import parse_message
from claude_agent_sdk._internal.session_summary import fold_session_summary
from claude_agent_sdk._internal.transport import Transport
from claude_agent_sdk._internal.transport.subprocess_cli import Transport as again
from tests.compat.canned import Canned, answer

assert same is CLIConnectionError and issubclass(MessageParseError, claude_agent_sdk.ClaudeSDKError)
assert Transport is again is claude_agent_sdk.Transport
assert fold_session_summary is claude_agent_sdk.fold_session_summary
assert claude_agent_sdk._internal.message_parser.parse_message is parse_message
assert InternalClient.__module__ == "claude_agent_sdk._internal.client"
client = ClaudeSDKClient()
assert client._query is None and client._transport is None

seen = []

# What `query()` does goes through the method that instrumentation wraps.
original = InternalClient.process_query
async def wrapped(self, *args, **kwargs):
    seen.append(sorted(kwargs))
    async for message in original(self, *args, **kwargs):
        yield message
InternalClient.process_query = wrapped

# A program that reads messages in its own way: each line goes through its function.
def own(data):
    seen.append(data["type"])
    return parse_message(data)
claude_agent_sdk._internal.message_parser.parse_message = own

def partial(prompt, number):
    event = {"type": "stream_event", "uuid": "u", "session_id": "s1", "event": {"type": "x"}}
    return [event, *answer(prompt, number)]

async def main():
    options = claude_agent_sdk.ClaudeAgentOptions(include_partial_messages=True)
    messages = claude_agent_sdk.query(prompt="hi", options=options, transport=Canned(partial))
    assert [type(each).__name__ async for each in messages][0] == "StreamEvent"
asyncio.run(main())
assert seen == [
    ["options", "prompt", "transport"], "stream_event", "system", "assistant", "result"
], seen
print("all good")
"""


def test_private_names_that_published_programs_use_are_doors_to_ours(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(DOORS)

    run = python(*RUNNER, "program.py", cwd=tmp_path, path=str(ROOT))

    assert (run.stdout, run.stderr, run.returncode) == ("all good\n", "", 0)


def test_every_way_to_import_the_official_package_gives_ours(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(NAMES)

    run = python(*RUNNER, "program.py", cwd=tmp_path)

    assert (run.stdout, run.stderr, run.returncode) == ("all good\n", "", 0)


IS_OURS = """\
import claude_agent_sdk, claude_agent_sdk.types, steersman.compat
assert claude_agent_sdk.query is steersman.compat.query
assert type(claude_agent_sdk).__module__.startswith("steersman")
"""
IN_CHILDREN = """\
import multiprocessing, subprocess, sys

def check(_):
    import claude_agent_sdk, steersman.compat
    return claude_agent_sdk.query is steersman.compat.query

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(check, [0]) == [True]
    subprocess.run([sys.executable, "-c", "from program import check; assert check(0)"], check=True)
    print("all good")
"""


def test_install_takes_effect_in_the_process_that_calls_it(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import steersman.compat\nsteersman.compat.install()\nsteersman.compat.install()\n"
        f"{IS_OURS}print('all good')\n"
    )

    run = python("program.py", cwd=tmp_path)

    assert (run.stdout, run.stderr, run.returncode) == ("all good\n", "", 0)


def test_install_warns_of_an_official_package_that_was_imported_before(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import claude_agent_sdk as before, steersman.compat\nsteersman.compat.install()\n"
        f"{IS_OURS}assert before is not claude_agent_sdk\n"
    )

    run = python("program.py", cwd=tmp_path)

    assert run.returncode == 0, run
    assert "program.py:2: TranslationWarning: claude_agent_sdk was imported before" in run.stderr


@pytest.mark.parametrize("value", [None, "0", "1"])
def test_the_variable_takes_effect_in_every_process_that_inherits_it(
    tmp_path: Path, value: str | None
) -> None:
    """The file that a wheel puts beside the package is read as at the start of Python."""
    named = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    built = named["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    (tmp_path / "site").mkdir()
    for source, name in built.items():
        shutil.copy(ROOT / source, tmp_path / "site" / name)
    (tmp_path / "sitecustomize.py").write_text(
        f"import site\nsite.addsitedir({str(tmp_path / 'site')!r})\n"
    )
    (tmp_path / "program.py").write_text(IN_CHILDREN)
    env = {} if value is None else {"STEERSMAN_COMPAT": value}

    run = python("program.py", cwd=tmp_path, path=str(tmp_path), env=env)

    assert (run.stdout == "all good\n") is (value == "1"), run
    assert ("AssertionError" in run.stderr) is (value != "1"), run


def test_the_bundled_cli_is_found_beside_the_alias(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import claude_agent_sdk\nfrom steersman.transports.locate import wheel_folders\n"
        "print(wheel_folders('claude_agent_sdk'))\n"
    )

    run = python(*RUNNER, "program.py", cwd=tmp_path)

    assert "site-packages/claude_agent_sdk" in run.stdout, run


METADATA = """\
from importlib import metadata
import claude_agent_sdk
names = ("claude-agent-sdk", "Claude_Agent_SDK")
assert {metadata.version(each) for each in names} == {claude_agent_sdk.__version__}
assert metadata.metadata("claude-agent-sdk")["Name"] == "claude-agent-sdk"
assert metadata.files("claude-agent-sdk") is None
for other in ("claude-agent", "sdk"):
    try:
        metadata.version(other)
    except metadata.PackageNotFoundError:
        continue
    raise AssertionError(other)
print("all good", [each.name for each in metadata.distributions()])
"""


def test_instrumentation_finds_the_release_where_the_official_package_is_missing(
    tmp_path: Path,
) -> None:
    (tmp_path / "program.py").write_text(METADATA)
    (tmp_path / "libraries").mkdir()
    library = Path(msgspec.__file__).parent
    (tmp_path / "libraries" / "msgspec").symlink_to(library, target_is_directory=True)

    run = python("-S", *RUNNER, "program.py", cwd=tmp_path, path=str(tmp_path / "libraries"))

    assert (run.stdout, run.stderr, run.returncode) == ("all good []\n", "", 0)


SEEN = """\
# -*- coding: latin-1 -*-
import json, pickle, sys, helper
class Value:
    pass
main = sys.modules["__main__"]
pickle.dumps(Value())
print(json.dumps([
    __name__, __file__, sys.argv, sys.path[0], main.Value is Value, __spec__ is None,
    helper.__file__, "\xe4" == chr(228), __doc__,
    sorted(name for name in globals() if name.startswith("__") and name != "__annotations__"),
]))
"""
SEEN_BY_M = SEEN.replace("__spec__ is None", "__spec__.name, __package__")


@pytest.mark.parametrize("words", [["inside/program.py", "-x", "--", "b c"], ["-m", "tool", "-m"]])
def test_a_program_sees_what_it_sees_under_python(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "program.py").write_bytes(SEEN.encode("latin-1"))
    (tmp_path / "tool.py").write_bytes(SEEN_BY_M.encode("latin-1"))
    for place in (tmp_path, tmp_path / "inside"):
        (place / "helper.py").write_text("")

    plain, ours = python(*words, cwd=tmp_path), python(*RUNNER, *words, cwd=tmp_path)

    assert (plain.stderr, plain.returncode) == ("", 0)
    assert (ours.stdout, ours.stderr, ours.returncode) == (plain.stdout, "", 0)


ENDINGS = {
    "a chained error": (
        "def f():\n    try:\n        1 / 0\n"
        "    except ZeroDivisionError as error:\n        raise KeyError from error\n\nf()\n"
    ),
    "a syntax error": "x = (\n",
    "exit with a text": "raise SystemExit('goodbye')\n",
    "atexit and a hook": (
        "import atexit, sys\natexit.register(print, 'at exit')\n"
        "sys.excepthook = lambda *about: print('hook', about[0].__name__)\n1 / 0\n"
    ),
    "an interrupt": ("import atexit\natexit.register(print, 'at exit')\nraise KeyboardInterrupt\n"),
}


@pytest.mark.parametrize("text", ENDINGS.values(), ids=ENDINGS)
def test_a_program_ends_as_under_python(tmp_path: Path, text: str) -> None:
    (tmp_path / "program.py").write_text(text)

    plain = python("program.py", cwd=tmp_path)
    ours = python(*RUNNER, "program.py", cwd=tmp_path)

    assert (ours.stdout, ours.stderr, ours.returncode) == (
        plain.stdout,
        plain.stderr,
        plain.returncode,
    )
    if "KeyboardInterrupt" in text:
        assert ours.returncode == -signal.SIGINT


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ([], 2, "usage: python -m steersman.compat"),
        (["--unknown"], 2, "usage: python -m steersman.compat"),
        (["-m"], 2, "usage: python -m steersman.compat"),
        (["missing.py"], 2, f"can't open file {str(Path('missing.py').absolute())!r}: "),
        (["-m", "missing_module"], 1, "No module named missing_module"),
    ],
)
def test_a_wrong_command_line_is_told(
    capsys: pytest.CaptureFixture[str], words: list[str], status: int, said: str
) -> None:
    assert main(words) == status
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help_is_no_mistake(capsys: pytest.CaptureFixture[str], word: str) -> None:
    assert main([word, "more"]) == 0

    said = capsys.readouterr()
    assert said.out.startswith("usage: python -m steersman.compat PROGRAM.py")
    assert said.err == ""


@pytest.mark.parametrize("name", ["folder", "archive.zip", "archive", "text.zip"])
def test_a_directory_and_an_archive_run_as_under_python(tmp_path: Path, name: str) -> None:
    text = (
        "import os, sys\nos.chdir('/')\nimport helper\n"
        "print(__name__, __file__, sys.argv, sys.path[0], helper.__file__, repr(__package__),"
        " __spec__ and __spec__.name, sys.modules['__main__'].os is os)\n"
    )
    files = {"__main__.py": text, "helper.py": ""}
    (tmp_path / "folder").mkdir()
    for each, content in files.items():
        (tmp_path / "folder" / each).write_text(content)
    for archive in ("archive.zip", "archive"):
        with zipfile.ZipFile(tmp_path / archive, "w") as file:
            for each, content in files.items():
                file.writestr(each, content)
    (tmp_path / "text.zip").write_text(text)
    (tmp_path / "helper.py").write_text("")

    plain = python(name, "-x", cwd=tmp_path)
    ours = python(*RUNNER, name, "-x", cwd=tmp_path)

    assert plain.stdout.startswith("__main__ ")
    assert (ours.stdout, ours.stderr, ours.returncode) == (plain.stdout, "", 0)


@pytest.mark.parametrize("name", ["empty", "missing.zip"])
def test_what_has_nothing_to_run_is_told_as_by_python(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()

    plain = python(name, cwd=tmp_path)
    ours = python(*RUNNER, name, cwd=tmp_path)

    assert plain.returncode
    assert (ours.stdout, ours.stderr, ours.returncode) == ("", plain.stderr, plain.returncode)
