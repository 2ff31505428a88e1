"""The stores of the examples keep the rules, on a real Redis and on a server that speaks S3."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from examples.redis_store import RedisStore
from examples.s3_store import S3Store
from steersman.testing.stores import check

PATIENCE = 30.0
WITHOUT_SUMMARIES = {"summaries"}


@pytest.fixture
def redis_socket(tmp_path: Path) -> Generator[Path]:
    """The socket of a Redis of this test."""
    program = shutil.which("redis-server")
    if program is None or find_spec("redis") is None:
        missing = "redis-server" if program is None else "the package redis"
        assert "CI" not in os.environ, f"CI must have {missing}: see .ci/run"
        pytest.skip(f"no {missing} on this machine")
    place = tmp_path / "socket"
    settings = ["--port", "0", "--unixsocket", str(place), "--save", "", "--dir", str(tmp_path)]
    with subprocess.Popen([program, *settings], stdout=subprocess.DEVNULL) as server:
        try:
            until = time.monotonic() + PATIENCE
            while not place.exists():
                assert server.poll() is None
                assert time.monotonic() < until, "Redis did not come up"
                time.sleep(0.01)
            yield place
        finally:
            server.kill()


async def test_the_redis_store_keeps_every_rule_on_a_real_redis(redis_socket: Path) -> None:
    redis = import_module("redis.asyncio")

    report = await check(
        lambda: RedisStore(redis.Redis(unix_socket_path=str(redis_socket))), sessions=200
    )

    assert report.is_good, report
    assert {each.rule for each in report.skipped} == WITHOUT_SUMMARIES


@pytest.fixture
def s3_client(tmp_path: Path) -> Generator[Any]:
    """A client of an S3 server of this test: moto's, which is too large for the extra `dev`."""
    if find_spec("moto") is None or find_spec("boto3") is None:
        pytest.skip("needs pip install 'moto[server]' boto3 (290 MB), which CI does not have")
    port = 20000 + os.getpid() % 20000
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            until = time.monotonic() + PATIENCE
            while not _answers(url):
                assert server.poll() is None
                assert time.monotonic() < until, "the S3 server did not come up"
                time.sleep(0.05)
            names = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
            client = import_module("boto3").client(
                "s3", endpoint_url=url, region_name="us-east-1", **names
            )
            client.create_bucket(Bucket="sessions")
            yield client
        finally:
            server.kill()


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=5):
            return True
    except (URLError, OSError):
        return False


@pytest.mark.filterwarnings("ignore")
async def test_the_s3_store_keeps_every_rule_on_a_server_that_speaks_s3(s3_client: Any) -> None:
    report = await check(lambda: S3Store(s3_client, "sessions"), sessions=1100)

    assert report.is_good, report
    assert {each.rule for each in report.skipped} == WITHOUT_SUMMARIES
