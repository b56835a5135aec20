import csv
import io

import pytest

from calibration.analyses.agreement.analysis import analyse_agreement
from calibration.analyses.evidence.from_store import choose_batch
from calibration.analyses.sampling.draw import (
    SamplingDesign,
    batch_of,
    draw_batch,
    list_traces,
    traces_csv,
)
from calibration.analyses.success_rate.from_store import rates_of_store
from calibration.analyses.success_rate.report import ReportOptions
from calibration.errors import CalibrationError, InputError
from calibration.records import Step
from calibration.reporting import to_json
from calibration.reporting.document import text_lines
from calibration.reporting.sections import agreement as agreement_text
from calibration.store import Batch, Store, TraceFilter
from calibration.tables.rows import unguard
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, ids, make_trace

FAILED = (Step(step_id="s1", role="tool", tool="pay", result="no", error=True),)
HOTELS = {name: {"workflow": "hotels"} for name in ids(12)[:5]}
PAID = {name: {"steps": FAILED, "task_key": "t/1"} for name in ids(12)[3:9]}
FILTER = TraceFilter(tool="pay", tool_ended="error", task_key="t/1")


@pytest.fixture
def world(new_world: NewWorld) -> World:
    both = {n: HOTELS.get(n, {}) | PAID.get(n, {}) for n in ids(12)}
    return new_world(traces=both)


def items(store: Store, batch: Batch) -> list[str]:
    return list(store.batch_items(batch.batch_id)["trace_id"])


def test_pages_are_numbered_and_the_last_one_is_the_end(world: World) -> None:
    whole, none = TraceFilter(), TraceFilter(text="no such")
    asked = ((whole, 2, (12, 2, 3, 5)), (whole, 9, (12, 3, 3, 2)), (none, 1, (0, 1, 1, 0)))
    for chosen, page, expected in asked:
        shown = list_traces(world.store, chosen, for_leads=True, page=page, page_size=5)
        assert (shown.n, shown.page, shown.pages, len(shown.traces)) == expected


@pytest.mark.parametrize(
    "chosen",
    [TraceFilter(classes=("complete",)), TraceFilter(judge="j"), TraceFilter(models=("m",))],
)
def test_others_than_leads_cannot_ask_for_what_is_hidden(world: World, chosen: TraceFilter) -> None:
    for ask in (list_traces, traces_csv):
        with pytest.raises(InputError, match="for leads"):
            ask(world.store, chosen, for_leads=False)
    with pytest.raises(InputError, match="for leads"):
        batch_of(world.store, chosen, SamplingDesign(seed=0), for_leads=False)


def test_the_export_runs_no_formula_and_comes_back(world: World) -> None:
    evil = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "plain", "'=quoted", 'a,"b"\n=c']
    world.store.ingest([make_trace(f"z{k}", prompt=p) for k, p in enumerate(evil)])
    written = traces_csv(world.store, TraceFilter(), for_leads=False)
    rows = list(csv.DictReader(io.StringIO(written, newline="")))
    assert len(rows) == 12 + len(evil)
    cells = [row["task"] for row in rows[12:]]
    assert [cell[0] for cell in cells[:6]] == ["'"] * 6
    assert [unguard(cell) for cell in cells] == evil
    assert not {"class", "model", "cost_usd", "labels"} & set(rows[0])


def test_a_batch_of_a_selection_says_how_it_was_chosen(world: World) -> None:
    store = world.store

    def made(seed: int, n: int | None = 4) -> Batch:
        return batch_of(store, FILTER, SamplingDesign(seed=seed, labels_wanted=1), n=n)

    batch = made(3)
    drawn = items(store, batch)
    assert len(set(drawn)) == 4
    assert set(drawn) <= set(ids(12)[3:9]) == set(items(store, made(0, None)))
    assert store.batch_items(batch.batch_id)["inclusion_probability"].isna().all()
    assert batch.labels_wanted == 1
    assert batch.design["kind"] == "traces chosen by filters"
    assert TraceFilter.from_dict(batch.design["filters"]) == FILTER
    assert (batch.design["n"], batch.design["found"], batch.design["seed"]) == (4, 6, 3)
    assert items(store, made(3)) == drawn != items(store, made(4))
    once, twice = (batch_of(store, FILTER, SamplingDesign(seed=0, token="press")) for _ in range(2))
    assert once == twice
    before = store.batches()
    for seed, n, why in ((0, 0, "n must be"), (-1, 4, "seed must be"), (0, 7, "7 traces were")):
        with pytest.raises(CalibrationError, match=why):
            made(seed, n)
    with pytest.raises(CalibrationError, match="find no trace"):
        batch_of(store, TraceFilter(text="no such"), SamplingDesign(seed=0))
    assert store.batches() == before


@pytest.mark.parametrize(("workflow", "size"), [(None, 12), ("hotels", 5)])
def test_no_filter_makes_the_random_sample(world: World, workflow: str | None, size: int) -> None:
    chosen = TraceFilter() if workflow is None else TraceFilter(workflows=(workflow,))
    batch = batch_of(world.store, chosen, SamplingDesign(seed=5), n=3)
    drawn = draw_batch(world.store, SamplingDesign(seed=5, workflow=workflow), n=3)
    assert items(world.store, batch) == items(world.store, drawn)
    assert batch.design == drawn.design
    probability = world.store.batch_items(batch.batch_id)["inclusion_probability"].tolist()
    assert probability == [3 / size] * 3


def test_no_rate_comes_out_of_a_selection_and_agreement_says_so(world: World) -> None:
    batch = batch_of(world.store, FILTER, SamplingDesign(seed=0))
    chosen = World(store=world.store, batch_id=batch.batch_id, drawn=tuple(ids(12)[3:9]))
    for name in ("Ann", "Bob"):
        chosen.label(name, dict.fromkeys(chosen.drawn, "complete"))
    with pytest.raises(CalibrationError, match="no random sample of production"):
        rates_of_store(world.store, ReportOptions(batch_id=batch.batch_id))
    agreement = analyse_agreement(world.store, batch.batch_id)
    assert agreement.study.n_items == 6
    assert not agreement.is_sample
    lines = text_lines(agreement_text.agreement(agreement))
    assert any("not drawn at random" in line for line in lines)
    assert to_json.data(agreement)["random_sample_of_production"] is False
    # Without a name the newest sample is taken, and selections are passed over.
    world.label("Cem", dict.fromkeys(world.drawn, "complete"))
    assert rates_of_store(world.store).loaded.batch.batch_id == world.batch_id
    for to_label in (False, True):
        assert choose_batch(world.store, None, to_label=to_label).batch_id == world.batch_id
    assert analyse_agreement(world.store).batch_id == world.batch_id
