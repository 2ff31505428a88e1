"""The checker finds what is wrong with a store, rule by rule."""

from __future__ import annotations

import asyncio
import json
import posixpath
from collections.abc import AsyncIterator
from typing import Any

import pytest

from steersman.errors import UsageError
from steersman.ports import SessionStore
from steersman.stores import MemoryStore
from steersman.testing.stores import Finding, Report, check, rule_names
from steersman.transcripts.keys import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
)

Entries = list[SessionStoreEntry]
SESSIONS = 60
BIG = "a_5_mb_entry"
"""Takes half of the time of all rules."""


class SortsABatch(MemoryStore):
    async def append(self, key: SessionKey, entries: Entries) -> None:
        if all("uuid" in entry for entry in entries):
            entries = sorted(entries, key=lambda entry: (len(entry["uuid"]), entry["uuid"]))
        await super().append(key, entries)


class KnowsEverySession(MemoryStore):
    """Has an empty list for what was never written, and None for what was deleted."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    async def append(self, key: SessionKey, entries: Entries) -> None:
        self.seen.add(key["session_id"])
        await super().append(key, entries)

    async def load(self, key: SessionKey) -> Entries | None:
        return await super().load(key) if key["session_id"] in self.seen else []


class SortsAllBatches(MemoryStore):
    """Sorts batches of one entry before longer ones."""

    async def load(self, key: SessionKey) -> Entries | None:
        found = await super().load(key)
        if found and [entry.get("uuid") for entry in found] == ["z", "a", "m", "b"]:
            return sorted(found, key=lambda entry: entry["uuid"])
        return found


class AnEmptyBatchEmpties(MemoryStore):
    async def append(self, key: SessionKey, entries: Entries) -> None:
        if not entries:
            await self.delete(key)
        await super().append(key, entries)


class MixesParts(MemoryStore):
    async def load(self, key: SessionKey) -> Entries | None:
        found = await super().load(key)
        if "subpath" in key or found != [{"type": "x", "uuid": "m"}]:
            return found
        part: SessionKey = {**key, "subpath": "subagents/agent-1"}
        return [*found, *(await super().load(part) or [])]


class MixesProjects(MemoryStore):
    async def append(self, key: SessionKey, entries: Entries) -> None:
        await super().append(self._shared(key), entries)

    async def load(self, key: SessionKey) -> Entries | None:
        return await super().load(self._shared(key))

    @staticmethod
    def _shared(key: SessionKey) -> SessionKey:
        return {**key, "project_key": key["project_key"].replace("-B", "-A")}


class TellsSeconds(MemoryStore):
    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        found = await super().list_sessions(project_key)
        return [{**each, "mtime": each["mtime"] // 1000} for each in found]


class ListsParts(MemoryStore):
    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        found = await super().list_sessions(project_key)
        for each in list(found):
            key: SessionListSubkeysKey = {
                "project_key": project_key,
                "session_id": each["session_id"],
            }
            found += [each for _ in await super().list_subkeys(key) if each["session_id"] == "main"]
        return found


class KeepsTheFirstSummary(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, SessionSummaryEntry] = {}

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        found = await super().list_session_summaries(project_key)
        return [self.rows.setdefault(row["session_id"], row) for row in found]


class KeepsSummaries(MemoryStore):
    """Forgets a session, but not its summary."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[SessionSummaryEntry] = []

    async def delete(self, key: SessionKey) -> None:
        self.rows += await super().list_session_summaries(key["project_key"])
        await super().delete(key)

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        return [*await super().list_session_summaries(project_key), *self.rows]


class KeepsParts(MemoryStore):
    async def delete(self, key: SessionKey) -> None:
        kept = {
            name: await self.load({**key, "subpath": name})
            for name in await self.list_subkeys(key)
            if "subpath" not in key and name == "subagents/agent-2"
        }
        await super().delete(key)
        for name, entries in kept.items():
            await self.append({**key, "subpath": name}, entries or [])


class DeletesTheWholeSession(MemoryStore):
    async def delete(self, key: SessionKey) -> None:
        await super().delete({"project_key": key["project_key"], "session_id": key["session_id"]})


class ListsAllParts(MemoryStore):
    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        return [
            *await super().list_subkeys(key),
            *await super().list_subkeys({**key, "session_id": "other"}),
        ]


class ListsItself(MemoryStore):
    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        return await super().list_subkeys(key) or [""] * bool(
            await self.load({"project_key": key["project_key"], "session_id": key["session_id"]})
        )


class KeepsDoubles(MemoryStore):
    """Knows the uuids of the batch before only while another append runs."""

    async def append(self, key: SessionKey, entries: Entries) -> None:
        if [entry.get("n") for entry in entries] == [1, 2] and await self.load(key):
            entries = [{**entry, "uuid": entry["uuid"] + "'"} for entry in entries]
        await super().append(key, entries)


class DropsEqualEntries(MemoryStore):
    async def append(self, key: SessionKey, entries: Entries) -> None:
        known = await self.load(key) or []
        await super().append(key, [each for each in entries if "uuid" in each or each not in known])


class KeepsTheObjects(MemoryStore):
    """Keeps the caller's own dicts."""

    def __init__(self) -> None:
        super().__init__()
        self.objects: dict[str, Entries] = {}

    async def append(self, key: SessionKey, entries: Entries) -> None:
        before = await super().load(key) or []
        await super().append(key, entries)
        after = await super().load(key) or []
        mine = self.objects.setdefault(json.dumps(key), [])
        mine += [each for each in entries if each in after and each not in before]

    async def load(self, key: SessionKey) -> Entries | None:
        found = await super().load(key)
        mine = self.objects.get(json.dumps(key), [])
        return mine if found and len(found) == 1 and len(mine) == 1 else found


class ReadsThenWrites(MemoryStore):
    """Takes what is there, waits, and puts it back with more."""

    async def append(self, key: SessionKey, entries: Entries) -> None:
        before = await self.load(key) or []
        is_new = all(entry not in before for entry in entries)
        if is_new and entries and str(entries[0].get("uuid", "")).count("-") == 2:
            await asyncio.sleep(0)
            lost = await self.load(key) or []
            if len(lost) > len(before):
                return
        await super().append(key, entries)


class LooksThenWrites(MemoryStore):
    """Looks for double uuids, waits, and stores what it found to be new."""

    async def append(self, key: SessionKey, entries: Entries) -> None:
        is_first = await self.load(key) is None
        await asyncio.sleep(0)
        if is_first and len(entries) == 5 and await self.load(key):
            entries = [{**entry, "uuid": f"{entry['uuid']}'"} for entry in entries]
        await super().append(key, entries)


class HasAMegabyte(MemoryStore):
    async def append(self, key: SessionKey, entries: Entries) -> None:
        await super().append(key, [each for each in entries if len(str(each)) < 1_000_000])


class DropsNul(MemoryStore):
    async def load(self, key: SessionKey) -> Entries | None:
        found = await super().load(key)
        return found and json.loads(json.dumps(found).replace("\\u0000 and", " and"))


class HasJavaScriptNumbers(MemoryStore):
    async def load(self, key: SessionKey) -> Entries | None:
        found = json.dumps(await super().load(key))
        entries: Entries | None = json.loads(found, parse_int=lambda digits: int(float(digits)))
        return entries


class MatchesPatterns(MemoryStore):
    """Deletes by `LIKE`, where `_` is any character."""

    async def delete(self, key: SessionKey) -> None:
        await super().delete(key)
        if "_" in key["session_id"]:
            await super().delete({**key, "session_id": key["session_id"].replace("_", "x")})


class FollowsPaths(MemoryStore):
    @staticmethod
    def _real(key: SessionKey) -> SessionKey:
        path = posixpath.normpath(posixpath.join(key["session_id"], key.get("subpath", "")))
        session, _, rest = path.partition("/")
        real: SessionKey = {"project_key": key["project_key"], "session_id": session or "/"}
        return {**real, "subpath": rest} if rest else real

    async def append(self, key: SessionKey, entries: Entries) -> None:
        await super().append(self._real(key), entries)

    async def load(self, key: SessionKey) -> Entries | None:
        return await super().load(self._real(key))


class ListsOnePage(MemoryStore):
    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        return (await super().list_sessions(project_key))[:50]


class WritesOneByOne(MemoryStore):
    async def append(self, key: SessionKey, entries: Entries) -> None:
        for entry in entries:
            await super().append(key, [entry])
            if len(entries) == 20:
                await asyncio.sleep(0)


class StreamsTheEndTwice(MemoryStore):
    async def stream(self, key: SessionKey) -> AsyncIterator[Entries]:
        chunk: Entries = []
        async for chunk in super().stream(key):
            yield chunk
        if chunk:
            yield chunk


class CountsBatches(MemoryStore):
    async def positions(self, key: SessionKey) -> int:
        return min(await super().positions(key), 2)


FAULTS: dict[str, type[MemoryStore]] = {
    "append_then_load": SortsABatch,
    "unknown_keys": KnowsEverySession,
    "order_of_appends": SortsAllBatches,
    "empty_append": AnEmptyBatchEmpties,
    "subpaths_apart": MixesParts,
    "projects_apart": MixesProjects,
    "list_sessions": TellsSeconds,
    "list_sessions_without_parts": ListsParts,
    "summaries": KeepsTheFirstSummary,
    "delete": KeepsSummaries,
    "delete_cascades": KeepsParts,
    "delete_part": DeletesTheWholeSession,
    "list_subkeys": ListsAllParts,
    "list_subkeys_of_none": ListsItself,
    "the_same_batch_twice": KeepsDoubles,
    "entries_without_a_uuid": DropsEqualEntries,
    "entries_are_copied": KeepsTheObjects,
    "two_writers_at_once": ReadsThenWrites,
    "the_same_batch_at_once": LooksThenWrites,
    "a_5_mb_entry": HasAMegabyte,
    "odd_texts": DropsNul,
    "odd_values": HasJavaScriptNumbers,
    "ids_that_are_prefixes": MatchesPatterns,
    "hostile_subpaths": FollowsPaths,
    "many_sessions": ListsOnePage,
    "a_cancelled_append": WritesOneByOne,
    "stream_equals_load": StreamsTheEndTwice,
    "positions": CountsBatches,
}


def test_there_is_a_broken_store_for_every_rule() -> None:
    assert tuple(FAULTS) == rule_names()


@pytest.mark.parametrize("rule", FAULTS)
async def test_a_store_that_breaks_a_rule_is_found_and_no_other_rule_is_blamed(rule: str) -> None:
    fault = FAULTS[rule]

    skip = {BIG} - {rule}

    report = await check(fault, sessions=SESSIONS, skip=skip)

    assert {each.rule for each in report.failed} == {rule}, report
    assert all(each.why and each.requires for each in report.failed)
    assert not report.is_good


async def test_a_store_that_keeps_the_rules_passes_them_all() -> None:
    report = await check(MemoryStore, sessions=SESSIONS)

    assert report.is_good, report
    assert [each.rule for each in report.findings] == list(rule_names())
    assert {each.outcome for each in report.findings} == {"passed"}


class OnlyTheRequired:
    """Has what a store must have, and nothing else."""

    def __init__(self) -> None:
        self.inner = MemoryStore()

    async def append(self, key: SessionKey, entries: Entries) -> None:
        await self.inner.append(key, entries)

    async def load(self, key: SessionKey) -> Entries | None:
        return await self.inner.load(key)


class Inherits(OnlyTheRequired, SessionStore):
    """Has the optional methods of the port, which raise `NotImplementedError`."""


OPTIONAL = {
    "list_sessions": "list_sessions",
    "list_sessions_without_parts": "list_sessions",
    "summaries": "list_session_summaries",
    "delete": "delete",
    "delete_cascades": "delete",
    "delete_part": "delete",
    "list_subkeys": "list_subkeys",
    "list_subkeys_of_none": "list_subkeys",
    "many_sessions": "list_sessions",
    "stream_equals_load": "stream",
    "positions": "positions",
}


@pytest.mark.parametrize("store", [OnlyTheRequired, Inherits])
async def test_rules_for_methods_that_a_store_lacks_are_skipped_and_told(store: Any) -> None:
    report = await check(store, skip=[BIG])

    assert report.is_good, report
    assert {each.rule: each.why for each in report.skipped} == {
        BIG: "as asked for",
        **{rule: f"the store has no {method}" for rule, method in OPTIONAL.items()},
    }


class Hangs(MemoryStore):
    async def load(self, key: SessionKey) -> Entries | None:
        if key["session_id"] == "never":
            await asyncio.Event().wait()
        return await super().load(key)


async def test_a_store_that_hangs_fails_the_rule_and_the_next_rules_are_checked() -> None:
    report = await check(Hangs, only=["unknown_keys", "order_of_appends"], timeout=0.05)

    assert [each.outcome for each in report.findings] == ["failed", "passed"]
    assert report.failed[0].why == "not done within 0.05 s"


async def test_a_store_that_cannot_be_made_fails_every_rule_with_the_reason() -> None:
    def make() -> MemoryStore:
        raise ConnectionRefusedError("no server")

    report = await check(make)

    assert {each.why for each in report.findings} == {"ConnectionRefusedError: no server"}


async def test_a_factory_may_be_async_and_its_stores_are_closed() -> None:
    closed: list[MemoryStore] = []

    class Closable(MemoryStore):
        async def aclose(self) -> None:
            closed.append(self)

    async def make() -> Closable:
        return Closable()

    report = await check(make, only=["positions", "two_writers_at_once"])

    assert report.is_good, report
    assert len(closed) == 3


async def test_a_rule_is_skipped_by_its_name_and_an_unknown_name_is_refused() -> None:
    report = await check(KnowsEverySession, skip=["unknown_keys"], sessions=SESSIONS)

    assert report.is_good
    assert [each.rule for each in report.skipped] == ["unknown_keys"]
    with pytest.raises(UsageError, match="nonsense"):
        await check(MemoryStore, skip=["nonsense"])


def test_a_report_is_text_and_data() -> None:
    report = Report(
        (
            Finding("one", "One holds.", "passed", seconds=0.5),
            Finding("two", "Two holds.", "failed", "it is\x1b[2J three"),
            Finding("four", "Four holds.", "skipped", "the store has no four"),
        )
    )

    assert str(report).splitlines() == [
        "passed   one     0.50 s",
        "failed   two     0.00 s",
        "         rule: Two holds.",
        "         it is\\x1b[2J three",
        "skipped  four    0.00 s",
        "         the store has no four",
        "1 passed, 1 failed, 1 skipped",
    ]
    assert json.loads(json.dumps(report.data()))["findings"][1] == {
        "rule": "two",
        "requires": "Two holds.",
        "outcome": "failed",
        "why": "it is\x1b[2J three",
        "seconds": 0.0,
    }
