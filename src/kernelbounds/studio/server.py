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
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

from kernelbounds.display import page_style
from kernelbounds.errors import InputError, KernelBoundsError, MissingExtraError
from kernelbounds.studio import forms, sections
from kernelbounds.studio.desk import Desk, OpenStudy

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
Answers = dict[str, list[str]]


class OnlyFromHere(BaseHTTPMiddleware):
    """Refuse requests without the secret, for another host, or from another site."""

    def __init__(self, app: Any, token: str, port: int) -> None:
        super().__init__(app)
        self.token, self.cookie = token, f"{COOKIE}-{port}"
        self.hosts = {f"{HOST}:{port}", f"localhost:{port}", "testserver"}

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        """Answer the request, or refuse it."""
        if request.headers.get("host") not in self.hosts:
            return PlainTextResponse("This is not the host of the studio.", 421)
        offered = request.query_params.get("token")
        if offered is not None and secrets.compare_digest(offered, self.token):
            response: Response = RedirectResponse(request.url.path, 303)
            response.set_cookie(self.cookie, self.token, httponly=True, samesite="strict")
            return response
        if not secrets.compare_digest(request.cookies.get(self.cookie, ""), self.token):
            return PlainTextResponse(
                "Open the address that kernelbounds studio has printed: it has a token.", 403
            )
        if request.method != "GET" and not secrets.compare_digest(
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


class Studio:
    """The pages of the studio and their addresses, for the studies of a desk."""

    def __init__(self, desk: Desk, token: str) -> None:
        self.desk, self._secret = desk, token[::-1]

    def routes(self) -> list[Any]:
        """Return all addresses and what answers them."""
        of_study = {
            "": self.page,
            "/revision": self.revision,
            "/report.html": self.report,
            "/observations.csv": self.table,
            **{f"/{name}": self.section(make) for name, make in sections.SECTIONS.items()},
        }
        edits = {f"/{name}": self.edit(change) for name, change in forms.EDITS.items()}
        gets = {"/": self.index, "/new": self.new, "/new/input": self.new_input}
        gets |= {f"/study/{{name}}{path}": endpoint for path, endpoint in of_study.items()}
        posts = {"/new": self.create, "/new/preview": self.preview}
        posts |= {f"/study/{{name}}{path}": endpoint for path, endpoint in edits.items()}
        return [
            *(Route(path, self._answer(endpoint)) for path, endpoint in gets.items()),
            *(Route(p, self._answer(endpoint), methods=["POST"]) for p, endpoint in posts.items()),
            Route("/study/{name}/import", self.import_runs, methods=["POST"]),
            Route("/page.css", lambda _: Response(page_style(), media_type="text/css")),
            Route("/mark.svg", lambda _: Response(MARK.read_bytes(), media_type="image/svg+xml")),
            Mount("/static", StaticFiles(packages=[("kernelbounds.studio", "static")])),
        ]

    def _answer(self, endpoint: Callable[[Request, Answers], Response]) -> Any:
        """Answer in a thread; the library's own errors become one sentence on the page."""

        async def answer(request: Request) -> Response:
            text = await request.body() if request.method == "POST" else request.url.query
            given = parse_qs(text if isinstance(text, str) else text.decode(), True)
            return await self._in_thread(endpoint, request, given)

        return answer

    async def _in_thread(self, endpoint: Callable[..., Response], *arguments: Any) -> Response:
        try:
            return await run_in_threadpool(endpoint, *arguments)
        except KernelBoundsError as error:
            return self._error(str(error))

    def _error(self, said: str) -> Response:
        return HTMLResponse(sections.render("error.html", said=said), 422)

    def _html(self, template: str, **values: Any) -> Response:
        return HTMLResponse(sections.render(template, secret=self._secret, **values))

    def _of_study(self, one: OpenStudy, template: str, **values: Any) -> Response:
        page = sections.render_of_study(one, template, secret=self._secret, **values)
        return HTMLResponse(page)

    def _open(self, request: Request) -> OpenStudy:
        return self.desk.study(request.path_params["name"])

    # --- all studies

    def index(self, request: Request, given: Answers) -> Response:
        """List all studies."""
        return self._html("index.html", studies=self.desk.listed(), folder=self.desk.folder)

    def new(self, request: Request, given: Answers) -> Response:
        """Ask the questions that state a problem."""
        return self._html("new.html", **forms.CHOICES)

    def new_input(self, request: Request, given: Answers) -> Response:
        """Return the questions about one more input."""
        return self._html("new_input.html", **forms.CHOICES)

    def preview(self, request: Request, given: Answers) -> Response:
        """Draw the functions that the answers so far admit."""
        return self._html("preview.html", **forms.preview(given))

    def create(self, request: Request, given: Answers) -> Response:
        """Make the study, and go to its page."""
        name = self.desk.add(forms.create(given, self.desk.folder))
        return Response(headers={"HX-Redirect": f"/study/{quote(name)}"})

    # --- one study

    def page(self, request: Request, given: Answers) -> Response:
        """Show the page of a study; its sections are fetched one by one."""
        one = self._open(request)
        soon = len(one.study) > 0 and one.computes and not one.has("status")
        return self._of_study(one, "study.html", soon=soon)

    def revision(self, request: Request, given: Answers) -> Response:
        """Tell the page whether the study has changed since it looked last."""
        one = self._open(request)
        if given.get("seen") == [one.revision]:
            return Response(status_code=204)
        found = self._of_study(one, "revision.html")
        found.headers["HX-Trigger"] = "changed"
        return found

    def section(self, make: Callable[..., tuple[str, dict[str, Any]]]) -> Any:
        """Return an endpoint that shows a section."""

        def show(request: Request, given: Answers) -> Response:
            one = self._open(request)
            template, values = make(one, given)
            return self._of_study(one, template, **values)

        return show

    def edit(self, change: Callable[[OpenStudy, Answers], str]) -> Any:
        """Return an endpoint that changes the study, says what it did, and refreshes the page."""

        def changed(request: Request, given: Answers) -> Response:
            one = self._open(request)
            return self._done(one, change(one, given))

        return changed

    def _done(self, one: OpenStudy, said: str) -> Response:
        """Say what was done; the page then fetches its sections anew."""
        found = self._of_study(one, "done.html", said=said)
        found.headers["HX-Trigger-After-Settle"] = "changed"
        return found

    async def import_runs(self, request: Request) -> Response:
        """Add the runs of a table that was dropped on the page; the body is the file."""
        if int(request.headers.get("content-length") or 0) > LARGEST_UPLOAD:
            return self._error("the file has more than 50 MB; use kernelbounds study import.")
        body, given = await request.body(), parse_qs(request.url.query)
        return await self._in_thread(self._imported, request, body, given)

    def _imported(self, request: Request, body: bytes, given: Answers) -> Response:
        one = self._open(request)
        name = Path((given.get("file") or ["table.csv"])[0].replace("\\", "/")).name
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / (name or "table.csv")
            path.write_bytes(body)
            try:
                said = forms.import_runs(one, path, given)
            except KernelBoundsError as error:  # The user knows the file by its name alone.
                raise InputError(str(error).replace(str(path), path.name)) from error
        return self._done(one, said)

    def report(self, request: Request, given: Answers) -> Response:
        """Return the page of a study as one file."""
        one = self._open(request)
        return _attachment(sections.report(one), f"{one.name}.html", "text/html")

    def table(self, request: Request, given: Answers) -> Response:
        """Return all observations as a CSV file."""
        one = self._open(request)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "observations.csv"
            one.study.export(path)
            return _attachment(path.read_bytes(), f"{one.name}.csv", "text/csv")


def _attachment(content: str | bytes, name: str, media_type: str) -> Response:
    header = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}"}
    return Response(content, media_type=media_type, headers=header)


def application(desk: Desk, token: str, port: int) -> Starlette:
    """Return the application, which answers requests with the right token only."""
    guard = Middleware(OnlyFromHere, token=token, port=port)
    return Starlette(routes=Studio(desk, token).routes(), middleware=[guard])


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
