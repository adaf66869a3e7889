# SPDX-License-Identifier: Apache-2.0
"""A small server of the page, for this machine alone: who has its address, which holds a secret, may rate."""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mt_nodes.base.errors import UsageError
from mt_nodes.runs.review.case_files import case_file
from mt_nodes.runs.review.ratings import Rating, Ratings
from mt_nodes.runs.review.review_page import SERVED, policy, served_page
from mt_nodes.runs.review.sample import Sample

HOST = "127.0.0.1"
#: A rating with the longest name and comment, each character escaped, takes less.
MOST_BYTES = 16 * 1024
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class ReviewServer(ThreadingHTTPServer):
    """Serves the page and its cases, and takes ratings."""

    daemon_threads = True

    def __init__(self, results_dir: Path, sample: Sample, ratings: Ratings, port: int = 0) -> None:
        """Bind. Raises UsageError: the port is taken."""
        try:
            super().__init__((HOST, port), _Handler)
        except (OSError, OverflowError) as error:
            raise UsageError(f"--port {port}: cannot be listened on: {error}; choose another one, or none") from error
        self.token = secrets.token_urlsafe(24)
        self.page = served_page(sample).encode()
        self.files = {case.id: case_file(results_dir, case.id) for case in sample.cases}
        self.ratings, self.lock = ratings, threading.Lock()

    @property
    def hosts(self) -> tuple[str, str]:
        """What a browser may call this server."""
        return f"{HOST}:{self.server_port}", f"localhost:{self.server_port}"

    @property
    def url(self) -> str:
        """Where raters go."""
        return f"http://{self.hosts[0]}/{self.token}/"


class _Refused(Exception):
    """A request that is not answered; of what a status and words say."""

    def __init__(self, status: HTTPStatus, words: str = "") -> None:
        super().__init__(words or status.phrase)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: ReviewServer
    server_version, sys_version = "mt", ""
    #: Who says nothing for so long is not waited for, in seconds.
    timeout = 60

    def do_GET(self) -> None:
        self._answered(self._get)

    def do_POST(self) -> None:
        self._answered(self._post)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the address, which holds the secret, would be in it."""

    def _answered(self, answer: Any) -> None:
        try:
            body, kind = answer(self._requested_path())
            self._send(HTTPStatus.OK, body, kind)
        except _Refused as why:
            self.close_connection = True
            self._send(why.status, json.dumps({"error": str(why)}).encode(), "application/json")

    def _requested_path(self) -> str:
        """Return what is asked for, behind the secret. Raises _Refused: it is not for us, or from another page."""
        if self.headers.get("Host") not in self.server.hosts:
            raise _Refused(HTTPStatus.FORBIDDEN)
        origin = self.headers.get("Origin")
        if origin is not None and origin not in [f"http://{host}" for host in self.server.hosts]:
            raise _Refused(HTTPStatus.FORBIDDEN)
        token, slash, rest = self.path.lstrip("/").partition("/")
        if not slash or not hmac.compare_digest(token.encode(), self.server.token.encode()):
            raise _Refused(HTTPStatus.NOT_FOUND)
        return rest

    def _get(self, path_and_query: str) -> tuple[bytes, str]:
        parts = urlsplit(path_and_query)
        if path_and_query == "":
            return self.server.page, "text/html; charset=utf-8"
        if parts.path == "rated":
            rater = parse_qs(parts.query).get("rater", [""])[0]
            with self.server.lock:
                rated = self.server.ratings.rated_by(rater.strip())
            return json.dumps(rated).encode(), "application/json"
        folder, _, name = parts.path.partition("/")
        path = self.server.files.get(name) if folder == "case" else None
        if path is None or not path.is_file():
            raise _Refused(HTTPStatus.NOT_FOUND)
        return path.read_bytes(), "application/json"

    def _post(self, requested: str) -> tuple[bytes, str]:
        if requested != "ratings":
            raise _Refused(HTTPStatus.NOT_FOUND)
        if self.headers.get_content_type() != "application/json":  # what another page may send unasked is never that
            raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        length = self.headers.get("Content-Length", "")
        if not length.isdigit():
            raise _Refused(HTTPStatus.LENGTH_REQUIRED)
        if int(length) > MOST_BYTES:
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        try:
            row = json.loads(self.rfile.read(int(length)))
            with self.server.lock:
                added = self.server.ratings.add(Rating.read(row, "rating"))
        except (ValueError, RecursionError) as error:
            raise _Refused(HTTPStatus.BAD_REQUEST, "no JSON") from error
        except UsageError as error:
            raise _Refused(HTTPStatus.BAD_REQUEST, str(error)) from error
        return json.dumps({"kept": added}).encode(), "application/json"

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        headers = {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}
        headers["Content-Security-Policy"] = f"{policy(SERVED)}; frame-ancestors 'none'"
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
