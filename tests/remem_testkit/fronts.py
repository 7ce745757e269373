"""Real proxies on loopback, as deploy/proxy configures them; addresses, paths and waits alone are the test's own."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

PROXY = Path(__file__).parents[2] / "deploy" / "proxy"
FRONTS = ("nginx", "caddy")
INSIDE, OUTSIDE, ELSEWHERE = "127.0.0.1", "127.0.0.2", "127.0.0.3"

_NAME = "localhost"
_START_SECONDS = 60
_NGINX = """
daemon off;
{user}
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr notice;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/answers;
    fastcgi_temp_path {folder}/fastcgi;
    scgi_temp_path {folder}/scgi;
    uwsgi_temp_path {folder}/uwsgi;
    include {folder}/remem.conf;
}}
"""


@dataclass(frozen=True)
class Front:
    """A proxy that runs before a commons.

    Attributes:
        name: which proxy it is.
        url: where it is reached with TLS.
        plain_url: where it is reached without.
        port: the port of `url`.
        trust: knows its certificate.
    """

    name: str
    url: str
    plain_url: str
    port: int
    trust: ssl.SSLContext

    @contextmanager
    def client(self, address: str = OUTSIDE, token: str | None = None) -> Iterator[httpx.Client]:
        """Be a client at an address of loopback."""
        transport = httpx.HTTPTransport(verify=self.trust, local_address=address)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        with httpx.Client(transport=transport, base_url=self.url, headers=headers, timeout=_START_SECONDS) as client:
            yield client

    @contextmanager
    def connected(self) -> Iterator[ssl.SSLSocket]:
        """Connect with TLS, to send byte by byte."""
        plain = socket.create_connection((INSIDE, self.port), timeout=_START_SECONDS)
        with plain, self.trust.wrap_socket(plain, server_hostname=_NAME) as opened:
            yield opened


@contextmanager
def fronted(name: str, upstream: str, folder: Path, waits: Mapping[str, str] | None = None) -> Iterator[Front]:
    """Run a proxy before a commons; skip the test where its program is absent.

    Args:
        name: `nginx` or `caddy`.
        upstream: the URL of the commons.
        folder: an empty folder of the test's.
        waits: pieces of the configuration, and what stands in their place.
    """
    program = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip(f"no {name} here (apt-get install {'nginx-light' if name == 'nginx' else name})")
    with ExitStack() as stack:
        secure, plain = (stack.enter_context(_reserved()) for _ in range(2))
        write = _write_nginx if name == "nginx" else _write_caddy
        certificate, command, variables = write(folder, upstream, secure, plain, waits or {})
    log = folder / "log"
    with log.open("wb") as written:
        process = subprocess.Popen(
            [program, *command],
            stdout=written,
            stderr=subprocess.STDOUT,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), **variables},
        )
    try:
        trust = _wait_until_served(process, certificate, secure, log)
        yield Front(name, f"https://{_NAME}:{secure}", f"http://{_NAME}:{plain}", secure, trust)
    finally:
        process.terminate()
        process.wait(_START_SECONDS)


@contextmanager
def _reserved() -> Iterator[int]:
    """Find a free port; it is free for the proxy once this ends."""
    with socket.create_server((INSIDE, 0)) as listening:
        yield listening.getsockname()[1]


def replaced(text: str, changes: Mapping[str, str]) -> str:
    """Replace pieces of a configuration, all of which must be there."""
    for old, new in changes.items():
        if old not in text:
            raise ValueError(f"expected a configuration with {old!r}, got none")
        text = text.replace(old, new)
    return text


def _write_nginx(
    folder: Path, upstream: str, secure: int, plain: int, waits: Mapping[str, str]
) -> tuple[Path, list[str], dict[str, str]]:
    key, certificate = folder / "privkey.pem", folder / "fullchain.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", "2",
         "-subj", "/CN=commons", "-addext", f"subjectAltName=DNS:{_NAME}", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    changes = {
        "127.0.0.1:7363": upstream.removeprefix("http://"),
        "/var/cache/nginx/remem": f"{folder}/cache",
        "listen [::]:80;\n": "\n",
        "listen [::]:443 ssl;\n": "\n",
        "listen 80;": f"listen {INSIDE}:{plain};",
        "listen 443 ssl;": f"listen {INSIDE}:{secure} ssl;",
        "https://$host$": f"https://$host:{secure}$",
        "server_name commons.example;": f"server_name {_NAME};",
        "/etc/letsencrypt/live/commons.example": str(folder),
        **waits,
    }
    (folder / "remem.conf").write_text(replaced((PROXY / "nginx.conf").read_text("utf-8"), changes), "utf-8")
    whole = folder / "nginx.conf"
    whole.write_text(_NGINX.format(folder=folder, user="user root;" if os.geteuid() == 0 else ""), "utf-8")
    return certificate, ["-c", str(whole)], {}


def _write_caddy(
    folder: Path, upstream: str, secure: int, plain: int, waits: Mapping[str, str]
) -> tuple[Path, list[str], dict[str, str]]:
    options = f"{{\n\tadmin off\n\tskip_install_trust\n\thttp_port {plain}\n\thttps_port {secure}\n\tservers {{"
    changes = {"{\n\tservers {": options, **waits}
    (folder / "Caddyfile").write_text(replaced((PROXY / "Caddyfile").read_text("utf-8"), changes), "utf-8")
    variables = {
        "REMEM_SITE": f"{_NAME}",
        "REMEM_UPSTREAM": upstream.removeprefix("http://"),
        "XDG_DATA_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
    }
    certificate = folder / "caddy" / "pki" / "authorities" / "local" / "root.crt"
    return certificate, ["run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"], variables


def _wait_until_served(process: subprocess.Popen[bytes], certificate: Path, port: int, log: Path) -> ssl.SSLContext:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        with suppress(OSError):
            trust = ssl.create_default_context(cafile=certificate)
            with socket.create_connection((INSIDE, port), timeout=1) as plain:
                trust.wrap_socket(plain, server_hostname=_NAME).close()
            return trust
        time.sleep(0.05)
    raise RuntimeError(f"the proxy did not start: {log.read_text('utf-8', 'replace')}")
