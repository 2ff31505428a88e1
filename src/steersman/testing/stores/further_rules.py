"""What a session store meets in practice, beyond the official rules."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import suppress
from itertools import count

from steersman._json import Json
from steersman.testing.stores.rules import Bench, Rule, Store, expect, same, show
from steersman.transcripts.keys import SessionKey, SessionStoreEntry

MEGABYTE = 1_000_000
WRITERS = 6
BATCHES = 8
AT_ONCE = 50
STEPS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128)
"""Turns of the event loop after which an append is cancelled."""
ODD_TEXTS = (
    "NUL \x00 and ESC \x1b",
    "lone surrogates \ud800 \udfff",
    "\U0001f469\u200d\U0001f4bb e\u0301 \u00e9 \ufb03",
    "right to left \u202e \u05d0",
    "lines \u2028 \u2029 \x85 \r\n",
    "\ufeff \ufffe \uffff \U0010ffff",
    "\" \\ \\u0000 ' % _ ; --",
    "",
)
ODD_VALUES: tuple[Json, ...] = (
    0,
    -0.0,
    1.5,
    1e300,
    2**53 + 1,
    2**80,
    True,
    False,
    None,
    [],
    {},
    [[{"a": [None]}]],
)
HOSTILE = (
    "../victim",
    "subagents/../../victim",
    "..",
    ".",
    "/victim",
    "subagents//agent-1",
    "subagents/./agent-1",
    "subagents/agent-1/",
    "..\\victim",
    "a\x00b",
    "a\nb",
    "~/x",
    "C:\\x",
    "%2e%2e/victim",
)


def _entry(uuid: str | None, **fields: object) -> SessionStoreEntry:
    entry = {"type": "x", "uuid": uuid, **fields}
    if uuid is None:
        del entry["uuid"]
    return entry  # type: ignore[return-value] # further keys


async def the_same_batch_twice(bench: Bench) -> None:
    """A batch that is sent again adds nothing: each uuid is there once, in its first place."""
    batch = [_entry("a", n=1), _entry("b", n=2)]
    for each in (batch, batch, [*batch, _entry("c"), _entry("c")]):
        await bench.store.append(bench.key(), each)
    wanted = [*batch, _entry("c")]
    await bench.expect_entries(bench.key(), wanted, "after the same batch twice and more")
    other = bench.key("other")
    await bench.store.append(other, batch)
    await bench.expect_entries(other, batch, "with the same uuids in another session")


async def entries_without_a_uuid(bench: Bench) -> None:
    """Entries without a uuid are all kept, in order: a tag may be set, cleared and set again."""
    tags = [_entry(None, tag=tag) for tag in ("one", "", "one")]
    for each in tags:
        await bench.store.append(bench.key(), [each])
    await bench.store.append(bench.key(), [_entry("a"), tags[0], tags[0]])
    wanted = [*tags, _entry("a"), tags[0], tags[0]]
    await bench.expect_entries(bench.key(), wanted, "after entries without a uuid")


async def entries_are_copied(bench: Bench) -> None:
    """What a caller does to its entries, or to those that it loaded, is not stored."""
    entry = _entry("a", inner={"list": [1]})
    wanted = [_entry("a", inner={"list": [1]})]
    batch = [entry]
    await bench.store.append(bench.key(), batch)
    batch.clear()
    entry["type"] = "changed"
    entry["inner"]["list"].append(2)  # type: ignore[typeddict-item] # a further key
    await bench.expect_entries(bench.key(), wanted, "after the caller changed its entry")
    loaded = await bench.store.load(bench.key()) or []
    loaded[0]["type"] = "changed"
    loaded.clear()
    await bench.expect_entries(bench.key(), wanted, "after the caller changed what it loaded")


async def two_writers_at_once(bench: Bench) -> None:
    """Writers at once lose nothing, double nothing, and each keeps its own order."""
    await _write_at_once(bench, [bench.store] * WRITERS, "one")
    other = await bench.other()
    await bench.store.append(bench.key("shared"), [_entry("1")])
    if await other.load(bench.key("shared")):
        # Both have the same place, as two processes have.
        stores = [bench.store, other] * (WRITERS // 2)
        await _write_at_once(bench, stores, "two")


async def _write_at_once(bench: Bench, stores: list[Store], name: str) -> None:
    key = bench.key(name)

    async def write(store: Store, writer: int) -> None:
        for batch in range(BATCHES):
            entries = [_entry(f"{writer}-{batch}-{at}") for at in range(3)]
            await store.append(key, entries)

    await asyncio.gather(*(write(store, writer) for writer, store in enumerate(stores)))
    found = [entry.get("uuid", "") for entry in await bench.store.load(key) or []]
    for writer in range(len(stores)):
        wanted = [f"{writer}-{batch}-{at}" for batch in range(BATCHES) for at in range(3)]
        own = [uuid for uuid in found if uuid.startswith(f"{writer}-")]
        lost = [uuid for uuid in wanted if uuid not in own]
        expect(not lost, f"{len(lost)} entries of writer {writer} of {len(stores)} were lost")
        expect(own == wanted, f"the entries of writer {writer} are out of order, or double")


async def the_same_batch_at_once(bench: Bench) -> None:
    """A batch that several writers send at the same time is stored once."""
    batch = [_entry(str(number)) for number in range(5)]
    await asyncio.gather(*(bench.store.append(bench.key(), batch) for _ in range(WRITERS)))
    await bench.expect_entries(bench.key(), batch, f"after {WRITERS} appends of one batch at once")


async def a_5_mb_entry(bench: Bench) -> None:
    """An entry of 5 MB is kept whole, between small ones."""
    entries = [_entry("a"), _entry("b", text="é" * (5 * MEGABYTE // 2)), _entry("c")]
    await bench.store.append(bench.key(), entries)
    found = await bench.store.load(bench.key()) or []
    sizes = [len(str(entry.get("text", ""))) for entry in found]
    expect(same(found, entries), f"an entry of 5 MB between two is loaded as texts of {sizes}")


async def odd_texts(bench: Bench) -> None:
    """Texts of any characters are kept, as values and as names of fields."""
    for number, text in enumerate(ODD_TEXTS):
        entries = [_entry("a", text=text), _entry("b", inner={text: text})]
        key = bench.key(f"odd-{number}")
        await bench.store.append(key, entries)
        await bench.expect_entries(key, entries, f"with the text {text!r}")


async def odd_values(bench: Bench) -> None:
    """Numbers of any size, booleans, null and nested values are kept as they are."""
    for number, value in enumerate(ODD_VALUES):
        entries = [_entry("value", value=value)]
        key = bench.key(f"odd-{number}")
        await bench.store.append(key, entries)
        await bench.expect_entries(key, entries, f"with the value {value!r}")


async def ids_that_are_prefixes(bench: Bench) -> None:
    """Ids that begin another id, or match it as a pattern, are apart in every method."""
    names = ["s", "s1", "s10", "s-1", "s_1", "sx1", "S"]
    keys = [bench.key(name) for name in names]
    keys += [bench.key(name, "subagents/agent-1") for name in names]
    keys += [bench.key("s", f"subagents/{part}") for part in ("agent-10", "agent_1", "agent")]
    keys += [
        bench.key("s", project=bench.project + "-x"),
        bench.key("s", project=bench.project[:-1]),
    ]
    wanted = {number: [_entry("same", n=number)] for number in range(len(keys))}
    for number, key in enumerate(keys):
        await bench.store.append(key, wanted[number])
    for number, key in enumerate(keys):
        await bench.expect_entries(key, wanted[number], "with similar ids")
    for name in ("s", "s_1"):
        if await _is_deleted(bench, bench.key(name)):
            for number, key in enumerate(keys):
                if key["project_key"] == bench.project and key["session_id"] == name:
                    wanted.pop(number)
    for number, entries in wanted.items():
        await bench.expect_entries(keys[number], entries, "after sessions with similar ids went")


async def _is_deleted(bench: Bench, key: SessionKey) -> bool:
    """Delete a session, if the store can."""
    try:
        await (bench.optional.delete or _no_delete)(key)
    except NotImplementedError:
        return False
    return True


async def _no_delete(_key: SessionKey) -> None:
    raise NotImplementedError


async def hostile_subpaths(bench: Bench) -> None:
    """A subpath that leads elsewhere is refused, or is stored as a name like any other."""
    victims = {name: [_entry(name)] for name in ("victim", "session")}
    part = bench.key(subpath="subagents/agent-1")
    for name, entries in victims.items():
        await bench.store.append(bench.key(name), entries)
    await bench.store.append(part, [_entry("part")])
    stored: list[tuple[SessionKey, list[SessionStoreEntry]]] = []
    for number, subpath in enumerate(HOSTILE):
        key, entries = bench.key(subpath=subpath), [_entry(f"hostile-{number}")]
        if await _is_refused(bench.store.append(key, entries)):
            continue
        stored.append((key, entries))
        await bench.expect_entries(key, entries, f"stored under {subpath!r}")
    for name, entries in victims.items():
        await bench.expect_entries(bench.key(name), entries, "after hostile subpaths")
    await bench.expect_entries(part, [_entry("part")], "after hostile subpaths")
    for key, entries in stored:
        await bench.expect_entries(key, entries, "after other hostile subpaths")


async def _is_refused(append: Awaitable[None]) -> bool:
    try:
        await append
    except Exception:  # noqa: BLE001 - any error is a refusal
        return True
    return False


async def many_sessions(bench: Bench) -> None:
    """Ten thousand sessions of a project are all listed, each once."""
    wanted = {f"{number:06d}" for number in range(bench.sessions)}
    waiting = sorted(wanted)
    while waiting:
        some, waiting = waiting[:AT_ONCE], waiting[AT_ONCE:]
        await asyncio.gather(*(bench.store.append(bench.key(name), [_entry("1")]) for name in some))
    found = [each["session_id"] for each in await bench.store.list_sessions(bench.project)]
    missing = len(wanted - set(found))
    expect(not missing, f"{missing} of {len(wanted)} sessions are not listed")
    expect(len(found) == len(wanted), f"{len(found)} are listed, expected {len(wanted)}")


async def a_cancelled_append(bench: Bench) -> None:
    """An append that is cancelled stores all of its entries or none, and can be sent again."""
    for steps in STEPS:
        key = bench.key(f"cancelled-{steps}")
        before, batch = [_entry("before")], [_entry(str(number)) for number in range(20)]
        await bench.store.append(key, before)
        task = asyncio.ensure_future(bench.store.append(key, batch))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        found = await bench.store.load(key)
        text = f"an append of 20 that was cancelled after {steps} steps left {show(found)}"
        expect(same(found, before) or same(found, [*before, *batch]), text)
        if same(found, before):
            await bench.store.append(key, batch)
        await bench.expect_entries(key, [*before, *batch], "sent again after being cancelled")


async def stream_equals_load(bench: Bench) -> None:
    """The chunks of `stream` are what `load` returns; none for a key that was never written."""
    names = count()
    sizes: Iterator[int] = (size for _ in range(7) for size in (10, 300_000, 10, 2000))
    entries = [_entry(str(next(names)), text="x" * size) for size in sizes]
    entries += [_entry(str(next(names))) for _ in range(1500)]
    await bench.store.append(bench.key(), entries)
    found: list[SessionStoreEntry] = []
    async for chunk in bench.store.stream(bench.key()):
        expect(isinstance(chunk, list), f"a chunk is a {type(chunk).__name__}, not a list")  # pyright: ignore[reportUnnecessaryIsInstance] - code of others
        found += chunk
    expect(same(found, entries), f"stream gave {len(found)} entries, {len(entries)} were stored")
    nothing = [chunk async for chunk in bench.store.stream(bench.key("never"))]
    expect(nothing == [], f"stream of an unknown key gave {show(nothing)}")


async def positions(bench: Bench) -> None:
    """`positions` is the number of entries that `load` returns; 0 for an unknown key."""
    for wanted, batch in (
        (0, []),
        (2, [_entry("a"), _entry("b")]),
        (3, [_entry("b"), _entry(None)]),
    ):
        await bench.store.append(bench.key(), batch)
        found = await bench.store.positions(bench.key())
        expect(found == wanted, f"positions is {found!r}, expected {wanted}")


FURTHER = (
    Rule(the_same_batch_twice),
    Rule(entries_without_a_uuid),
    Rule(entries_are_copied),
    Rule(two_writers_at_once),
    Rule(the_same_batch_at_once),
    Rule(a_5_mb_entry),
    Rule(odd_texts),
    Rule(odd_values),
    Rule(ids_that_are_prefixes),
    Rule(hostile_subpaths),
    Rule(many_sessions, ("list_sessions",), is_long=True),
    Rule(a_cancelled_append),
    Rule(stream_equals_load, ("stream",)),
    Rule(positions, ("positions",)),
)
