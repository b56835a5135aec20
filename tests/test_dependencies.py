import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import date
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests import dependencies
from tests.dependencies import NotAskedError, advisories, is_allowed, licences, rows, undocumented

TODAY = date(2026, 11, 23)
PINNED = {("jinja2", "2.10"), ("numpy", "2.4.6"), ("numpy", "2.5.0")}
ADVISORY = {
    "id": "GHSA-462w-v97r-4m45",
    "aliases": ["CVE-2019-10906"],
    "modified": "2024-01-01T00:00:00Z",
    "summary": "Sandbox escape",
    "affected": [
        {
            "package": {"ecosystem": "PyPI", "name": "jinja2"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2.10.1"}]}],
        }
    ],
}


def test_what_is_vendored_is_what_the_lock_pins_and_has_its_row() -> None:
    folder = dependencies.ROOT / "app" / "desk" / "vendor"
    lock = json.loads((dependencies.ROOT / ".ci" / "vendor" / "package-lock.json").read_text())
    pinned = lock["packages"]["node_modules/@lezer/markdown"]
    assert pinned["integrity"].startswith("sha512-")
    head = (folder / "markdown.js").read_text(encoding="utf-8").partition("\n")[0]
    assert f"@lezer/markdown {pinned['version']}," in head
    assert "MIT License" in (folder / "LICENSE").read_text()
    (row,) = [r for r in rows(dependencies.PAGE.read_text(), "Vendored") if "lezer" in r[0]]
    assert row[1] == pinned["license"]
    assert pinned["version"] in row[2]


class Fake(Distribution):
    """An installed distribution of version 1.0 that states its licence in some way."""

    def __init__(self, version: str = "1.0", **fields: str) -> None:
        message = Message()
        for name, value in {"Name": "fake", "Version": version, **fields}.items():
            message[name.replace("_", "-")] = value
        self.text = str(message)

    def read_text(self, filename: str) -> str | None:
        return self.text if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        raise NotImplementedError


def checked(
    name: str, lock: str, found: Fake | None, explained: dict[str, str] | None = None
) -> tuple[list[str], list[str]]:
    def installed(asked: str) -> Distribution:
        assert asked == name
        if found is None:
            raise PackageNotFoundError(asked)
        return found

    locks: dict[str, list[Requirement]] = {"run": [], "dev": [], "engines": []}
    locks[lock].append(Requirement(f"{name}==1.0"))
    return licences(locks, explained or {}, installed)


@pytest.mark.parametrize(
    "fields",
    [
        {"License_Expression": "MIT OR GPL-3.0-only"},
        {"License_Expression": "BSD-3-Clause AND (MIT OR Apache-2.0)"},
        {"Classifier": "License :: OSI Approved :: BSD License"},
        {"License": "Apache-2.0"},
        # The expression counts, and not the text.
        {"License_Expression": "MIT", "License": "GPL"},
    ],
)
def test_a_permissive_licence_passes(fields: dict[str, str]) -> None:
    assert checked("fake", "run", Fake(**fields)) == ([], [])


@pytest.mark.parametrize(
    ("fields", "stated"),
    [
        ({"License_Expression": "GPL-3.0-only"}, "has the licence GPL-3.0-only"),
        ({"License_Expression": "MIT AND GPL-3.0-only"}, "has the licence MIT AND GPL"),
        ({"License_Expression": "(MIT OR GPL-3.0-only) AND ISC"}, "has the licence (MIT OR"),
        ({"Classifier": "License :: OSI Approved :: GNU Affero"}, "has the licence GNU Affero"),
        ({"License": "Proprietary"}, "has the licence Proprietary"),
        ({"Classifier": "License :: OSI Approved"}, "has no licence"),
        ({}, "has no licence"),
    ],
)
def test_another_licence_or_none_fails_and_says_what_to_do(
    fields: dict[str, str], stated: str
) -> None:
    for lock, remedy in (("run", "Users install it"), ("dev", "explain it under")):
        (sentence,), unchecked = checked("fake", lock, Fake(**fields))
        assert sentence.startswith(f"fake 1.0 {stated}")
        assert remedy in sentence
        assert not unchecked


def test_an_explained_licence_passes_for_tools_alone() -> None:
    gpl, explained = Fake(License_Expression="GPL-3.0-only"), {"fake": "GPL-3.0-only"}
    assert checked("fake", "dev", gpl, explained) == ([], [])
    assert checked("fake", "engines", gpl, explained) == ([], [])
    assert len(checked("fake", "run", gpl, explained)[0]) == 1
    # It has changed since it was explained.
    assert len(checked("fake", "dev", Fake(License_Expression="SSPL-1.0"), explained)[0]) == 1


def test_what_is_not_installed_is_named() -> None:
    assert checked("fake", "engines", None) == ([], ["fake (`make engines` installs it)"])
    assert checked("fake", "run", None)[0] == [
        "fake 1.0 is pinned and not installed. Run `make dev`."
    ]
    assert checked("fake", "dev", Fake("2.0", License="MIT"))[0] == [
        "fake 2.0 is installed and 1.0 is pinned. Run `make dev`."
    ]
    elsewhere = {"run": [Requirement("fake==1.0; sys_platform == 'none'")], "dev": []}
    assert licences({**elsewhere, "engines": []}, {}) == ([], ["fake (not for this machine)"])


def test_the_lock_files_are_read_whole() -> None:
    for lock in dependencies.LOCKS.glob("*.lock"):
        text = lock.read_text(encoding="utf-8")
        assert len(dependencies.pins(lock)) == len(re.findall(r"^\S+==", text, re.MULTILINE))
    assert not is_allowed("")


def test_a_direct_dependency_without_a_row_fails() -> None:
    page = (
        "\n## Run time\n| package | why |\n|---|---|\n| numpy, Sci_Py (BSD-3) | - |\n"
        "\n## Not used\n| package | why |\n|---|---|\n| pytest | - |\n"
    )
    project = (
        '[project]\ndependencies = ["numpy>=2"]\n'
        '[project.optional-dependencies]\nx = ["sci-py[a]>=1"]\ndev = ["pytest"]\n'
    )
    (sentence,) = undocumented(project, page)
    assert sentence.startswith("pytest is a dependency in pyproject.toml: add it to a table")


# Advisories


@contextmanager
def service(answer: Callable[[dict[str, Any] | None], tuple[int, Any]]) -> Iterator[str]:
    """Serve what `answer` gives for a query (POST), or for one advisory (None)."""

    class Handler(BaseHTTPRequestHandler):
        def reply(self, query: dict[str, Any] | None) -> None:
            status, content = answer(query)
            body = json.dumps(content).encode()
            with suppress(ConnectionError):  # whoever asked has given up
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def do_POST(self) -> None:
            self.reply(json.loads(self.rfile.read(int(self.headers["content-length"]))))

        def do_GET(self) -> None:
            self.reply(None)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def knows_jinja(query: dict[str, Any] | None) -> tuple[int, Any]:
    if query is None:
        return 200, ADVISORY
    found = {"vulns": [{"id": ADVISORY["id"], "modified": ADVISORY["modified"]}]}
    asked = [each["package"]["name"] for each in query["queries"]]
    return 200, {"results": [found if name == "jinja2" else {} for name in asked]}


def test_an_advisory_names_package_advisory_and_fixed_version() -> None:
    with service(knows_jinja) as url:
        (sentence,) = advisories(PINNED, [], TODAY, url)
    assert sentence.startswith(
        "jinja2 2.10: CVE-2019-10906, GHSA-462w-v97r-4m45, Sandbox escape; fixed in 2.10.1."
    )
    assert "Accepted advisories" in sentence


def test_an_advisory_is_accepted_until_its_day_and_for_its_package() -> None:
    with service(knows_jinja) as url:
        for name, day, accepted in (
            ("jinja2", "2026-11-23", True),
            ("jinja2", "2026-11-22", False),
            ("numpy", "2026-11-23", False),
        ):
            row = ["CVE-2019-10906", name, day, "a reason"]
            assert (advisories(PINNED, [row], TODAY, url) == []) is accepted


def test_every_pinned_version_is_asked_for() -> None:
    asked: set[tuple[str, str]] = set()

    def answer(query: dict[str, Any] | None) -> tuple[int, Any]:
        assert query is not None
        asked.update((each["package"]["name"], each["version"]) for each in query["queries"])
        return 200, {"results": [{} for _ in query["queries"]]}

    locks = [dependencies.pins(lock) for lock in dependencies.LOCKS.glob("*.lock")]
    pinned = {(pin.name, dependencies.version(pin)) for each in locks for pin in each}
    with service(answer) as url:
        assert advisories(pinned, [], TODAY, url) == []
    assert asked == pinned
    assert len(pinned) > 70


def test_a_service_that_refuses_or_does_not_answer_was_not_asked() -> None:
    with service(lambda _: (403, {})) as url, pytest.raises(NotAskedError, match="403 Forbidden"):
        advisories(PINNED, [], TODAY, url)
    with pytest.raises(NotAskedError, match="refused"):
        advisories(PINNED, [], TODAY, "http://127.0.0.1:1/")

    def late(_: dict[str, Any] | None) -> tuple[int, Any]:
        time.sleep(2)
        return 200, {}

    with service(late) as url, pytest.raises(NotAskedError, match=r"within 0\.5 seconds"):
        advisories(PINNED, [], TODAY, url, timeout_s=0.5)


def test_a_project_that_uv_cannot_read_is_a_fault_and_not_a_service_that_is_away() -> None:
    with pytest.raises(RuntimeError, match="Failed to parse"):
        advisories({("numpy", '"')}, [], TODAY, "http://127.0.0.1:1/")


def test_an_audit_of_other_packages_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    some = list(dependencies.project_of(set(sorted(PINNED)[1:])))
    monkeypatch.setattr(dependencies, "project_of", lambda _: some)
    nothing: dict[str, Any] = {"results": [{}, {}]}
    with service(lambda _: (200, nothing)) as url, pytest.raises(RuntimeError, match="3 packages"):
        advisories(PINNED, [], TODAY, url)


@pytest.mark.parametrize(
    ("found", "code"), [([], 0), (["numpy 2.4.6: CVE-1"], 1), (NotAskedError("no network"), 0)]
)
def test_the_check_fails_for_an_advisory_and_not_for_a_missing_network(
    found: list[str] | NotAskedError,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def asked(*_: object) -> list[str]:
        if isinstance(found, NotAskedError):
            raise found
        return found

    monkeypatch.setattr(dependencies, "advisories", asked)
    # Its licences, rows and lock files are those of the project.
    assert dependencies.main() == code
    printed = capsys.readouterr()
    if isinstance(found, NotAskedError):
        assert "advisories NOT CHECKED, the service cannot be asked: no network" in printed.out
        assert printed.err == ""
    else:
        assert printed.err == "".join(f"dependencies: {sentence}\n" for sentence in found)


def test_the_check_fails_for_a_dependency_without_a_row(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "dependencies.md"
    whole = dependencies.PAGE.read_text(encoding="utf-8")
    page.write_text(whole.replace("| click |", "| clack |"), encoding="utf-8")
    monkeypatch.setattr(dependencies, "PAGE", page)
    monkeypatch.setattr(dependencies, "advisories", lambda *_: [])
    assert dependencies.main() == 1
    assert "click is a dependency in pyproject.toml" in capsys.readouterr().err


def test_accepted_advisories_have_a_day_and_a_reason() -> None:
    page = dependencies.PAGE.read_text(encoding="utf-8")
    for advisory, package, day, reason in rows(page, "Accepted advisories"):
        assert advisory
        assert package
        assert date.fromisoformat(day)
        assert len(reason) > 20
    assert len(rows(page, "Other licences")) == 3
