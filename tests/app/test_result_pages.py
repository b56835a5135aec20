import shutil
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from calibration.analyses.asr import AsrAnalysis, analyse_asr
from calibration.analyses.demo import JUDGE, build_demo
from calibration.store import Store
from tests.app.conftest import OpenApp
from tests.browser.samples import build_store, sample_trace


@pytest.fixture(scope="module")
def demo_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "demo.duckdb"
    with Store.open(path, create=True) as store:
        build_demo(store, seed=1)
    return path


@pytest.fixture
def demo(demo_store: Path, store_file: Path) -> AsrAnalysis:
    """Put the demo where the app looks and return what its report says."""
    shutil.copy(demo_store, store_file)
    shutil.copytree(demo_store.with_suffix(".traces"), store_file.with_suffix(".traces"))
    with Store.open(store_file) as store:
        return analyse_asr(store, judge_id=JUDGE)


def page(app: AppTest, name: str) -> AppTest:
    app.switch_page(f"views/{name}.py").run()
    assert not app.exception
    return app


def texts(app: AppTest) -> str:
    return "\n".join(e.value for e in [*app.header, *app.subheader, *app.text, *app.code])


@pytest.mark.parametrize("name", ["agreement", "asr", "judge"])
def test_without_a_batch_the_page_says_what_to_do(
    store_file: Path, open_app: OpenApp, name: str
) -> None:
    with Store.open(store_file, create=True) as store:
        store.ingest([sample_trace(0)])
    shown = texts(page(open_app(), name))
    assert "asr sample --n 40 --seed 1" in shown
    assert "asr import FILES" in shown


@pytest.mark.parametrize("name", ["agreement", "asr", "judge"])
def test_without_labels_the_page_says_so(store_file: Path, open_app: OpenApp, name: str) -> None:
    build_store(store_file, 3)
    assert "label" in texts(page(open_app(), name)).lower()


@pytest.mark.parametrize("name", ["agreement", "asr", "judge"])
def test_a_reviewer_with_open_traces_sees_no_results(
    store_file: Path, open_app: OpenApp, name: str
) -> None:
    build_store(store_file, 3)
    with Store.open(store_file) as store:
        store.add_reviewer("Anna")
    app = page(open_app(reviewer="anna"), name)
    assert "stays hidden from you until you have finished" in texts(app)
    assert not app.metric


def test_the_asr_page_shows_what_the_analysis_says(demo: AsrAnalysis, open_app: OpenApp) -> None:
    app = page(open_app(), "asr")
    shown = {metric.label: metric.value for metric in app.metric}
    value, interval = demo.corrected.value, demo.corrected.interval
    assert value is not None
    assert interval is not None
    assert (
        shown["Agent success rate, corrected for judge error"]
        == f"{value:.3f} [{interval[0]:.3f}, {interval[1]:.3f}]"
    )
    assert f"How far judge {JUDGE} is off, and what would mend it:" in texts(app)
    assert "Simulated data" in texts(app)
