"""Servers that speak as Google's storage and Azure's do, on this machine."""

import base64
import hashlib
import hmac
import json
import secrets
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener

from .servers import compiled, started

_TIMEOUT_S = 30


def _asked(method: str, url: str, body: bytes = b"", **headers: str) -> bytes:
    request = Request(url, body or None, headers, method=method)
    with build_opener(ProxyHandler({})).open(request, timeout=_TIMEOUT_S) as reply:
        return reply.read()


@dataclass(frozen=True)
class Cloud:
    """A server that runs, and what a program has in its environment that is to use it."""

    name: str
    scheme: str
    endpoint: str
    environment: dict[str, str] = field(repr=False)
    secret: str = field(repr=False)

    def make_bucket(self, name: str) -> None:
        """Make a bucket."""
        if self.name == "gcs":
            body = json.dumps({"name": name}).encode()
            url = f"{self.endpoint}/storage/v1/b?project=tests"
            _asked("POST", url, body, **{"content-type": "application/json"})
            return
        url, moment = f"{self.endpoint}/{name}?restype=container", datetime.now(UTC)
        date = moment.strftime("%a, %d %b %Y %H:%M:%S GMT")
        heads = f"x-ms-date:{date}\nx-ms-version:2021-08-06\n"
        resource = f"/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
        signed = "PUT" + "\n" * 12 + heads + resource
        key = base64.b64decode(self.secret)
        digest = hmac.new(key, signed.encode(), hashlib.sha256).digest()
        signature = base64.b64encode(digest).decode()
        said = {"x-ms-date": date, "x-ms-version": "2021-08-06"}
        _asked("PUT", url, **said, authorization=f"SharedKey {ACCOUNT}:{signature}")


@dataclass(frozen=True)
class CloudBucket:
    """A bucket of a server."""

    cloud: Cloud
    name: str

    def url(self, key: str) -> str:
        """The location of an object."""
        return f"{self.cloud.scheme}://{self.name}/{key}"

    def objects(self, key: str) -> dict[str, bytes]:
        """The objects right below a key, but for the proof."""
        done = subprocess.run(
            [sys.executable, "-c", _READ, self.url(key)],
            capture_output=True,
            check=True,
            timeout=60,
        )
        found = {name: base64.b64decode(text) for name, text in json.loads(done.stdout).items()}
        found.pop("_SUCCESS", None)
        return found

    def put(self, key: str, data: bytes) -> None:
        """Make an object of Google's storage, whatever its key is."""
        asked = f"uploadType=media&name={quote(key, safe='')}"
        _asked("POST", f"{self.cloud.endpoint}/upload/storage/v1/b/{self.name}/o?{asked}", data)

    def uploads(self) -> list[str]:
        """What is there of uploads that nobody completed: in Azure nobody sees that."""
        if self.cloud.name != "gcs":
            return []
        url = f"{self.cloud.endpoint}/storage/v1/b/{self.name}/o?prefix={quote('.gristmill/')}"
        return [item["name"] for item in json.loads(_asked("GET", url)).get("items", [])]


ACCOUNT = "gristmill"

#: A process reads its environment once, and servers have one each.
_READ = """
import base64, json, sys
from gristmill import _core
from gristmill.locations import open_read
paths = [path for path, _ in _core.Listing(sys.argv[1])]
read = {path.rpartition("/")[2]: base64.b64encode(open_read(path).read()) for path in paths}
print(json.dumps({name: text.decode() for name, text in read.items()}))
"""


@contextmanager
def serving_gcs(folder: Path) -> Generator[Cloud]:
    """Start a server that speaks as Google's storage does, and end it. It asks nobody who he is."""
    program = compiled("fake-gcs-server", "fake-gcs-server")

    def command(address: str, port: int) -> list[str | Path]:
        words = [program, "-scheme", "http", "-host", address, "-port", str(port)]
        return [*words, "-backend", "memory", "-log-level", "error"]

    with started(command, folder / "gcs.log") as (endpoint, _):
        yield Cloud("gcs", "gs", endpoint, {"STORAGE_EMULATOR_HOST": endpoint}, "")


@contextmanager
def serving_azure(folder: Path) -> Generator[Cloud]:
    """Start a server that speaks as Azure's blobs do, with a key of its own, and end it."""
    program, key = compiled("azurite", "azurite-blob", "Node.js"), secrets.token_bytes(48)
    secret = base64.b64encode(key).decode()

    def command(address: str, port: int) -> list[str | Path]:
        words = [program, "--blobHost", address, "--blobPort", str(port), "--silent"]
        return [*words, "--location", folder, "--skipApiVersionCheck", "--disableTelemetry"]

    accounts = {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{secret}"}
    with started(command, folder / "azure.log", **accounts) as (server, _):
        endpoint = f"{server}/{ACCOUNT}"
        environment = {
            "AZURE_STORAGE_ACCOUNT": ACCOUNT,
            "AZURE_STORAGE_KEY": secret,
            "AZURE_STORAGE_ENDPOINT": endpoint,
        }
        yield Cloud("azure", "az", endpoint, environment, secret)
