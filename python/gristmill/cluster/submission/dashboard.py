"""The dashboard of a Ray cluster, asked over HTTP: Ray's REST interface of jobs.

    version ─▶ has a package? put it ─▶ submit ─▶ state and log, again and again ─▶ stop

Whatever goes wrong is one sentence: nothing answers, another program answers, a token is wrong.
"""

import json
import os
import ssl
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from gristmill.cluster.connection import failed, wrong
from gristmill.errors import ours

__all__ = ["Dashboard", "NoAnswerError", "State", "token_of"]

_ANSWER_S = 60.0
"""How long the dashboard may be silent: Ray looks 30 s for the agent that starts a job."""

_OLDEST = (2, 50)
"""The first version of Ray that jobs run on: that of the extra `ray`."""

_UNAUTHORIZED = (401, 403)
_NOT_FOUND = 404
_START = "start the head with `ray start --head --dashboard-host=0.0.0.0`, where `pip install"
_ADVICE = f"{_START} 'ray[default]'` was done, or correct the address"

_REDIRECTS = range(300, 400)

Json = dict[str, Any]


class _Stay(HTTPRedirectHandler):
    """Follows no redirect: the token would go to another host."""

    def redirect_request(self, *_args: object, **_named: object) -> None:
        """Have the answer raised as an error."""


class NoAnswerError(OSError):
    """Nothing answers, for now or for ever."""

    def __init__(self, address: str, reason: str) -> None:
        """Say at which address, and how that shows."""
        super().__init__(
            f"cannot run the job on the cluster: nothing answers at {address} ({reason})."
            f" What to do: {_ADVICE}."
        )
        self.reason = reason


class State(NamedTuple):
    """How far a job of Ray is."""

    status: str
    """PENDING, RUNNING; or at its end SUCCEEDED, FAILED, STOPPED."""
    message: str
    """What Ray says of it."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended.

        Example:
            >>> State("RUNNING", "").is_over, State("STOPPED", "").is_over
            (False, True)
        """
        return self.status in {"SUCCEEDED", "FAILED", "STOPPED"}


def token_of(environment: Mapping[str, str]) -> str | None:
    """Return the token that Ray's programs send, where `RAY_AUTH_MODE` has them send one.

    Raises:
        OSError: There is none.

    Example:
        >>> token_of({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "secret"})
        'secret'
        >>> token_of({"RAY_AUTH_TOKEN": "secret"}) is None
        True
    """
    if environment.get("RAY_AUTH_MODE", "").lower() != "token":
        return None
    given = environment.get("RAY_AUTH_TOKEN")
    if given:
        return given.strip()
    file = environment.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray/auth_token"
    try:
        return Path(file).read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise failed(
            f"RAY_AUTH_MODE is token, and {file} has none ({error})",
            "set RAY_AUTH_TOKEN to the token of the cluster",
        ) from error


class Dashboard:
    """A dashboard, by its address."""

    def __init__(self, address: str, environment: Mapping[str, str] = os.environ) -> None:
        """Ask nothing yet.

        Raises:
            ValueError: `RAY_JOB_HEADERS` is not a JSON object.
            OSError: A token is wanted, and there is none.
        """
        self.address = address
        self._headers = _headers(environment)

    def check_version(self) -> None:
        """Refuse a cluster that jobs do not run on.

        Raises:
            OSError: Nothing answers there, or no dashboard, or one of another version.
        """
        answer = self._ask("GET", "/api/version")
        version = str(answer.get("ray_version", ""))
        numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
        if not version:
            raise failed(f"what answers at {self.address} is not a dashboard of Ray", _ADVICE)
        if numbers < _OLDEST:
            raise failed(
                f"the cluster of {self.address} has Ray {version}, and jobs need {_shown(_OLDEST)}",
                f"install Ray {_shown(_OLDEST)} or newer on its nodes",
            )

    def has(self, package: str) -> bool:
        """Whether the cluster keeps a package; it stays for some minutes then."""
        return self._ask("GET", _of_package(package), missing=True) is not None

    def put(self, package: str, content: bytes) -> None:
        """Have the cluster keep a package."""
        self._ask("PUT", _of_package(package), content)

    def submit(self, request: Json) -> str:
        """Begin a job; return its name."""
        return str(self._ask("POST", "/api/jobs/", json.dumps(request).encode())["submission_id"])

    def state(self, job: str) -> State:
        """How far a job is."""
        answer = self._ask("GET", f"/api/jobs/{quote(job)}")
        return State(str(answer["status"]), str(answer.get("message") or ""))

    def log(self, job: str) -> str:
        """What a job has written so far."""
        return str(self._ask("GET", f"/api/jobs/{quote(job)}/logs").get("logs") or "")

    def stop(self, job: str) -> None:
        """Have a job end; it is not over yet."""
        self._ask("POST", f"/api/jobs/{quote(job)}/stop", b"{}")

    def _ask(
        self, method: str, path: str, content: bytes | None = None, *, missing: bool = False
    ) -> Any:  # noqa: ANN401 - JSON
        """The answer to a request; nothing where a thing may be `missing`, and is.

        Raises:
            NoAnswerError: Nothing answers.
            OSError: The answer is an error.
        """
        kind = "application/json" if method == "POST" else "application/octet-stream"
        request = Request(  # noqa: S310 - http or https, as `address` sees to
            self.address + path,
            data=content,
            method=method,
            headers=self._headers | {"Content-Type": kind},
        )
        try:
            with build_opener(_Stay).open(request, timeout=_ANSWER_S) as response:
                said = response.read()
        except HTTPError as error:
            if missing and error.code == _NOT_FOUND:
                return None
            with error:
                raise self._refused(error) from error
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, ssl.SSLError):
                raise failed(
                    f"{self.address} cannot be trusted ({reason})",
                    "set SSL_CERT_FILE to the certificate that has signed its own",
                ) from error
            said = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
            raise ours(NoAnswerError(self.address, said), "io") from error
        if missing or not said:
            return {}
        try:
            return json.loads(said)
        except ValueError as error:
            raise failed(
                f"what answers at {self.address} is not a dashboard of Ray", _ADVICE
            ) from error

    def _refused(self, error: HTTPError) -> OSError:
        """What an answer says that is an error."""
        if error.code in _UNAUTHORIZED:
            sent = "Authorization" in self._headers
            return failed(
                f"{self.address} {'refuses the token' if sent else 'asks for a token'}",
                "set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN to the token of the cluster",
            )
        if error.code == _NOT_FOUND:
            return failed(f"what answers at {self.address} is not a dashboard of Ray", _ADVICE)
        if error.code in _REDIRECTS:
            to = urlsplit(error.headers.get("Location") or "")
            return failed(
                f"{self.address} answers {error.code} and points to {to.netloc or 'another place'},"
                " where no request goes: it may hold a token",
                f"give the address of the dashboard itself, such as {to.scheme}://{to.netloc}"
                if to.netloc
                else _ADVICE,
            )
        lines = [line.strip() for line in error.read().decode(errors="replace").splitlines()]
        said = next((line for line in reversed(lines) if line), str(error.reason))
        return failed(
            f"the dashboard {self.address} answers {error.code}: {said.rstrip('.')}",
            "look at `ray status` on the head, and at the log of its dashboard",
        )


def _headers(environment: Mapping[str, str]) -> dict[str, str]:
    """What goes along with each request: Ray's own variable, and its token."""
    given = environment.get("RAY_JOB_HEADERS") or "{}"
    try:
        headers = {str(name): str(text) for name, text in json.loads(given).items()}
    except (ValueError, AttributeError) as error:
        raise wrong(
            "cannot run the job on the cluster: RAY_JOB_HEADERS is not a JSON object. What to do:"
            ' write {"NAME": "VALUE"}, or unset it.'
        ) from error
    token = token_of(environment)
    return headers | ({} if token is None else {"Authorization": f"Bearer {token}"})


def _of_package(package: str) -> str:
    return f"/api/packages/gcs/{quote(package)}"


def _shown(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
