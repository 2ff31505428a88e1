"""A FastAPI application with a login of its own, and the console of steersman below /agents/.

Run it with `uvicorn --timeout-graceful-shutdown 10 --factory examples.fastapi_app:make_app`; your
page posts name and password to /login. Each user has a directory with an agent of their own, and
sees the sessions that they began. The journals are outside of these directories. It uses your own
login of Claude Code.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, HTTPException, Request, Response
from pydantic import BaseModel
from starlette.requests import HTTPConnection

from steersman import Agent
from steersman.web import Bridge, Viewer

PASSWORDS = {"ann": "sesame", "bob": "open"}  # yours are hashed, and in a database


class Login(BaseModel):
    """What the login form sends."""

    name: str
    password: str


def agent_in(folder: Path) -> Agent:
    """Return an agent that works in the directory of a user."""
    return Agent(cwd=folder)


def make_app(
    journals: str = "sessions",
    projects: str = "projects",
    make_agent: Callable[[Path], Agent] = agent_in,
) -> FastAPI:
    """Return the application: sessions in the directory `journals`, work of users in `projects`."""
    users: dict[str, str] = {}
    agents: dict[str, Agent] = {}
    for name in PASSWORDS:
        folder = Path(projects).absolute() / name
        folder.mkdir(parents=True, exist_ok=True)
        agents[name] = make_agent(folder)

    async def who(connection: HTTPConnection) -> Viewer | None:
        name = users.get(connection.cookies.get("login", ""))
        if name is None:
            return None
        return Viewer(name, lambda _, session: not session or bridge.began(session) == name, [name])

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncGenerator[None, None]:
        async with bridge:
            yield

    bridge = Bridge(agents, journals=journals, authenticate=who)
    app = FastAPI(lifespan=lifespan)
    app.mount("/agents", bridge)

    @app.post("/login", status_code=204)
    async def log_in(given: Login, response: Response) -> None:
        # For a name that is not there, a password that nobody knows: never an empty one.
        expected = PASSWORDS.get(given.name, secrets.token_urlsafe())
        if not hmac.compare_digest(expected.encode(), given.password.encode()):
            raise HTTPException(401, "no such user, or another password")
        token = secrets.token_urlsafe()
        users[token] = given.name
        response.set_cookie("login", token, httponly=True, samesite="strict")

    @app.post("/logout", status_code=204)
    async def log_out(request: Request, response: Response) -> None:
        name = users.pop(request.cookies.get("login", ""), None)
        response.delete_cookie("login")
        if name is not None:
            bridge.disconnect(name)

    return app
