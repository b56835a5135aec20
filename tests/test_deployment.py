"""The files in deploy/ agree with the commands and settings that exist; the proxies read theirs."""

import os
import re
import shutil
import subprocess
import tomllib
from configparser import RawConfigParser
from pathlib import Path

import click
import pytest

from calibration.cli import main
from tests.proxies import certificate, nginx_with

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
PAGE = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
FILES = {file.name: file.read_text(encoding="utf-8") for file in DEPLOY.iterdir()}
EVERYTHING = "\n".join([PAGE, *FILES.values()])


def test_the_page_shows_every_file() -> None:
    assert {name for name in FILES if f"](../deploy/{name})" in PAGE} == set(FILES)
    assert set(re.findall(r"\.\./deploy/([\w.-]+)\)", PAGE)) == set(FILES)


def test_every_command_and_option_exists() -> None:
    commands = main.commands
    lines = re.findall(
        # The container runs `asr` itself: `run --rm app` is followed by a command of it.
        r"(?:(?:/bin/|^ +|`|-T app )asr|run --rm.* app) ([a-z-]+)([^`\n]*)",
        EVERYTHING,
        re.M,
    )
    assert len(lines) >= 15
    for name, rest in lines:
        command = commands[name]
        if isinstance(command, click.Group):
            command = command.commands[rest.split()[0]]
        options = {o for p in command.params for o in p.opts}
        used = set(re.findall(r"(?<!\S)--[a-z-]+", rest))
        assert (name, used - options) == (name, set())
    (cmd,) = re.findall(r"^CMD \[(.*)\]", FILES["Containerfile"], re.M)
    name, *words = [word.strip(' "') for word in cmd.split(",")]
    assert {w for w in words if w.startswith("--")} <= {
        o for p in commands[name].params for o in p.opts
    }


def test_every_variable_exists_and_every_one_that_the_server_reads_is_named() -> None:
    names = ("serving.py", "cli/server.py", "analyses/judging/versions.py")
    server = [ROOT / "calibration" / name for name in names]
    files = [*(ROOT / "app").rglob("*.py"), *server]
    sources = "\n".join(file.read_text(encoding="utf-8") for file in files)
    read = set(re.findall(r'"(ASR_[A-Z_]+|FORWARDED_ALLOW_IPS)"', sources))
    of_the_files = {"ASR_HOST", "ASR_UPSTREAM"}  # of compose.yaml and Caddyfile alone
    named = set(re.findall(r"\b(ASR_[A-Z_]+|FORWARDED_ALLOW_IPS)\b", EVERYTHING))
    assert named - of_the_files == read
    assert of_the_files <= set(re.findall(r"\{?\$\{?(ASR_[A-Z]+)", FILES["Caddyfile"]))


def test_no_registry_host_is_named() -> None:
    images = re.findall(r"^(?:FROM| +image:) +(\S+)", EVERYTHING, re.M)
    assert len(images) == 3
    assert all(re.fullmatch(r"[a-z-]+(:[\w.-]+)?", image) for image in images)
    hosts = set(re.findall(r"https?://([\w.-]+)", EVERYTHING))
    assert hosts <= {"asr.example.org", "127.0.0.1"}


def test_the_image_holds_what_is_installed() -> None:
    copied = re.findall(r"^COPY (.+) \S+$", FILES["Containerfile"], re.M)
    sources = {source for line in copied for source in line.split()}
    assert all((ROOT / source).exists() for source in sources)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = project["tool"]["setuptools"]["packages"]
    assert {name.partition(".")[0] for name in packages} <= sources
    assert {"pyproject.toml", project["project"]["readme"], "LICENSE"} <= sources


def test_the_units_run_what_the_page_installs() -> None:
    for name in ("asr.service", "asr-backup.service", "asr-backup.timer"):
        unit = RawConfigParser(strict=False)
        unit.optionxform = str  # type: ignore[assignment, method-assign]
        unit.read_string(FILES[name])
        assert unit.sections()[0] == "Unit"
    assert all(
        word.startswith("/opt/asr/bin/asr ")
        for word in re.findall(
            r"^ExecStart=(.*)$", FILES["asr.service"] + FILES["asr-backup.service"], re.M
        )
    )
    # The running app writes the backup that the other unit asks for.
    assert "StateDirectory=asr asr-backups" in FILES["asr.service"]
    assert "/var/lib/asr-backups" in FILES["asr-backup.service"]


@pytest.mark.long
def test_nginx_reads_its_file(tmp_path: Path) -> None:
    conf = nginx_with(tmp_path, FILES["nginx.conf"], app=8501, http=8080, https=8443)
    done = subprocess.run(["nginx", "-t", "-c", str(conf)], capture_output=True, text=True)
    assert (done.returncode, "[warn]" in done.stderr) == (0, False), done.stderr
    assert certificate(tmp_path)[0].exists()
    broken = conf.read_text().replace("proxy_pass ", "proxy_past ")
    conf.write_text(broken)
    assert subprocess.run(["nginx", "-t", "-c", str(conf)], capture_output=True).returncode == 1


@pytest.mark.long
def test_caddy_reads_its_file(tmp_path: Path) -> None:
    assert shutil.which("caddy"), "apt-get install caddy"
    words = ["caddy", "adapt", "--config", str(DEPLOY / "Caddyfile"), "--validate"]
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    done = subprocess.run(words, env=os.environ | home, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert '"127.0.0.1:8501"' in done.stdout
    assert '"asr.example.org"' in done.stdout
