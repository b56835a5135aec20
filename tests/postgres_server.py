"""A PostgreSQL server that lives as long as the tests, or a measurement."""

import glob
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def programs() -> Path | None:
    """Return the folder with the programs of the server, None where it is not installed."""
    found = [*sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb")), shutil.which("initdb") or ""]
    found = [program for program in found if program]
    return Path(found[-1]).parent if found else None


@contextmanager
def postgres_server(of: Path) -> Iterator[tuple[str, int]]:
    """Yield the address and the process of a new server, `of` being the folder of its programs."""
    directory = Path(tempfile.mkdtemp(prefix="asr-postgres-"))
    # PostgreSQL does not run as root.
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    if user:
        owner = pwd.getpwnam("postgres")
        os.chown(directory, owner.pw_uid, owner.pw_gid)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    data = directory / "data"
    log = directory / "log"

    def run(*command: str) -> None:
        subprocess.run(
            [*user, *command], check=True, cwd="/", stdout=subprocess.DEVNULL, timeout=120
        )

    run(str(of / "initdb"), "-D", str(data), "-U", "asr", "-A", "trust", "-E", "UTF8", "-N")
    settings = f"-p {port} -c listen_addresses=127.0.0.1 -c fsync=off -k {directory}"
    run(str(of / "pg_ctl"), "-D", str(data), "-o", settings, "-l", str(log), "-w", "start")
    try:
        pid = int((data / "postmaster.pid").read_text(encoding="ascii").split()[0])
        yield f"postgresql://asr@127.0.0.1:{port}/postgres", pid
    finally:
        run(str(of / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop")
        shutil.rmtree(directory)
