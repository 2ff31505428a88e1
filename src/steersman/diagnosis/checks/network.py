"""Do the variables about proxies and certificates make sense."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from steersman.diagnosis.machine import Machine
from steersman.diagnosis.values import Check, Finding, failed, ok, skipped

API = "https://api.anthropic.com"
PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
FILES = ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE")
PATIENCE = 2.0
PORTS = {"http": 80, "https": 443}
BEGIN = b"-----BEGIN"


async def _run(machine: Machine) -> Iterable[Finding]:
    for name in FILES:
        if (wrong := _wrong_file(machine.env.get(name, ""))) is not None:
            return failed(f"{name} names a file that {wrong}", f"unset {name}, or mend the file")
    api = urlsplit(machine.env.get("ANTHROPIC_BASE_URL") or API)
    if api.scheme not in PORTS or not api.hostname:
        return failed("ANTHROPIC_BASE_URL is not the address of an API", "unset it, or mend it")
    for name in PROXIES:
        value = machine.env.get(name, "")
        if value and not _is_proxy(value):
            return failed(
                f"{name} is not the address of a proxy", f"set {name}=http://host:port, or unset it"
            )
    return await _reaching(api.hostname, machine)


async def _reaching(host: str, machine: Machine) -> Iterable[Finding]:
    """Return how the API is reached."""
    name = next((each for each in PROXIES if machine.env.get(each)), None)
    if name is None:
        return skipped(f"no proxy; the API is {host}")
    if _is_direct(host, machine.env):
        return ok(f"{name} is set; {host} is reached without it")
    proxy = urlsplit(machine.env[name])
    if (refused := await _refusal(proxy)) is not None:
        return failed(
            f"the proxy {proxy.hostname}:{_port(proxy)} of {name} {refused}",
            f"start the proxy, or unset {name}",
        )
    return ok(f"the API is reached through {proxy.hostname}:{_port(proxy)} ({name})")


def _wrong_file(path: str) -> str | None:
    if not path:
        return None
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return None if BEGIN in content else "holds no certificate"


def _is_proxy(value: str) -> bool:
    try:
        found = urlsplit(value)
        return found.scheme in PORTS and bool(found.hostname) and _port(found) > 0
    except ValueError:
        return False


def _port(address: SplitResult) -> int:
    return address.port or PORTS.get(address.scheme, 0)


def _is_direct(host: str, env: dict[str, str]) -> bool:
    """Whether NO_PROXY names the host, or a domain that it is in."""
    listed = (env.get("NO_PROXY") or env.get("no_proxy") or "").split(",")
    names = [each.strip().lstrip("*").lstrip(".") for each in listed if each.strip()]
    return any(each in ("", host) or host.endswith(f".{each}") for each in names)


async def _refusal(proxy: SplitResult) -> str | None:
    try:
        async with asyncio.timeout(PATIENCE):
            _, writer = await asyncio.open_connection(proxy.hostname, _port(proxy))
    except TimeoutError:
        return f"did not answer within {PATIENCE:g} s"
    except OSError as error:
        return f"cannot be reached: {error.strerror or type(error).__name__}"
    writer.close()
    return None


NETWORK = Check("network", _run)
