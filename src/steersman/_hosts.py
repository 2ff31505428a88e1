"""Where a CLI runs: certainly on this machine, where its files are too, or perhaps elsewhere.

`host_of` decides once for each session; what a session does with the files of its CLI is asked of
the `Host` that it returns. Modules that few programs need are imported where they are used.
"""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Protocol

from steersman import _json
from steersman.errors import Described, UsageError
from steersman.options.fields import Options
from steersman.transports.subprocess import SubprocessTransport, user_ids

if TYPE_CHECKING:
    from steersman._json import JsonDict
    from steersman._launch.builder import ReadSettings
    from steersman._session.ownership import Lock
    from steersman.mirror.comparing import FileComparer
    from steersman.mirror.restore import StoredConversation
    from steersman.ports import SessionStore, Transport

Env = Mapping[str, str]


class Host(Protocol):
    """What a session knows of the files of its CLI. `env` is the environment of the CLI."""

    @property
    def read_settings(self) -> ReadSettings | None:
        """Reads a settings file, each once; None if the file may be on another machine."""
        ...

    def check_file(self, path: str) -> None:
        """Check that a session file has the name of its conversation. Raises `UsageError`."""
        ...

    def is_saved(self, env: Env, session_id: str) -> bool | None:
        """Whether the CLI has saved a conversation; None if that is not known."""
        ...

    def remove_unwritten(self, env: Env, session_id: str) -> bool:
        """Remove the file of a conversation that no CLI resumes, for one to begin it.

        Returns whether there was such a file.
        """
        ...

    def running_session(self, env: Env, pid: int) -> str | None:
        """Return the conversation that the CLI of this pid has open; None if that is not known."""
        ...

    def claim(self, env: Env, session_id: str) -> Lock:
        """Lock a conversation. Raises `SessionInUse`."""
        ...

    def resumed(self, env: Env, store: SessionStore) -> StoredConversation:
        """Return the conversation to resume from the session store.

        Raises `UsageError` if the files for it cannot be written where the CLI runs.
        """
        ...

    def comparer(self, store: SessionStore) -> FileComparer | None:
        """Return the comparer of session files with the store; None if they may not be here."""
        ...


def host_of(options: Options, transport: Transport | None) -> Host:
    """Return the host of a CLI that is started with these options, over this transport."""
    return ThisMachine(options) if _runs_here(transport) else Elsewhere(transport)


def _runs_here(transport: Transport | None) -> bool:
    if transport is None:
        return True
    from steersman.transports.command import CommandTransport  # noqa: PLC0415 - rarely needed

    if isinstance(transport, CommandTransport):
        return transport.local and _runs_here(transport.inner)
    return isinstance(transport, SubprocessTransport)


class ThisMachine:
    """The CLI certainly runs on this machine, and its files are here."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._settings: dict[str, bytes] = {}

    def read_settings(self, path: str) -> JsonDict:
        """Return the settings in a file. Raises `UsageError`, without the content."""
        # The CLI, too, reads a relative path from its own directory.
        place = os.path.join(self._options.cwd or "", path)  # noqa: PTH118 - `pathlib` is slow to load
        if path not in self._settings:
            try:
                with open(place, "rb") as file:  # noqa: PTH123 - as above
                    self._settings[path] = file.read()
            except OSError as error:
                allowed = f"a file that can be read ({error.strerror})"
                raise UsageError("settings", path, allowed) from None
        return settings_in(path, self._settings[path])

    def check_file(self, path: str) -> None:
        """Check that a session file has the name of its conversation. Raises `UsageError`."""
        from steersman.stores.transcript_files import conversation_in  # noqa: PLC0415 - rarely needed

        found = conversation_in(path)
        if found is not None and not path.endswith(f"/{found}.jsonl"):
            raise UsageError(
                "resume",
                path,
                f"a file with the name of its conversation: {found}.jsonl",
                hint="the CLI would append to that file, and not to this one",
            )

    def is_saved(self, env: Env, session_id: str) -> bool | None:
        """Whether the CLI has saved a conversation; a store, which may have it, is not asked."""
        from steersman.stores import has_transcript  # noqa: PLC0415 - only for `Agent.open`

        return None if self._options.session_store is not None else has_transcript(env, session_id)

    def remove_unwritten(self, env: Env, session_id: str) -> bool:
        """Remove the file of a conversation that no CLI resumes, for one to begin it."""
        from steersman.stores.transcript_files import remove_unwritten  # noqa: PLC0415 - rarely needed

        if self._options.session_store is not None:
            return False
        try:
            return remove_unwritten(env, session_id)
        except OSError:
            return False

    def running_session(self, env: Env, pid: int) -> str | None:
        """Return the conversation that the CLI of this pid has open; None if that is not known."""
        from steersman.stores import running_session  # noqa: PLC0415 - only to continue

        return running_session(env, pid)

    def claim(self, env: Env, session_id: str) -> Lock:
        """Lock a conversation beside the files of its CLI. Raises `SessionInUse`."""
        # Not at the import of steersman: reading the module takes as long as locking.
        from steersman.stores import conversation_lock  # noqa: PLC0415

        directory = conversation_lock.lock_directory(env, user_ids(self._options.user))
        return conversation_lock.claim(directory, session_id)

    def resumed(self, env: Env, store: SessionStore) -> StoredConversation:
        """Return the conversation to resume from the session store."""
        from steersman.mirror.restore import StoredConversation  # noqa: PLC0415 - with a store only

        return StoredConversation(self._options, store, env, user_ids(self._options.user))

    def comparer(self, store: SessionStore) -> FileComparer:
        """Return the comparer of session files with the store."""
        from steersman.mirror.comparing import FileComparer  # noqa: PLC0415 - as above

        return FileComparer(store, self._options.load_timeout)


def settings_in(path: str, content: bytes) -> JsonDict:
    """Return the settings in a file. Raises `UsageError`, without the content."""
    try:
        found = _json.loads(content.removeprefix(BOM_UTF8))
    except ValueError as error:
        raise UsageError("settings", path, f"a file with a JSON object ({error})") from None
    if not _json.is_object(found):
        raise UsageError("settings", path, "a file with a JSON object")
    return found


class Elsewhere:
    """The CLI may run on another machine: its files are not looked at."""

    read_settings = None

    def __init__(self, transport: Transport | None) -> None:
        self._transport = transport

    def check_file(self, path: str) -> None:
        """Accept any file: it cannot be read."""

    def is_saved(self, env: Env, session_id: str) -> None:
        """Return that this is not known."""

    def remove_unwritten(self, env: Env, session_id: str) -> bool:
        """Remove nothing."""
        del env, session_id
        return False

    def running_session(self, env: Env, pid: int) -> None:
        """Return that this is not known."""

    def claim(self, env: Env, session_id: str) -> Lock:  # noqa: ARG002 - a port
        """Lock a conversation within this process, for each transport. Raises `SessionInUse`."""
        from steersman.stores import conversation_lock  # noqa: PLC0415 - as on this machine

        return conversation_lock.claim(None, session_id, key=self._key())

    def _key(self) -> Hashable:
        """Return a key that is equal for transports to the same place, as far as is known."""
        from steersman.transports.command import CommandTransport  # noqa: PLC0415 - rarely needed

        transport = self._transport
        return transport.prefix if isinstance(transport, CommandTransport) else id(transport)

    def resumed(self, env: Env, store: SessionStore) -> StoredConversation:  # noqa: ARG002 - a port
        """Refuse: what the CLI resumes is a file, and files are written on this machine only."""
        raise UsageError(
            "session_store",
            Described(f"a {type(store).__name__}"),
            "no resume= and no continue_conversation= with a transport to another machine",
            hint="the conversation is resumed from a file, which is written on this machine only;"
            " run steersman on the machine of the CLI, or begin a new conversation",
        )

    def comparer(self, store: SessionStore) -> None:
        """Return that the files are not here."""
