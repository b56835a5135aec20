"""Commands on a store that another process, like the app, holds."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result

from calibration import files
from calibration.store import Store, store
from tests.cli_runs import ASR, HOLDER, Run, run
from tests.store.builders import make_traces


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Path]:
    """Return a store with twelve traces that another process holds and looks after."""
    path = tmp_path / "held.duckdb"
    with Store.open(path, create=True) as store:
        store.ingest(make_traces(12))
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "ready\n"
    yield path
    holder.communicate("")
    assert holder.returncode == 0


@pytest.fixture
def asr(held: Path) -> Run:
    def called(*arguments: object, code: int = 0) -> Result:
        return run(*arguments, "--store", held, code=code)

    return called


def test_a_question_is_answered_from_the_snapshot_and_a_second_server_refused(asr: Run) -> None:
    result = asr("taxonomy", "show", "--json")
    assert json.loads(result.stdout)["version"]
    assert result.stderr.startswith("note: the app has ")
    assert "read from its snapshot" in result.stderr
    assert "has the store open" in asr("serve", "--port", 8999, code=1).stderr


@pytest.mark.long
def test_traces_are_imported_and_drawn_from(asr: Run, held: Path, tmp_path: Path) -> None:
    rows = [{"trace_id": f"own-{k}", "workflow": "w", "prompt": "p"} for k in range(3)]
    (tmp_path / "own.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    # An import lets the app go first: in this process it would slow all tests after it down.
    words = [*ASR, "import", str(tmp_path / "own.jsonl"), "--json", "--store", str(held)]
    first, again = (json.loads(subprocess.check_output(words, timeout=120)) for _ in range(2))
    assert (first["imported"], again["already_there"]) == (3, 3)
    drawn = json.loads(asr("sample", "--n", 2, "--seed", 1, "--workflow", "w", "--json").stdout)
    assert drawn["population"] == 3


@pytest.mark.long
def test_a_passphrase_is_handed_over_as_a_hash_and_a_role_too(
    asr: Run, held: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[bytes] = []
    put = files.put

    def keep(path: Path, content: bytes) -> None:
        written.append(content)
        put(path, content)

    monkeypatch.setattr(store, "put", keep)
    asr("people", "add", "Mara", "--role", "lead")
    asr("people", "add", "Mara", "--role", "admin")
    made = asr("people", "passphrase", "Mara", "--generate").stdout.splitlines()[1]
    assert "people sign in with a passphrase" in asr("people", "sign-in", "open", code=2).stderr
    assert any(b"argon2id" in content for content in written)
    assert not any(made.encode() in content for content in written)
    left = [p for p in held.with_suffix(".inbox").rglob("*") if p.is_file()]
    assert not any(b"argon2id" in p.read_bytes() for p in left)
    assert b"argon2id" not in held.with_suffix(".snapshot.duckdb").read_bytes()


@pytest.mark.long
def test_a_link_to_the_identity_provider_is_handed_over_and_in_no_file(
    asr: Run, held: Path
) -> None:
    asr("people", "add", "Mara", "--role", "admin", "--email", "mara@example.org")
    assert "identities are oidc" in asr("people", "sign-in", "oidc").stdout
    assert asr("people", "sign-in").stdout == "oidc\n"
    files_of_it = [*held.with_suffix(".inbox").rglob("*"), held.with_suffix(".snapshot.duckdb")]
    assert not any(b"mara@example.org" in p.read_bytes() for p in files_of_it if p.is_file())
