"""The judge page on the demo and on small stores, and what its tests look at."""

import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.views.judge import data
from app.views.judge.data import Asked, Found
from calibration.analyses.demo import JUDGE
from calibration.records import Evidence, Verdict
from calibration.store import Store
from tests.analyses.worlds import World, ids
from tests.app.test_agreement_page import cell
from tests.stores import copy_store

MIX = ("complete", "partial_plus", "partial_minus", "hallucinated", "abandoned")


@pytest.fixture
def demo(built_demo: Path, store_file: Path) -> Found:
    copy_store(built_demo, store_file)
    with Store.open(store_file) as store:
        store.add_reviewer("Lea", role="lead")
        store.add_reviewer("Rea")
        return found_in(store, JUDGE)


def found_in(store: Store, judge_id: str) -> Found:
    asked = Asked(
        path=str(store.path), batch_id="production-001", judge_id=judge_id, design="production",
        state=(*store.result_state(), store.taxonomy().fingerprint, "here"),
    )  # fmt: skip
    return data.analysed(asked, store)


def judged(made: World) -> None:
    """Twenty labelled by two who agree; the judge misses all partial_plus and says why."""
    truth = {t: MIX[k % 5] for k, t in enumerate(made.drawn)}
    made.label("Ann", truth)
    made.label("Ben", truth)
    said = dict.fromkeys(ids(24), "complete") | truth
    made.store.add_verdicts(
        [
            Verdict(
                judge_id="judge-1",
                trace_id=trace_id,
                outcome="complete" if outcome == "partial_plus" else outcome,
                reason=f"=1+1 looks {outcome}",
                evidence=(Evidence(step_id="response", quote=f"Booked {trace_id}"),),
            )
            for trace_id, outcome in said.items()
        ]
    )


def click(app: AppTest, name: str, row: int, column: str) -> AppTest:
    app.session_state[f"judge_{name}"] = cell(row, column)
    app.run()
    assert not app.exception
    return app


def listed(app: AppTest) -> list[str]:
    (shown,) = [frame.value for frame in app.dataframe if "moves" in frame.value.columns]
    return list(shown["trace"])


def chip(app: AppTest) -> str | None:
    found = [b for b in app.button if b.key == "judge_show_all"]
    said = [t.value for t in app.text if re.match(r"[\d,]+ traces? ", t.value)]
    return said[0] if found else None
