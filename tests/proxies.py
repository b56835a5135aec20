"""nginx before the app: its file as documented, and as a person writes it who knows no better."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# What the distribution's own nginx.conf has around a server.
FRAME = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ }}
http {{
    access_log {folder}/access.log;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{inside}
}}
"""

AS_IT_COMES = """
server {
    listen 127.0.0.1:HTTP;
    location / { proxy_pass http://127.0.0.1:8501; }
}
"""


def certificate(folder: Path) -> tuple[Path, Path]:
    """Return a certificate of asr.example.org that nobody signed, and its key."""
    made, key = folder / "fullchain.pem", folder / "privkey.pem"
    if not made.exists():
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
             "-subj", "/CN=asr.example.org", "-keyout", str(key), "-out", str(made)],
            check=True, capture_output=True,
        )  # fmt: skip
    return made, key


def nginx_with(folder: Path, conf: str, *, app: int, http: int, https: int) -> Path:
    """Write a configuration with other ports and a certificate; return its path."""
    made, key = certificate(folder)
    for before, after in (
        ("listen 80;", f"listen 127.0.0.1:{http};"), ("127.0.0.1:HTTP", f"127.0.0.1:{http}"),
        ("listen 443 ssl;", f"listen 127.0.0.1:{https} ssl;"),
        ("127.0.0.1:8501", f"127.0.0.1:{app}"),
        ("/etc/ssl/asr/fullchain.pem", str(made)), ("/etc/ssl/asr/privkey.pem", str(key)),
    ):  # fmt: skip
        conf = conf.replace(before, after)
    path = folder / "nginx.conf"
    path.write_text(FRAME.format(folder=folder, inside=conf), encoding="utf-8")
    return path


@contextmanager
def running_nginx(conf: Path, port: int) -> Iterator[None]:
    """Run nginx in the foreground until the block ends."""
    process = subprocess.Popen(["nginx", "-c", str(conf)])
    try:
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if process.poll() is not None:
                raise RuntimeError(conf.with_name("error.log").read_text())
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait(timeout=15)


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
