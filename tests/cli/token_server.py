"""A service that gives credentials for a token, as STS does, and the agent of a container."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs

from . import stub_server
from .certificates import Identity
from .s3_server import Server
from .stub_server import Stub

_STS = """<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <AssumeRoleWithWebIdentityResult><Credentials><SessionToken></SessionToken>
  <SecretAccessKey>{SecretAccessKey}</SecretAccessKey><Expiration>{Expiration}</Expiration>
  <AccessKeyId>{AccessKeyId}</AccessKeyId></Credentials></AssumeRoleWithWebIdentityResult>
</AssumeRoleWithWebIdentityResponse>"""

_REFUSED = "<ErrorResponse><Error><Code>{}</Code><Message>{}</Message></Error></ErrorResponse>"


class Tokens:
    """What a service does, and what it was asked.

    It is asked as STS at `/`, and as the agent of a container at `/keys`, with the token in `file`;
    each time it writes another one there. What it answers:

    `good` credentials that end in `seconds`, and so all do `until` so many were asked for; `busy`
    503 to the first, then those; `refused` a 403 that shows the token; `expired` that the token is;
    `silent` nothing; `garbage` the token and no credentials; `elsewhere` to ask another server.
    """

    def __init__(self, server: Server, file: Path) -> None:
        self.server = server
        self.file = file
        self.how = "good"
        self.until = 0
        self.seconds = 3600
        self.endpoint = ""
        self.asked: list[dict[str, str]] = []
        self.over = threading.Event()
        self.tokens = ["token-secret-0"]
        file.write_text(self.tokens[0] + "\n")

    def credentials(self) -> dict[str, str]:
        """The server's credentials, as the container's agent gives them."""
        end = datetime.now(UTC) + timedelta(seconds=self.seconds)
        return {
            "AccessKeyId": self.server.key,
            "SecretAccessKey": self.server.secret,
            "Token": "",
            "Expiration": end.isoformat(timespec="seconds").replace("+00:00", "Z"),
        }

    def renew(self) -> None:
        """Write another token."""
        self.tokens.append(f"token-secret-{len(self.tokens)}")
        made = self.file.with_name("new")
        made.write_text(self.tokens[-1])
        made.rename(self.file)


class _Handler(Stub):
    service: Tokens

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = {name: values[0] for name, values in parse_qs(text).items()}
        self._answer(form, form.pop("WebIdentityToken"))

    def do_GET(self) -> None:
        self._answer({"path": self.path}, self.headers["Authorization"] or "")

    def _answer(self, form: dict[str, str], token: str) -> None:
        service = self.service
        is_known = token == service.tokens[-1]
        service.asked.append(form)
        is_sts = self.command == "POST"
        match service.how if len(service.asked) > service.until else "good":
            case "silent":
                service.over.wait(30)
            case "busy" if len(service.asked) == 1:
                self.end(503)
            case "refused":
                text = _REFUSED.format("AccessDenied", token)
                refused = json.dumps({"code": "AccessDenied", "message": token})
                self.end(403, text if is_sts else refused)
            case "expired":
                text = _REFUSED.format("ExpiredTokenException", token)
                refused = json.dumps({"code": "ExpiredToken", "message": token})
                self.end(400, text if is_sts else refused)
            case "garbage":
                self.end(200, f"<html>{token} {service.server.secret}")
            case "elsewhere":
                self.end(307, Location="/other")
            case _:
                assert is_known, f"{token} is not the last of {service.tokens}"
                service.renew()
                found = service.credentials()
                self.end(200, _STS.format(**found) if is_sts else json.dumps(found))


@contextmanager
def giving(server: Server, file: Path, identity: Identity | None = None) -> Generator[Tokens]:
    """Start a service that gives credentials of `server` for the token in `file`, and end it."""
    service = Tokens(server, file)
    with stub_server.serving(_Handler, identity, service=service) as service.endpoint:
        try:
            yield service
        finally:
            service.over.set()
