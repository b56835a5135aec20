"""Reviewers, roles, passphrases and who may come in from other machines."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from calibration.cli import main
from calibration.store import Store
from tests.cli_runs import Run

GOOD = "correct horse battery"


def type_in(*lines: str, name: str = "Mara") -> Result:
    return CliRunner().invoke(
        main, ["people", "passphrase", name], input="".join(f"{x}\n" for x in lines)
    )


def test_a_passphrase_is_asked_for_and_not_shown_or_made_up(asr: Run, filled: list[str]) -> None:
    asr("people", "add", "Mara", "--role", "admin")
    done = type_in(GOOD, GOOD)
    assert done.exit_code == 0
    assert "Mara (admin) has a new passphrase" in done.output
    assert GOOD not in done.output
    with Store.open("asr.duckdb") as store:
        assert store.verify_sign_in("Mara", GOOD, "127.0.0.1")
    made = asr("people", "passphrase", "Mara", "--generate").stdout.splitlines()[1]
    with Store.open("asr.duckdb") as store:
        assert store.verify_sign_in("Mara", made, "127.0.0.1")
    short = type_in("short", "short")
    assert (short.exit_code, "12 to 200 characters, got 5" in short.stderr) == (2, True)
    nobody = type_in(GOOD, GOOD, name="Zoe")
    assert (nobody.exit_code, "there is nobody called 'Zoe'" in nobody.stderr) == (2, True)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "my-machine"])
def test_other_machines_are_let_in_only_when_sign_in_is_configured(
    asr: Run, filled: list[str], host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for command in (["serve"], ["serve", "--store", "none.duckdb"], ["demo"]):
        said = asr(*command, "--host", host, code=2).stderr
        assert "lets other machines in, and sign-in is not configured: first `asr people" in said
    monkeypatch.setenv("ASR_PUBLIC_ORIGIN", "")
    public = "https://asr.example.org"
    said = asr("serve", "--public-origin", public, code=2).stderr
    assert f"public origin {public} lets other machines in" in said
    said = asr("serve", "--public-origin", "asr.example.org", code=2).stderr
    assert "must be a scheme, a host and" in said
    assert not Path("asr-demo.duckdb").exists()
    asr("people", "add", "Mara", "--role", "admin")
    asr("people", "passphrase", "Mara", "--generate")
    started: list[list[str]] = []
    monkeypatch.setattr("os.execv", lambda _program, words: started.append(words))
    monkeypatch.setattr("socket.socket.bind", lambda _socket, _address: None)
    asr("serve", "--host", host)
    assert f"--server.address={host}" in started[0]
    asr("serve", "--public-origin", public)
    assert os.environ["ASR_PUBLIC_ORIGIN"] == public


def test_an_identity_provider_needs_an_admin_who_is_linked_or_named_by_a_claim(
    asr: Run, filled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asr("people", "add", "Mara", "--role", "admin")
    said = asr("people", "sign-in", "oidc", code=2).stderr
    assert "link one with `asr people add NAME --role admin --email ADDRESS`" in said
    monkeypatch.setenv("ASR_OIDC_ROLE_CLAIM", "groups")
    assert "set values in ASR_OIDC_REVIEWERS" in asr("people", "sign-in", "oidc", code=2).stderr
    monkeypatch.setenv("ASR_OIDC_LEADS", "leads")
    assert "set ASR_OIDC_ADMINS" in asr("people", "sign-in", "oidc", code=2).stderr
    monkeypatch.setenv("ASR_OIDC_ADMINS", "admins")
    assert "identities are oidc" in asr("people", "sign-in", "oidc").stdout
    assert "identities are passphrase" in asr("people", "sign-in", "passphrase").stdout
    monkeypatch.delenv("ASR_OIDC_ROLE_CLAIM")
    assert "set ASR_OIDC_ROLE_CLAIM too" in asr("people", "sign-in", "oidc", code=2).stderr
    for name in ("ASR_OIDC_LEADS", "ASR_OIDC_ADMINS"):
        monkeypatch.delenv(name)
    assert (
        "is not an email address" in asr("people", "add", "Mara", "--email", "mara", code=2).stderr
    )
    both = ("--email", "m@example.org", "--subject", "m-1")
    assert "either --email or --subject" in asr("people", "add", "Mara", *both, code=2).stderr
    assert "linked to m-1" in asr("people", "add", "Mara", "--subject", "m-1").stdout
    assert "identities are oidc" in asr("people", "sign-in", "oidc").stdout
    assert "identities are oidc here" in asr("people", "passphrase", "Mara", "--generate").stdout
