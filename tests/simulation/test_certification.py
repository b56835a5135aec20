"""How often an examination is passed, by how often its reviewer is right; and leniency.

The form is the first shipped one. A reviewer is right equally often in every class and errs at
any question of the path alike. With ASR_SIMULATION_TABLE the chances are written into
certification.md beside that file.
"""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from calibration.agreement.annotators import against_key
from calibration.analyses.reviewers.exam_report import (
    ACCURACIES,
    OperatingPoint,
    ac1_lower_limits,
    operating_curve,
)
from calibration.reviewers.certification import ClassCount, decide
from calibration.reviewers.quality import leniency, leniency_on_mix
from calibration.taxonomy import default_taxonomy
from reference_dataset.loader import load_reference
from tests.classes import OUTCOMES
from tests.simulation.judged import Judge, Tally

pytestmark = pytest.mark.slow
REPETITIONS, SEED = 20_000, 9
BEGIN, END = "<!-- operating curve -->\n", "<!-- end of operating curve -->\n"
HEAD = """\
| right | AC1 part | AC1 part, recall .6 seen | whole rule, topped up | within two attempts |
|---|---|---|---|---|
"""
TREE = default_taxonomy()


def form() -> Counter[str]:
    dataset = load_reference()
    return Counter(dataset.labels[i].outcome for i in dataset.forms["exam_a"])


@pytest.fixture(scope="module")
def curve() -> Iterator[dict[float, OperatingPoint]]:
    rng = np.random.default_rng(SEED)
    points = operating_curve(TREE, form(), rng=rng, n_draws=REPETITIONS)
    yield {p.accuracy: p for p in points}
    target = os.environ.get("ASR_SIMULATION_TABLE")
    if target:
        write(Path(target).with_name("certification.md"), points)


def write(page: Path, points: tuple[OperatingPoint, ...]) -> None:
    """Put the table between its marks."""
    rows = "".join(
        f"| {p.accuracy:.2f} | {p.agreement:.1%} | {p.with_floor:.1%} | {p.whole:.1%} "
        f"| {p.twice:.1%} |\n"
        for p in points
    )
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}{HEAD}{rows}{END}{after}", encoding="utf-8")


@pytest.mark.parametrize(
    ("accuracy", "chance"), [(0.80, 0.08), (0.86, 0.47), (0.90, 0.84), (0.95, 0.998)]
)
def test_the_agreement_with_a_floor_is_passed_as_often_as_said(
    curve: dict[float, OperatingPoint], accuracy: float, chance: float
) -> None:
    # The figures of the method are printed to a percent, and of another spread of errors.
    assert curve[accuracy].with_floor == pytest.approx(chance, abs=0.02)


def test_the_curve_rises_and_each_further_demand_costs(curve: dict[float, OperatingPoint]) -> None:
    points = [curve[a] for a in ACCURACIES]
    for p in points:
        assert p.agreement >= p.with_floor
        assert p.agreement >= p.whole
        assert p.twice >= p.whole
    for name in ("agreement", "with_floor", "whole", "twice"):
        values = [getattr(p, name) for p in points]
        assert all(b >= a - 0.005 for a, b in pairwise(values))


def test_the_quick_limits_are_those_of_the_agreement_package() -> None:
    rng = np.random.default_rng(SEED)
    sizes = np.array([form()[name] for name in OUTCOMES])
    rates = 0.86 * np.eye(5) + 0.14 * (1 - np.eye(5)) / 4
    some = np.stack([rng.multinomial(n, p, size=200) for n, p in zip(sizes, rates, strict=True)], 1)
    tables = np.concatenate([some, np.diag(sizes)[None]])
    quick = ac1_lower_limits(tables)
    for table, limit in zip(tables, quick, strict=True):
        key, given = np.repeat(np.divmod(np.arange(25), 5), table.ravel(), axis=1)
        (slow,) = against_key(given[:, None], key, n_classes=5)
        assert slow.gwet_ac.interval is not None
        assert limit == pytest.approx(slow.gwet_ac.interval[0], abs=1e-9)


@pytest.mark.parametrize("accuracy", [0.80, 0.90])
def test_a_pass_of_the_whole_rule_is_one_of_the_rule_itself(accuracy: float) -> None:
    """Simulate one by one, by `decide` and `against_key`, what the curve does all at once."""
    rng = np.random.default_rng([SEED, round(100 * accuracy)])
    counts, n, passed = form(), 1_500, 0
    (point,) = operating_curve(TREE, counts, rng=rng, accuracies=(accuracy,), n_draws=REPETITIONS)
    paths = {name: list(TREE.answers_for(name).items()) for name in OUTCOMES}
    for _ in range(n):
        given, due = [], []
        for name in OUTCOMES:
            for _ in range(counts[name]):
                due.append(name)
                given.append(name if rng.random() < accuracy else beside(name, paths, rng))
        code = {name: k for k, name in enumerate(OUTCOMES)}
        (found,) = against_key(
            np.array([[code[g]] for g in given]), np.array([code[d] for d in due]), n_classes=5
        )
        limit = found.gwet_ac.interval[0] if found.gwet_ac.interval else None
        hits = Counter(d for d, g in zip(due, given, strict=True) if d == g)
        shown = [ClassCount(outcome=c, hits=hits[c], n=counts[c]) for c in OUTCOMES]
        decision = decide(limit, shown)
        if decision.status == "top_up":
            topped = [
                replace(c, hits=c.hits + int(rng.binomial(8, accuracy)), n=c.n + 8)
                if c.outcome in decision.short else c
                for c in shown
            ]  # fmt: skip
            decision = decide(limit, topped, topped_up=decision.short)
        passed += decision.status == "passed"
    assert binomtest(passed, n, point.whole).pvalue > 0.001


def beside(name: str, paths: dict[str, list[tuple[str, str]]], rng: np.random.Generator) -> str:
    """Err at one question of the path and end on its other side."""
    place = int(rng.integers(len(paths[name])))
    node, answer = paths[name][place]
    others = [
        o
        for o in OUTCOMES
        if paths[o][:place] == paths[name][:place] and dict(paths[o]).get(node, answer) != answer
    ]
    return str(others[int(rng.integers(len(others)))])


@pytest.mark.parametrize("accuracy", [0.80, 0.90])
@pytest.mark.parametrize("mix", ["form", "production"])
def test_leniency_covers(judge: Judge, accuracy: float, mix: str) -> None:
    rng = np.random.default_rng([SEED, 2, round(100 * accuracy), mix == "form"])
    credit = np.array([TREE.credit[name] for name in OUTCOMES])
    sizes = np.array([form()[name] for name in OUTCOMES])
    shares = sizes / sizes.sum() if mix == "form" else np.array([0.52, 0.14, 0.14, 0.11, 0.09])
    # Errors that are all too generous: one class up in credit, and down where there is none.
    to = np.array([1, 0, 1, 1, 1])
    truth = 100 * (1 - accuracy) * float((shares * (credit[to] - credit)).sum())
    key = np.repeat(np.arange(5), sizes)
    names, repetitions, tally = [OUTCOMES[k] for k in key], 4_000, Tally(truth)
    for _ in range(repetitions):
        # For the form's mix the traces are a sample of it; for another one, given by class.
        of = rng.choice(5, size=len(key), p=shares) if mix == "form" else key
        given = np.where(rng.random(len(of)) < accuracy, of, to[of])
        if mix == "form":
            found = leniency(credit[given].tolist(), credit[of].tolist())
        else:
            found = leniency_on_mix(
                credit[given].tolist(), credit[of].tolist(), names,
                dict(zip(OUTCOMES, shares.tolist(), strict=True)),
            )  # fmt: skip
        low, high = found.interval or (found.value, found.value)
        assert low is not None
        assert high is not None
        tally.count(low <= truth <= high, (high - low) / 2)
    # Of a mix that is not the form's a class of few traces with few errors weighs most.
    band = (0.93, 0.97) if mix == "form" else (0.90, 0.97)
    setting = f"{mix} mix, {accuracy:.0%} right, 70 traces"
    tally.give(judge, "leniency in ASR points", setting, seed=SEED, band=band)
