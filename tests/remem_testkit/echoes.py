"""Servers that say how long what they were sent is, with TLS and without, on loopback."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


@dataclass
class Secure:
    """A server with TLS.

    Attributes:
        port: where it listens.
        authority: the file of the certificate of the authority that vouches for it.
        names: the names that callers asked for.
    """

    port: int
    authority: Path
    names: list[str]

    @property
    def trusted(self) -> ssl.SSLContext:
        """What trusts that authority and no other."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.authority)
        return context


@contextmanager
def secured(name: str, folder: Path) -> Iterator[Secure]:
    """Serve with a certificate for one name, which is its own authority; its files go into the folder."""
    certificate, secret = certified(name, folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, secret)
    names: list[str] = []

    def asked_for(_socket: object, asked: str | None, _context: object) -> None:
        names.append(asked or "")

    context.sni_callback = asked_for
    with echoing(wrap=lambda plain: context.wrap_socket(plain, server_side=True)) as (url, _opened):
        yield Secure(int(url.rsplit(":", 1)[1]), certificate, names)


def certified(name: str, folder: Path) -> tuple[Path, Path]:
    """Make a certificate that is its own authority, and its key."""
    private = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(private.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(private, hashes.SHA256())
    )
    certificate, secret = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return certificate, secret


@contextmanager
def echoing(
    requests: int = 1_000, wrap: Callable[[socket.socket], socket.socket] = lambda plain: plain
) -> Iterator[tuple[str, list[int]]]:
    """Serve so many requests a connection, each answered with the length of its body."""
    opened: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_serving, args=(listening, opened, requests, wrap), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", opened
        finally:
            listening.shutdown(socket.SHUT_RDWR)


def _count_body(opened: socket.socket) -> bytes | None:
    """Read a request and answer with the length of its body; None where no more come."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = opened.recv(65_536)
        if not piece:
            return None
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    came = len(body)
    while came < size:
        came += len(opened.recv(65_536))
    said = str(came).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(said), said)


def _serving(
    listening: socket.socket, opened: list[int], requests: int, wrap: Callable[[socket.socket], socket.socket]
) -> None:
    def serve(connection: socket.socket) -> None:
        try:
            with wrap(connection) as plain:
                for _ in range(requests):
                    said = _count_body(plain)
                    if said is None:
                        return
                    plain.sendall(said)
        except OSError:
            return

    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        opened.append(1)
        threading.Thread(target=serve, args=(connection,), daemon=True).start()
