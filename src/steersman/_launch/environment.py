"""What of the host's environment reaches the CLI, and why.

Anything not in this table stays behind: the host's secrets are not the agent's to print.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache

from steersman.errors import UsageError

__all__ = ["ALWAYS", "INHERITED", "MARKS", "PROTOCOL", "environment"]

Inherited = bool | tuple[str, ...] | None
"""All, nothing, these names beside the table's, or the table's alone."""

INHERITED: Mapping[str, str] = {
    "PATH": "to find git, ripgrep and the tools that Bash runs",
    "HOME": "the login and the user's own configuration live there",
    "USER": "who runs this, for tools that ask",
    "LOGNAME": "the same, by its older name",
    "SHELL": "which shell the Bash tool starts",
    "LANG": "character encoding",
    "LC_*": "character encoding",
    "TZ": "dates and times in answers",
    "TERM": "programs that look for a terminal type",
    "TMPDIR": "where temporary files may be written",
    "XDG_*": "the user's configuration and cache directories",
    "HTTP_PROXY": "the only way out of some networks",
    "HTTPS_PROXY": "the only way out of some networks",
    "ALL_PROXY": "the only way out of some networks",
    "NO_PROXY": "what must not go through the proxy",
    "http_proxy": "the only way out of some networks",
    "https_proxy": "the only way out of some networks",
    "all_proxy": "the only way out of some networks",
    "no_proxy": "what must not go through the proxy",
    "SSL_CERT_FILE": "private certificate authorities",
    "SSL_CERT_DIR": "private certificate authorities",
    "NODE_EXTRA_CA_CERTS": "private certificate authorities",
    "REQUESTS_CA_BUNDLE": "private certificate authorities, for Python tools",
    "ANTHROPIC_API_KEY": "a login",
    "ANTHROPIC_AUTH_TOKEN": "a login",
    "ANTHROPIC_BASE_URL": "the API to use with that login",
    "CLAUDE_CODE_OAUTH_TOKEN": "a login",
    "CLAUDE_CONFIG_DIR": "where a login is kept, if not in HOME",
    "CLAUDE_CODE_USE_*": "which cloud to reach the model through",
    "ANTHROPIC_BEDROCK_BASE_URL": "the model through Amazon Bedrock",
    "AWS_*": "credentials and region for Amazon Bedrock",
    "ANTHROPIC_VERTEX_*": "the model through Google Vertex AI",
    "CLOUD_ML_REGION": "region for Google Vertex AI",
    "GOOGLE_APPLICATION_CREDENTIALS": "credentials for Google Vertex AI",
    "GOOGLE_CLOUD_PROJECT": "project for Google Vertex AI",
    "ANTHROPIC_FOUNDRY_*": "the model through Microsoft Foundry",
}

_NEEDS_A_CLOUD: Mapping[str, tuple[str, ...]] = {
    "CLAUDE_CODE_USE_BEDROCK": ("AWS_*", "ANTHROPIC_BEDROCK_BASE_URL"),
    "CLAUDE_CODE_USE_VERTEX": (
        "ANTHROPIC_VERTEX_*",
        "CLOUD_ML_REGION",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_CLOUD_PROJECT",
    ),
    "CLAUDE_CODE_USE_FOUNDRY": ("ANTHROPIC_FOUNDRY_*",),
}
"""Cloud credentials open much else: they come along only with the switch that needs them."""

MARKS = frozenset(
    {
        "AI_AGENT",
        "CLAUDECODE",
        "CLAUDE_CODE_CHILD_SESSION",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_EXECPATH",
        "CLAUDE_CODE_MESSAGING_SOCKET",
        "CLAUDE_CODE_MESSAGING_TOKEN",
        "CLAUDE_CODE_SESSION_ATTENDED",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_SSE_PORT",
        "CLAUDE_EFFORT",
        "CLAUDE_PID",
    }
)
"""What a surrounding Claude Code session sets; the inner one would behave oddly with it."""

PROTOCOL: Mapping[str, str] = {
    # Turn settlement needs to know when the CLI is idle.
    "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1",
    # A refused start then says on stdout why, in a form made for programs.
    "CLAUDE_CODE_STARTUP_FAILURE_RESULTS": "1",
}


ALWAYS: Mapping[str, str] = {"CLAUDE_CODE_ENTRYPOINT": "sdk-py", **PROTOCOL}
"""What every CLI of ours gets; only the label of who drives it may be set otherwise."""


def environment(
    host: Mapping[str, str], inherit: Inherited, added: Mapping[str, str]
) -> dict[str, str]:
    """The CLI's whole environment: what it inherits, what we always set, what the caller adds."""
    for name in PROTOCOL.keys() & added.keys():
        if added[name] != PROTOCOL[name]:
            raise UsageError(f"env[{name!r}]", added[name], f"{PROTOCOL[name]!r}, or left out")
    there = dict(host)
    switches = {**there, **added}
    inherited = {name: value for name, value in there.items() if _may_pass(name, switches, inherit)}
    return {**inherited, **ALWAYS, **added}


def _may_pass(name: str, switches: Mapping[str, str], inherit: Inherited) -> bool:
    if name in MARKS or inherit is False:
        return False
    if inherit is True or (inherit and _fits(name, inherit)):
        return True
    is_listed, clouds = _standing(name)
    if not clouds:
        return is_listed
    return is_listed and any(switches.get(each, "").lower() not in _OFF for each in clouds)


# The same few names come with every session.
@lru_cache(maxsize=1024)
def _standing(name: str) -> tuple[bool, tuple[str, ...]]:
    """Whether the table has `name`, and the switches of which it needs one."""
    clouds = (switch for switch, names in _NEEDS_A_CLOUD.items() if _fits(name, names))
    return _fits(name, INHERITED), tuple(clouds)


_OFF = frozenset({"", "0", "false", "no", "off"})


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
