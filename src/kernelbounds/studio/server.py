"""The server of the studio: on this computer alone, with a secret in the address.

Who may do what
---------------
The server listens on 127.0.0.1 only. The address that it prints has a token, which becomes a cookie
that no other site can use (SameSite=Strict). Requests for another host name are refused, so that no
web site can point its own name here. Whatever changes something must also carry the header
``X-Studio``, which a form or a script of another site cannot send.
"""

from __future__ import annotations

import secrets
import socket
import tempfile
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

from kernelbounds.display import page_style
from kernelbounds.errors import InputError, KernelBoundsError, MissingExtraError
from kernelbounds.studio import forms, sections
from kernelbounds.studio.desk import Desk, OpenStudy
from kernelbounds.studio.forms import Answers
from kernelbounds.studio.sections import Section

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.middleware import Middleware
    from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles
except ImportError as error:
    raise MissingExtraError("The studio", "studio") from error

HOST = "127.0.0.1"
COOKIE = "kernelbounds-studio"
LARGEST_UPLOAD = 50_000_000  # bytes; a table of a million rows has fewer
# Scripts come from this server alone; styles may be inline, as they are in pictures.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
MARK = files("kernelbounds.display").joinpath("mark.svg")
OF_STUDY = "/study/{name}"


class OnlyFromHere(BaseHTTPMiddleware):
    """Refuse requests without the secret, for another host, or from another site."""

    def __init__(self, app: Any, token: str, port: int) -> None:
        super().__init__(app)
        self.token, self.cookie = token, f"{COOKIE}-{port}"
        self.hosts = {f"{HOST}:{port}", f"localhost:{port}"}

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        """Answer the request, or refuse it."""
        if request.headers.get("host") not in self.hosts:
            return PlainTextResponse("This is not the host of the studio.", 421)
        offered = request.query_params.get("token")
        if offered is not None and _same(offered, self.token):
            response: Response = RedirectResponse(request.url.path, 303)
            response.set_cookie(self.cookie, self.token, httponly=True, samesite="strict")
            return response
        if not _same(request.cookies.get(self.cookie, ""), self.token):
            return PlainTextResponse(
                "Open the address that kernelbounds studio has printed: it has a token.", 403
            )
        if request.method != "GET" and not _same(
            request.headers.get("x-studio", ""), self.token[::-1]
        ):
            return PlainTextResponse("This did not come from a page of the studio.", 403)
        response = await call_next(request)
        response.headers["Content-Security-Policy"] = POLICY
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["X-Content-Type-Options"] = "nosniff"
        if not request.url.path.startswith("/static"):
            response.headers["Cache-Control"] = "no-store"
        return response


def _same(offered: str, secret: str) -> bool:
    """Compare with a secret in a time that says nothing about it."""
    return secrets.compare_digest(offered.encode(), secret.encode())


class Studio:
    """The pages of the studio and their addresses, for the studies of a desk."""

    def __init__(self, desk: Desk, token: str) -> None:
        self.desk, self._secret = desk, token[::-1]

    def routes(self) -> list[Any]:
        """Return all addresses and what answers them."""
        gets: dict[str, Callable[..., Response]] = {
            "/": self.index,
            "/new": self.new,
            "/new/input": self.new_input,
            OF_STUDY: self.page,
            f"{OF_STUDY}/revision": self.revision,
            f"{OF_STUDY}/report.html": self.report,
            f"{OF_STUDY}/observations.csv": self.table,
        }
        for name, make in sections.SECTIONS.items():
            gets[f"{OF_STUDY}/{name}"] = partial(self.section, make)
        posts: dict[str, Callable[..., Response]] = {
            "/new": self.create,
            "/new/preview": self.preview,
        }
        for name, change in forms.EDITS.items():
            posts[f"{OF_STUDY}/{name}"] = partial(self.edit, change)
        return [
            *(Route(path, self._answer(endpoint)) for path, endpoint in gets.items()),
            *(Route(p, self._answer(endpoint), methods=["POST"]) for p, endpoint in posts.items()),
            Route(f"{OF_STUDY}/import", self.import_runs, methods=["POST"]),
            Route("/page.css", lambda _: Response(page_style(), media_type="text/css")),
            Route("/mark.svg", lambda _: Response(MARK.read_bytes(), media_type="image/svg+xml")),
            Mount("/static", StaticFiles(packages=[("kernelbounds.studio", "static")])),
        ]

    def _answer(self, endpoint: Callable[..., Response]) -> Any:
        """Return a handler of requests that calls an endpoint with the study, if any, and answers.

        The answers are those of a form, or of the query.
        """

        async def answer(request: Request) -> Response:
            text = await request.body() if request.method == "POST" else request.url.query
            given = parse_qs(text if isinstance(text, str) else text.decode(), True)
            return await self._in_thread(request, endpoint, given)

        return answer

    async def _in_thread(
        self, request: Request, endpoint: Callable[..., Response], *arguments: Any
    ) -> Response:
        """Call an endpoint in a thread, with the study in the address, if there is one."""

        def called() -> Response:
            of_study = [self.desk.study(name) for name in request.path_params.values()]
            return endpoint(*of_study, *arguments)

        return await run_in_threadpool(called)

    def _html(self, template: str, **values: Any) -> Response:
        return HTMLResponse(sections.render(template, secret=self._secret, **values))

    def _of_study(self, one: OpenStudy, template: str, **values: Any) -> Response:
        page = sections.render_of_study(one, template, secret=self._secret, **values)
        return HTMLResponse(page)

    # --- all studies

    def index(self, given: Answers) -> Response:
        """List all studies."""
        return self._html("index.html", studies=self.desk.listed(), folder=self.desk.folder)

    def new(self, given: Answers) -> Response:
        """Ask the questions that state a problem."""
        return self._html("new.html", **forms.CHOICES)

    def new_input(self, given: Answers) -> Response:
        """Return the questions about one more input."""
        return self._html("new_input.html", **forms.CHOICES)

    def preview(self, given: Answers) -> Response:
        """Draw the functions that the answers so far admit."""
        return self._html("preview.html", **forms.preview(given))

    def create(self, given: Answers) -> Response:
        """Make the study, and go to its page."""
        name = self.desk.add(forms.create(given, self.desk.folder))
        return Response(headers={"HX-Redirect": f"/study/{quote(name)}"})

    # --- one study

    def page(self, one: OpenStudy, given: Answers) -> Response:
        """Show the page of a study; its sections are fetched one by one."""
        soon = len(one.study) > 0 and one.computes and not one.has("status")
        return self._of_study(one, "study.html", soon=soon)

    def revision(self, one: OpenStudy, given: Answers) -> Response:
        """Tell the page whether the study has changed since it looked last."""
        if given.get("seen") == [one.study.stamp]:
            return Response(status_code=204)
        found = self._of_study(one, "revision.html")
        found.headers["HX-Trigger"] = "changed"
        return found

    def section(self, make: Callable[..., Section], one: OpenStudy, given: Answers) -> Response:
        """Show a section."""
        template, values = make(one, given)
        return self._of_study(one, template, **values)

    def edit(self, change: Callable[..., str], one: OpenStudy, *given: Any) -> Response:
        """Change the study and say what was done; the page then fetches its sections anew."""
        found = self._of_study(one, "done.html", said=change(one, *given))
        found.headers["HX-Trigger-After-Settle"] = "changed"
        return found

    async def import_runs(self, request: Request) -> Response:
        """Add the runs of a table that was dropped on the page; the body is the file."""
        if int(request.headers.get("content-length") or 0) > LARGEST_UPLOAD:
            raise InputError("the file has more than 50 MB; use kernelbounds study import.")
        body, given = await request.body(), parse_qs(request.url.query)
        return await self._in_thread(request, partial(self.edit, _imported), body, given)

    def report(self, one: OpenStudy, given: Answers) -> Response:
        """Return the page of a study as one file."""
        return _attachment(sections.report(one), f"{one.name}.html", "text/html")

    def table(self, one: OpenStudy, given: Answers) -> Response:
        """Return all observations as a CSV file."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "observations.csv"
            one.study.export(path)
            return _attachment(path.read_bytes(), f"{one.name}.csv", "text/csv")


def _imported(one: OpenStudy, body: bytes, given: Answers) -> str:
    """Add the runs of a table to a study, and say how many there were."""
    name = Path((given.get("file") or ["table.csv"])[0].replace("\\", "/")).name
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("table.csv" if name in ("", "..") else name)
        path.write_bytes(body)
        try:
            return forms.import_runs(one, path, given)
        except KernelBoundsError as error:  # The user knows the file by its name alone.
            raise InputError(str(error).replace(str(path), path.name)) from error


def _attachment(content: str | bytes, name: str, media_type: str) -> Response:
    header = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}"}
    return Response(content, media_type=media_type, headers=header)


def application(desk: Desk, token: str, port: int) -> Starlette:
    """Return the application, which answers requests with the right token only."""
    return Starlette(
        routes=Studio(desk, token).routes(),
        middleware=[Middleware(OnlyFromHere, token=token, port=port)],
        exception_handlers={KernelBoundsError: _refused},
    )


def _refused(request: Request, error: Exception) -> Response:
    """Answer with what an error of the library says, as one sentence for the page."""
    return HTMLResponse(sections.render("error.html", said=str(error)), 422)


def serve(
    paths: list[Path], port: int, started: Callable[[str], object], warn: Callable[[str], object]
) -> None:
    """Serve the studies until Ctrl-C; ``started`` gets the address once the page is there.

    A port of 0 is any that is free.
    """
    desk, token = Desk(paths), secrets.token_urlsafe(24)
    for line in desk.listed():
        if "problem" in line:
            warn(line["problem"])
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, port))
        except OSError as error:
            raise InputError(
                f"port {port} cannot be used ({error.strerror}); choose another with --port."
            ) from None
        real = listening.getsockname()[1]
        names = list(desk.paths())
        start = f"/study/{quote(names[0])}" if len(names) == 1 else "/"
        config = uvicorn.Config(application(desk, token, real), log_level="warning", lifespan="off")

        class Server(uvicorn.Server):
            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                started(f"http://{HOST}:{real}{start}?token={token}")

        try:
            Server(config).run([listening])
        finally:
            desk.close()
