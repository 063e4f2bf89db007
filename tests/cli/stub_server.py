"""What stubs of HTTP services have in common: a port, a thread, and replies of known length."""

import ssl
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from .certificates import Identity


class Stub(BaseHTTPRequestHandler):
    """Answers one request after another; whoever derives from it has a `do_GET` and the like."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Say nothing."""

    def end(self, status: int, body: bytes | str = b"", **headers: str) -> None:
        """Reply; `_` in the names of headers is `-`, and HEAD may give a Content_Length."""
        data = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        for name, value in {"Content_Length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


@contextmanager
def serving(
    handler: type[Stub], identity: Identity | None = None, **attributes: object
) -> Generator[str]:
    """Start a server on a port that is free, and end it; its endpoint.

    Its handlers have the attributes; with an identity it speaks TLS.
    """
    made = type("Handler", (handler,), attributes)
    with ThreadingHTTPServer(("127.0.0.1", 0), made) as server:
        scheme = "http"
        if identity is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(identity.certificate, identity.key)
            server.socket = context.wrap_socket(server.socket, server_side=True)
            scheme = "https"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"{scheme}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def as_s3(endpoint: str) -> dict[str, str]:
    """What programs are told of a stub of S3."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "stub",
        "AWS_SECRET_ACCESS_KEY": "stub",
        "NO_PROXY": "127.0.0.1",
    }
