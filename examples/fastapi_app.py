"""A FastAPI application with a login of its own, and the console of steersman below /agents/.

Run it with `uvicorn --factory examples.fastapi_app:make_app`; your page posts name and password to
/login. Each user sees the sessions that they began. It uses your own login of Claude Code.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException, Response
from pydantic import BaseModel
from starlette.requests import HTTPConnection

from steersman import Agent
from steersman.web import Bridge, Viewer

PASSWORDS = {"ann": "sesame", "bob": "open"}  # yours are hashed, and in a database


class Login(BaseModel):
    """What the login form sends."""

    name: str
    password: str


def make_app(agent: Agent | None = None, journals: str = "sessions") -> FastAPI:
    """Return the application, which keeps its sessions in the directory `journals`."""
    users: dict[str, str] = {}

    async def who(connection: HTTPConnection) -> Viewer | None:
        name = users.get(connection.cookies.get("login", ""))
        if name is None:
            return None
        return Viewer(name, lambda _, session: not session or bridge.began(session) == name)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncGenerator[None, None]:
        async with bridge:
            yield

    bridge = Bridge(agent or Agent(), journals=journals, authenticate=who)
    app = FastAPI(lifespan=lifespan)
    app.mount("/agents", bridge)

    @app.post("/login", status_code=204)
    async def log_in(given: Login, response: Response) -> None:
        if not hmac.compare_digest(PASSWORDS.get(given.name, ""), given.password):
            raise HTTPException(401, "no such user, or another password")
        token = secrets.token_urlsafe()
        users[token] = given.name
        response.set_cookie("login", token, httponly=True, samesite="strict")

    return app
