"""Where a prompt came from."""

from typing import Literal, Required, TypeAlias, TypedDict

__all__ = ["MessageOrigin", "MessageOriginKind", "TaskNotificationOriginSubkind"]


MessageOriginKind: TypeAlias = Literal[
    "human",
    "channel",
    "peer",
    "task-notification",
    "coordinator",
    "unclassified",
    "observer",
    "auto-continuation",
    "observer-activity",
]
"""Kinds of origins."""


TaskNotificationOriginSubkind: TypeAlias = Literal["scheduled-trigger", "peer-send-message"]
"""Kinds of prompts that a background task caused."""


# `from` is a word of Python's, so the keys are given as a dict.
MessageOrigin = TypedDict(
    "MessageOrigin",
    {
        "kind": Required[MessageOriginKind],
        "server": str,
        "from": str,
        "name": str,
        "fromSession": str,
        "senderTaskId": str,
        "body": str,
        "verifiedPeerPid": int,
        "subkind": TaskNotificationOriginSubkind,
    },
    total=False,
)
"""Where a prompt, and the result that answers it, came from."""
