"""Which variables of this process the CLI inherits, and why.

A variable that is not in `INHERITED` is not passed on: a secret of the host program must not be
within reach of the agent, which could print it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache

from steersman.errors import UsageError

Inherited = bool | tuple[str, ...] | None
"""`Options.inherit_env`: everything, nothing, names beside the table, or the table alone."""

INHERITED: Mapping[str, str] = {
    "PATH": "to find git, ripgrep and the programs that Bash runs",
    "HOME": "where the login and the user's configuration are stored",
    "USER": "the user's name, for programs that need it",
    "LOGNAME": "the user's name, under its older name",
    "SHELL": "the shell that the Bash tool starts",
    "LANG": "character encoding",
    "LC_*": "character encoding",
    "TZ": "dates and times in answers",
    "TERM": "the terminal type, for programs that need it",
    "TMPDIR": "where temporary files may be written",
    "XDG_*": "the user's configuration and cache directories",
    "HTTP_PROXY": "the proxy, without which some networks have no way out",
    "HTTPS_PROXY": "the proxy, without which some networks have no way out",
    "ALL_PROXY": "the proxy, without which some networks have no way out",
    "NO_PROXY": "hosts that are reached without the proxy",
    "http_proxy": "the proxy, without which some networks have no way out",
    "https_proxy": "the proxy, without which some networks have no way out",
    "all_proxy": "the proxy, without which some networks have no way out",
    "no_proxy": "hosts that are reached without the proxy",
    "SSL_CERT_FILE": "private certificate authorities",
    "SSL_CERT_DIR": "private certificate authorities",
    "NODE_EXTRA_CA_CERTS": "private certificate authorities",
    "REQUESTS_CA_BUNDLE": "private certificate authorities, for Python tools",
    "ANTHROPIC_API_KEY": "a login",
    "ANTHROPIC_AUTH_TOKEN": "a login",
    "ANTHROPIC_BASE_URL": "the API to use with that login",
    "CLAUDE_CODE_OAUTH_TOKEN": "a login",
    "CLAUDE_CONFIG_DIR": "where a login is kept, if not in HOME",
    "CLAUDE_CODE_USE_*": "which cloud provider serves the model",
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
"""Cloud credentials give access to much else, so they need the switch that uses them."""

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
"""Variables that Claude Code sets for its child processes.

If this program runs inside such a session, its own CLI must not inherit them: it would behave as a
child of that session.
"""

PROTOCOL: Mapping[str, str] = {
    # A turn is settled when the CLI reports that it is idle.
    "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1",
    # A CLI that refuses to start then reports the reason as JSON on stdout.
    "CLAUDE_CODE_STARTUP_FAILURE_RESULTS": "1",
}


CHANGEABLE: Mapping[str, str] = {
    # The CLI knows this label. For one that it does not know, the model has one more subagent.
    "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
    # Asks older CLIs for their state. Which release runs is known only from the handshake, so
    # all get it; those that know the variable of `PROTOCOL` report their state without it.
    "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1",
}
"""Variables that every CLI gets, unless the caller sets them."""

ALWAYS: Mapping[str, str] = {**CHANGEABLE, **PROTOCOL}
"""Variables that every CLI gets."""


def environment(
    host: Mapping[str, str], inherit: Inherited, added: Mapping[str, str]
) -> dict[str, str]:
    """Return the whole environment of the CLI: inherited, always set, and added by the caller.

    Raises `UsageError` if `added` changes a variable that the protocol needs.
    """
    for name in PROTOCOL.keys() & added.keys():
        if added[name] != PROTOCOL[name]:
            raise UsageError(
                f"env[{name!r}]",
                added[name],
                f"{PROTOCOL[name]!r}, or no value: steersman needs it",
            )
    there = dict(host)
    switches = {**there, **added}
    inherited = {name: value for name, value in there.items() if _may_pass(name, switches, inherit)}
    return {**inherited, **ALWAYS, **added}


def _may_pass(name: str, switches: Mapping[str, str], inherit: Inherited) -> bool:
    if name in MARKS or inherit is False:
        return False
    if inherit is True or (inherit and _fits(name, inherit)):
        return True
    is_listed, clouds = _listed(name)
    if not clouds:
        return is_listed
    return is_listed and any(switches.get(each, "").lower() not in _OFF for each in clouds)


# Every session looks up the same few names.
@lru_cache(maxsize=1024)
def _listed(name: str) -> tuple[bool, tuple[str, ...]]:
    """Return whether `INHERITED` has `name`, and the switches of which one must be on."""
    clouds = (switch for switch, names in _NEEDS_A_CLOUD.items() if _fits(name, names))
    return _fits(name, INHERITED), tuple(clouds)


_OFF = frozenset({"", "0", "false", "no", "off"})


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
