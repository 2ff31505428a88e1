"""The session functions of the official package: stored conversations, in files or in a store."""

from steersman.compat._stored.files import (
    delete_session,
    fork_session,
    get_session_info,
    get_session_messages,
    get_subagent_messages,
    list_sessions,
    list_subagents,
    rename_session,
    tag_session,
)
from steersman.compat._stored.importing import import_session_to_store
from steersman.compat._stored.memory import InMemorySessionStore, fold_session_summary
from steersman.compat._stored.stores import (
    delete_session_via_store,
    fork_session_via_store,
    get_session_info_from_store,
    get_session_messages_from_store,
    get_subagent_messages_from_store,
    list_sessions_from_store,
    list_subagents_from_store,
    rename_session_via_store,
    tag_session_via_store,
)
from steersman.compat._stored.values import ForkSessionResult, project_key_for_directory

__all__ = [
    "ForkSessionResult",
    "InMemorySessionStore",
    "delete_session",
    "delete_session_via_store",
    "fold_session_summary",
    "fork_session",
    "fork_session_via_store",
    "get_session_info",
    "get_session_info_from_store",
    "get_session_messages",
    "get_session_messages_from_store",
    "get_subagent_messages",
    "get_subagent_messages_from_store",
    "import_session_to_store",
    "list_sessions",
    "list_sessions_from_store",
    "list_subagents",
    "list_subagents_from_store",
    "project_key_for_directory",
    "rename_session",
    "rename_session_via_store",
    "tag_session",
    "tag_session_via_store",
]
