"""`asr certify`, and batches that ask for a certificate."""

import json
from pathlib import Path

import pytest
from click.testing import Result

from calibration.analyses.reviewers.examinations import Examiner
from calibration.errors import UncertifiedReviewerError
from calibration.store import Store
from calibration.store.leases import CertificateDemand
from reference_dataset.loader import load_reference
from tests.analyses.examinees import Examinee, set_clock
from tests.cli_runs import Run
from tests.store.builders import make_traces


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store.duckdb"
    with Store.open(path, create=True) as store:
        store.ingest(make_traces(4))
        store.add_reviewer("Anna")
    return path


@pytest.fixture
def asr(asr: Run, path: Path) -> Run:
    def called(*arguments: object, code: int = 0) -> Result:
        return asr(*arguments, "--store", path, code=code)

    return called


def test_certificates_are_listed(asr: Run, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(path) as store:
        by = Examiner(dataset=load_reference(), private=frozenset())
        anna = Examinee(store, by, set_clock(monkeypatch))
        anna.sit(anna.start())
    assert (
        "Anna: public form exam_a, tree 1.0, 2026-01-01 to 2026-04-01"
        in asr("certify", "list").stdout
    )
    (row,) = json.loads(asr("certify", "list", "--json").stdout)
    assert (row["reviewer_id"], row["private"]) == ("anna", False)


def test_a_store_asks_for_certificates_until_it_is_told_otherwise(asr: Run, path: Path) -> None:
    strict = CertificateDemand(form="private", every_batch=True)
    for words, demand in (
        (["--form", "private", "--every-batch"], strict),
        ([], CertificateDemand()),
    ):
        asr("certify", "demand", *words)
        with Store.open(path) as store:
            assert store.certificate_demand() == demand


def test_a_batch_is_drawn_for_the_certified(asr: Run, path: Path) -> None:
    asr("sample", "--n", 2, "--seed", 1, "--certificate", "any")
    asr("sample", "--n", 2, "--seed", 2)
    with Store.open(path) as store:
        plain, asking = store.batches()
        assert (plain.certificate, asking.certificate) == (None, "any")
        assert store.queue("anna", plain.batch_id).items
        with pytest.raises(UncertifiedReviewerError):
            store.queue("anna", asking.batch_id)
