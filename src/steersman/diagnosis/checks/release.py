"""What holds on this release of the CLI, and whether it stays the same."""

from __future__ import annotations

from collections.abc import Iterable

from steersman._releases import MEANINGS, TABLE, ReleaseTable
from steersman.diagnosis.machine import Machine
from steersman.diagnosis.values import Check, Finding, failed, ok, skipped, warned
from steersman.errors import LaunchError, SteersmanError

SWITCHES = ("DISABLE_AUTOUPDATER", "DISABLE_UPDATES")
"""Variables with which the CLI does not update itself."""

UPDATER = "release:updates"
"""The name of the finding about updates."""


def release(table: ReleaseTable = TABLE) -> Check:
    """Return the check that looks a release up in `table`."""

    async def run(machine: Machine) -> Iterable[Finding]:
        try:
            found = await machine.handshake()
        except SteersmanError:
            return (*skipped("the CLI did not start"), *_updates(machine, table))
        version = found.initialized.claude_code_version
        return (*_promises(version, table), *_updates(machine, table))

    return Check("release", run, f"use version {table.good()} of the CLI")


RELEASE = release()


def _promises(version: str, table: ReleaseTable) -> Iterable[Finding]:
    known = table.find(version)
    if not version:
        return warned("the CLI reports no version, so what holds on it is not known")
    if known.broken:
        return failed(f"guards do not hold on {version}: {known.broken}")
    if known.is_newer:
        return warned(
            f"{version} is newer than {table.newest}, the newest that steersman was tested with",
            f"run `steersman conform`, or use version {table.good()}",
        )
    if known.lacks:
        lacks = "; ".join(MEANINGS.get(each, each) for each in known.lacks)
        return warned(f"on {version} these do not hold: {lacks}")
    tested = "was tested" if version in table.tested else "is between releases that were tested"
    return ok(f"{version} {tested}; guards hold, and all promises")


def _updates(machine: Machine, table: ReleaseTable) -> Iterable[Finding]:
    try:
        is_fixed = machine.is_bundled
    except LaunchError:
        return ()
    if is_fixed:
        return (Finding("ok", "the release changes only with the package", name=UPDATER),)
    if any(machine.environ.get(each) for each in SWITCHES):
        return (Finding("ok", "automatic updates are switched off", name=UPDATER),)
    return (
        Finding(
            "warn",
            "this CLI may update itself, so the release under your programs can change",
            f"keep one: `npm install -g @anthropic-ai/claude-code@{table.good()}` and"
            " DISABLE_AUTOUPDATER=1 in the environment of every program that runs it; or use the"
            " CLI of `pip install steersman[cli]`",
            UPDATER,
        ),
    )
