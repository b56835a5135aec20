"""A demonstration store: simulated reviewers, judge and production with known truth.

All rows are marked as simulated. Production runs carry the text of reference traces; classes,
costs, verdicts and labels are drawn from the rates below, so the true Agent Success Rate is known.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from calibration.analyses.evidence.from_store import trace_penalties
from calibration.analyses.reviewers.examinations import add_practice
from calibration.analyses.sampling.draw import SamplingDesign, batch_of, draw_batch
from calibration.analyses.success_rate.from_store import report_on_store
from calibration.analyses.success_rate.report import ReportOptions, SuccessRateReport
from calibration.errors import CalibrationError, InputError
from calibration.records import LabelDraft, Trace, Verdict
from calibration.store import UNLABELLED, Store, TraceFilter, import_token
from calibration.success_rate.runs import scores
from calibration.taxonomy import Taxonomy
from reference_dataset.loader import load_reference

JUDGE = "demo-judge"
REVIEWERS = ("Ada (simulated)", "Ben (simulated)", "Cleo (simulated)")
LEAD = "Demo lead"  # nobody's name: whoever looks at the demo may be this lead
N_PRODUCTION = 2_000
N_LABELLED = 300
CLASS_MIX = (0.52, 0.14, 0.14, 0.11, 0.09)
PARTIAL = (1, 2)
REVIEWER_ACCURACY = (0.97, 0.95, 0.93)

# The lenient reviewer, who calls this share of the partial classes complete; then a quarter of the
# traces is labelled twice.
LENIENT, LENIENCY, LENIENT_OVERLAP = 1, 0.3, 0.25

# Second labels of each reviewer; from the given one, the last reviewer is less careful.
N_REPEATS, DRIFTS_AT, DRIFTED_ACCURACY = 130, 60, 0.62

# Traces that two reviewers were asked about besides: some are labelled, on the first two they
# differ, one is flagged, and the rest are left to label.
N_CHOSEN, N_BEGUN, N_DISPUTED, FLAGGED_AT = 10, 6, 2, 4

# Rows: true class; columns: verdict. Like real judges, it is lenient: it passes wrong and
# invented answers as complete far more often than it fails good ones.
JUDGE_RATES = np.array(
    [
        [0.93, 0.04, 0.02, 0.01, 0.00],
        [0.24, 0.66, 0.08, 0.02, 0.00],
        [0.22, 0.10, 0.64, 0.04, 0.00],
        [0.20, 0.06, 0.10, 0.64, 0.00],
        [0.01, 0.02, 0.02, 0.00, 0.95],
    ]
)

# Expensive runs fail more often, so cost and class are dependent.
COST_FACTOR = (1.0, 1.1, 1.2, 1.1, 1.6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """The demonstration: the report on its sample, and the true rate."""

    report: SuccessRateReport
    truth: float
    seed: int


def build_demo(
    store: Store,
    *,
    seed: int,
    lenient: bool = False,
    unfinished: bool = False,
    n_production: int = N_PRODUCTION,
    n_labelled: int = N_LABELLED,
) -> float:
    """Fill an empty store and return the true Agent Success Rate of its production runs.

    With `lenient`, one of the three reviewers calls 30 % of the partly correct runs complete, and a
    quarter of the sample is labelled twice. With `unfinished` there is something to do on every
    page: a lead to be, and a second batch with open disagreements, a flag and traces left to label.
    Its traces are chosen, so that no rate changes.
    """
    if seed < 0:
        raise InputError(f"seed must be 0 or more, got {seed}")
    if not store.trace_frame().empty:
        raise CalibrationError(f"{store.path}: the demo needs an empty store")
    if any(one.has_passphrase for one in store.access()):
        raise CalibrationError(f"{store.path}: people sign in here; the demo needs another store")
    rng = np.random.default_rng(seed)
    taxonomy = store.taxonomy()
    dataset = load_reference()
    by_class = [
        [dataset.traces[i] for i, label in dataset.labels.items() if label.outcome == name]
        for name in taxonomy.names
    ]
    truth = rng.choice(len(taxonomy.names), size=n_production, p=CLASS_MIX)
    ceilings = {name: w.ceiling_usd or 1.0 for name, w in store.workflows().items()}
    runs = [_run(number, by_class[int(k)], int(k), ceilings, rng) for number, k in enumerate(truth)]
    store.ingest(runs)
    store.add_verdicts(
        [_verdict(run, taxonomy, int(k), rng) for run, k in zip(runs, truth, strict=True)]
    )
    true_class = {run.trace_id: int(k) for run, k in zip(runs, truth, strict=True)}
    _label_sample(store, taxonomy, true_class, seed, rng, n_labelled, lenient=lenient)
    _check_reviewers(store, taxonomy, true_class, seed)
    if unfinished:
        _begin_batch(store, taxonomy, true_class, seed)
        store.add_reviewer(LEAD, role="lead")
    # Last: the newest batch is what the Label page gives to people who are new.
    add_practice(store, dataset)
    store.set_identities("open")
    frame = store.trace_frame().set_index("trace_id").loc[[run.trace_id for run in runs]]
    return float(scores(truth, trace_penalties(frame), credit=taxonomy.credits).mean())


def needs_building(store: Store) -> bool:
    """Return whether the store is empty; raise CalibrationError if a build was interrupted."""
    frame = store.trace_frame()
    begun = frame["task_key"].str.startswith("demo/").any()
    if begun and not any(batch.purpose == "practice" for batch in store.batches()):
        raise CalibrationError(
            f"{store.path}: building this demo was cut off; remove the file or choose another one "
            "with --store"
        )
    return frame.empty


def run_demo(store: Store, *, seed: int, lenient: bool = False) -> Demo:
    """Build the demonstration, as `build_demo`, and report on it as on any other store."""
    truth = build_demo(store, seed=seed, lenient=lenient, unfinished=True)
    # The seed is for the data alone: the page and `asr report` resample this store alike.
    report = report_on_store(store, ReportOptions(judge_id=JUDGE))
    return Demo(report=report, truth=truth, seed=seed)


def _run(
    number: int,
    texts: list[Trace],
    outcome: int,
    ceilings: dict[str, float],
    rng: np.random.Generator,
) -> Trace:
    """Return one simulated production run with the text of a reference trace of its class."""
    text = texts[int(rng.integers(len(texts)))]
    budget = ceilings[text.workflow] * text.units
    cost = budget * 0.62 * COST_FACTOR[outcome] * float(rng.lognormal(sigma=0.35))
    start = datetime(2026, 7, 6, tzinfo=UTC) + timedelta(minutes=int(rng.integers(8 * 7 * 1440)))
    name = f"run-{number + 1:04d}"
    return replace(
        text,
        trace_id=name,
        source="demo",
        simulated=True,
        source_id=name,
        task_id=name,
        task_key=f"demo/{name}",
        model="demo-agent",
        started_at=start,
        cost_usd=round(cost, 4),
        latency_s=round((text.latency_s or 60.0) * float(rng.lognormal(sigma=0.3)), 1),
    )


def _verdict(run: Trace, taxonomy: Taxonomy, outcome: int, rng: np.random.Generator) -> Verdict:
    verdict = taxonomy.names[int(rng.choice(len(taxonomy.names), p=JUDGE_RATES[outcome]))]
    return Verdict(judge_id=JUDGE, trace_id=run.trace_id, outcome=verdict, simulated=True)


def _label_sample(
    store: Store,
    taxonomy: Taxonomy,
    true_class: dict[str, int],
    seed: int,
    rng: np.random.Generator,
    n_labelled: int,
    *,
    lenient: bool,
) -> None:
    """Let two of the three reviewers label each trace of the overlap, and adjudicate them."""
    people = [store.add_reviewer(name, simulated=True) for name in REVIEWERS]
    lead = store.add_reviewer("Lena (simulated lead)", role="lead", simulated=True)
    design = SamplingDesign(seed=seed, overlap=LENIENT_OVERLAP if lenient else 1.0)
    batch = draw_batch(store, design, n=n_labelled)
    complete = taxonomy.place(taxonomy.success)
    names, q = taxonomy.names, len(taxonomy.names)
    drafts = []
    items = store.batch_items(batch.batch_id)
    for trace_id, wanted in zip(items["trace_id"], items["labels_wanted"].tolist(), strict=True):
        pair = rng.choice(len(people), size=wanted, replace=False).tolist()
        truth = true_class[trace_id]
        outcomes = [_human_class(truth, REVIEWER_ACCURACY[p], q, rng) for p in pair]
        if lenient and LENIENT in pair and truth in PARTIAL and rng.random() < LENIENCY:
            outcomes[pair.index(LENIENT)] = complete
        for person, outcome in zip(pair, outcomes, strict=True):
            reviewer_id = people[person].reviewer_id
            name = names[outcome]
            drafts.append(
                LabelDraft(
                    client_token=import_token(
                        batch.batch_id, taxonomy.version, reviewer_id, trace_id, name
                    ),
                    trace_id=trace_id,
                    reviewer_id=reviewer_id,
                    batch_id=batch.batch_id,
                    answers=taxonomy.answers_for(name),
                    seconds_active=round(float(rng.lognormal(4.4, 0.5)), 1),
                )
            )
        if len(set(outcomes)) > 1:
            store.adjudicate(
                trace_id=trace_id,
                answers=taxonomy.answers_for(names[truth]),
                adjudicator=lead.reviewer_id,
                rationale="Settled by the simulated lead.",
                simulated=True,
            )
    store.import_labels(batch.batch_id, drafts)


def _check_reviewers(
    store: Store, taxonomy: Taxonomy, true_class: dict[str, int], seed: int
) -> None:
    """Let each reviewer repeat own labels and label gold items; the last reviewer drifts."""
    # A separate random stream: checks do not affect the rates of the demo.
    rng = np.random.default_rng([seed, 9])
    names = taxonomy.names
    (batch,) = store.batches()
    given = store.label_frame(batch.batch_id)
    settled = list(store.consensus_frame()["trace_id"])
    people = [r for r in store.reviewers() if r.role == "reviewer"]
    drafts = []
    for person, accuracy in zip(people, REVIEWER_ACCURACY, strict=True):
        own = given[given["reviewer_id"] == person.reviewer_id].set_index("trace_id")["outcome"]
        gold = [trace_id for trace_id in settled if trace_id not in own.index]
        n_repeats = min(N_REPEATS, len(own))
        repeats = rng.choice(own.index.to_numpy(), size=n_repeats, replace=False).tolist()
        drifts = person is people[-1]
        for number, trace_id in enumerate([*repeats, *gold]):
            now = DRIFTED_ACCURACY if drifts and number >= DRIFTS_AT else accuracy
            first = own.get(trace_id, names[true_class[trace_id]])
            name = names[_human_class(taxonomy.place(first), now, len(names), rng)]
            drafts.append(
                LabelDraft(
                    client_token=import_token(
                        f"{batch.batch_id} again", taxonomy.version, person.reviewer_id, trace_id,
                        name,
                    ),
                    trace_id=trace_id,
                    reviewer_id=person.reviewer_id,
                    batch_id=batch.batch_id,
                    answers=taxonomy.answers_for(name),
                    seconds_active=round(float(rng.lognormal(4.4, 0.5)), 1),
                )
            )  # fmt: skip
    store.import_hidden_items(batch.batch_id, drafts)


def _begin_batch(store: Store, taxonomy: Taxonomy, true_class: dict[str, int], seed: int) -> None:
    """Let two reviewers begin a batch of runs that the judge calls partly correct."""
    rng = np.random.default_rng([seed, 21])
    names = taxonomy.names
    chosen = TraceFilter(classes=(UNLABELLED,), judge=JUDGE, verdicts=(names[PARTIAL[0]],))
    batch_id = batch_of(store, chosen, SamplingDesign(seed=seed), n=N_CHOSEN).batch_id
    begun = store.batch_items(batch_id)["trace_id"].tolist()[:N_BEGUN]
    people = [r.reviewer_id for r in store.reviewers() if r.role == "reviewer"][:2]
    (lead,) = [r.reviewer_id for r in store.reviewers() if r.role == "lead"]
    drafts = []
    for number, trace_id in enumerate(begun):
        truth = true_class[trace_id]
        for place, reviewer_id in enumerate(people):
            wrong = number < N_DISPUTED and place == 1
            name = names[_human_class(truth, 0.0 if wrong else 1.0, len(names), rng)]
            drafts.append(
                LabelDraft(
                    client_token=import_token(
                        batch_id, taxonomy.version, reviewer_id, trace_id, name
                    ),
                    trace_id=trace_id,
                    reviewer_id=reviewer_id,
                    batch_id=batch_id,
                    answers=taxonomy.answers_for(name),
                    seconds_active=round(float(rng.lognormal(4.4, 0.5)), 1),
                )
            )
    # Who flags a trace must have been given it.
    store.queue(people[0], batch_id, limit=N_CHOSEN)
    store.import_labels(batch_id, drafts)
    store.record_flag(
        client_token=f"flag of {begun[FLAGGED_AT]}",
        trace_id=begun[FLAGGED_AT],
        reviewer_id=people[0],
        batch_id=batch_id,
        flagged=True,
        reason="Two requests in one: which of them counts?",
    )
    store.release_leases(batch_id=batch_id, reviewer_id=people[0], by=lead)


def _human_class(outcome: int, accuracy: float, n_classes: int, rng: np.random.Generator) -> int:
    """Return the true class or, at random, an erroneous one."""
    if rng.random() < accuracy:
        return outcome
    others: NDArray[np.int64] = np.delete(np.arange(n_classes), outcome)
    return int(rng.choice(others))
