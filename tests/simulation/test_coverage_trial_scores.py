"""Coverage of pass@k and pass^k from corrected verdicts, and of the two ways that are wrong.

Trials of tasks are seen by a judge; labels are other traces, or some of the trials themselves.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import pytest

from calibration.judge_calibration.samples import LabelledSample
from calibration.judge_calibration.trial_scores import WIDEST, pass_from_verdicts, subset_means
from calibration.statistics.estimate import Estimate
from tests.simulation.judged import Array, Band, Floats, Judge, Tally, give_all

pytestmark = pytest.mark.slow
SEED, TRIALS, KS = 20290, 5, (1, 2, 4)
MANY, RESAMPLES = 2_000, 400
BAND = (0.925, 0.98)

# A figure that few tasks decide has a short interval, and the product shows few of them.
KNOWN_TO_BE_SHORT = (0.60, 0.98)
HONEST, RARE = (0.925, 1.0), 6

# Wide enough for any interval to be counted.
ANY = 9.0

# In the status of a figure that few tasks decide.
FEW = " judged "

# Of five classes: lenient towards the second, and otherwise rather strict.
FIVE = np.array([
    [0.88, 0.06, 0.03, 0.02, 0.01],
    [0.30, 0.55, 0.10, 0.03, 0.02],
    [0.10, 0.20, 0.60, 0.05, 0.05],
    [0.12, 0.05, 0.08, 0.70, 0.05],
    [0.02, 0.03, 0.05, 0.05, 0.85],
])  # fmt: skip
FAILED = np.array([0.4, 0.25, 0.25, 0.1])


def two_classes(accuracy: float) -> Floats:
    """Return P(verdict | class) of passed and failed trials."""
    return np.array([[accuracy, 1 - accuracy], [1 - accuracy, accuracy]])


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    """Tasks of Beta(a, b), a judge, and labels `of_trials` or of other traces."""

    rates: Floats
    named: str
    tasks: int
    labels: int
    a: float = 2.0
    b: float = 1.0
    of_trials: bool = False

    def __str__(self) -> str:
        where = "of the trials" if self.of_trials else "of other traces"
        return (
            f"{self.named}, Beta({self.a:g}, {self.b:g}), {self.tasks} tasks x {TRIALS}, "
            f"{self.labels} labels {where}"
        )

    def truth(self, k: int) -> tuple[float, float]:
        """Return pass@k and pass^k of the population of tasks."""
        total = self.a + self.b
        all_pass, none = (prod((of + i) / (total + i) for i in range(k)) for of in (self.a, self.b))
        return 1 - none, all_pass

    def classes(self, rng: np.random.Generator, tasks: int, trials: int) -> Array:
        """Draw classes; a task always fails in the same way, the better ones by the second."""
        p = rng.beta(self.a, self.b, tasks)
        way = np.ones(tasks, dtype=np.int64)
        if len(self.rates) > 2:
            order = np.argsort(rng.normal(0, 0.2, tasks) - p)
            places = (np.arange(tasks) + 0.5) / tasks
            way[order] = 1 + np.searchsorted(FAILED.cumsum(), places)
        return np.where(rng.random((tasks, trials)) < p[:, None], 0, way[:, None])

    def verdicts(self, rng: np.random.Generator, classes: Array) -> Array:
        above = rng.random((*classes.shape, 1)) > self.rates.cumsum(axis=1)[classes]
        return np.asarray(above.sum(axis=-1).clip(0, len(self.rates) - 1))


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawn:
    """Verdicts of tasks x trials; class, verdict and task of the labels."""

    verdicts: Array
    classes: Array
    given: Array
    clusters: Array | None


def draws(setting: Setting, part: int, repetitions: int) -> Iterator[Drawn]:
    rng = np.random.default_rng([SEED, part])
    for _ in range(repetitions):
        classes = setting.classes(rng, setting.tasks, TRIALS)
        verdicts = setting.verdicts(rng, classes)
        clusters = None
        if setting.of_trials:
            which = rng.permutation(classes.size)[: setting.labels]
            labels, given, clusters = (
                classes.ravel()[which],
                verdicts.ravel()[which],
                which // TRIALS,
            )
        else:
            labels = setting.classes(rng, setting.labels, 1).ravel()
            given = setting.verdicts(rng, labels)
        yield Drawn(verdicts=verdicts, classes=labels, given=given, clusters=clusters)


def figures(drawn: Drawn, seed: int, n_classes: int, **options: Any) -> list[Estimate]:
    """Estimate, with all failed classes together where there are to be two classes."""
    labels = np.minimum(drawn.classes, n_classes - 1)
    found = pass_from_verdicts(
        LabelledSample(
            human=np.eye(n_classes)[labels], verdicts=drawn.given, clusters=drawn.clusters
        ),
        drawn.verdicts.ravel(), np.repeat(np.arange(len(drawn.verdicts)), TRIALS), KS,
        success=np.arange(n_classes) == 0, rng=np.random.default_rng(seed),
        n_verdicts=1 + int(max(drawn.verdicts.max(), drawn.given.max(), n_classes - 1)),
        **({"n_resamples": RESAMPLES} | options),
    )  # fmt: skip
    return [estimate for one in found for estimate in (one.pass_at_k, one.pass_hat_k)]


def tallies(
    setting: Setting, part: int, repetitions: int, n_classes: int
) -> list[tuple[str, Tally, Tally]]:
    """Return by figure how often its interval covers, and how often it is right or withheld."""
    found = [
        (f"{of}{k}", Tally(truth), Tally(truth))
        for k in KS
        for of, truth in zip(("pass@", "pass^"), setting.truth(k), strict=True)
    ]
    for seed, drawn in enumerate(draws(setting, part, repetitions)):
        at_all = figures(drawn, seed, n_classes, widest=ANY, fewest_tasks=0)
        # Which figures have too few tasks does not depend on resamples.
        tasks = figures(drawn, seed, n_classes, widest=ANY, n_resamples=2)
        for (_, covers, right), one, enough in zip(found, at_all, tasks, strict=True):
            half = one.half_width
            shown = half is not None and half <= WIDEST and FEW not in enough.status
            covers.add(one, refused=not shown)
            low, high = one.interval if shown and one.interval else (0.0, 1.0)
            right.count(low <= right.truth <= high, (half or 0.0) * shown)
    return found


SETTINGS = [
    *(
        Setting(rates=two_classes(accuracy), named=f"judge {accuracy}", tasks=tasks, labels=labels)
        for accuracy in (0.85, 0.9)
        for tasks in (50, 100)
        for labels in (200, 300)
    ),
    Setting(
        rates=two_classes(0.9), named="judge 0.9", tasks=100, labels=250, a=8, b=2, of_trials=True
    ),
    Setting(
        rates=two_classes(0.85), named="judge 0.85", tasks=50, labels=200, a=1, b=2, of_trials=True
    ),
]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_corrected_verdicts_cover(judge: Judge, setting: Setting) -> None:
    found = tallies(setting, SETTINGS.index(setting), MANY, 2)
    rows: list[tuple[Tally, str, str, Band]] = []
    for figure, covers, right in found:
        # Tasks of 4 trials that all fail, or all pass.
        rare = setting.tasks * (1 - right.truth if "@" in figure else right.truth)
        short = figure[-1] == "4" and rare < RARE
        name = f"{figure} from verdicts"
        if short:
            rows.append((covers, f"{name}, known to be short", str(setting), KNOWN_TO_BE_SHORT))
        else:
            rows.append((covers, name, str(setting), BAND))
        if figure[-1] == "4":
            rows.append((right, f"{name}, right or withheld", str(setting), HONEST))
    give_all(judge, SEED, *rows)


FIVE_CLASSES = Setting(
    rates=FIVE, named="judge of five classes", tasks=200, labels=600, of_trials=True
)
MANY_LABELS = replace(FIVE_CLASSES, tasks=1_000, labels=3_000)


@pytest.mark.parametrize(("setting", "repetitions"), [(FIVE_CLASSES, MANY), (MANY_LABELS, 600)])
def test_five_classes_are_covered(judge: Judge, setting: Setting, repetitions: int) -> None:
    """The judge errs by how a trial failed, and a task always fails in the same way."""
    rows = [
        (covers, f"{figure} from verdicts", str(setting), (0.91, 0.995))
        for figure, covers, _ in tallies(setting, 50, repetitions, 5)
    ]
    give_all(judge, SEED, *rows)


def test_failed_classes_taken_as_one_do_not_cover(judge: Judge) -> None:
    """A wrong way: the verdicts of a task depend on how it fails, and not each on its own."""
    for figure, covers, _ in tallies(MANY_LABELS, 51, 600, 2):
        if figure[-1] != "1":
            name = f"control: {figure} from verdicts, failed classes as one: must fail"
            covers.give(judge, name, str(MANY_LABELS), seed=SEED, band=(0.0, 0.70))


@pytest.mark.parametrize("k", [2, 4])
def test_products_of_chances_given_the_verdict_are_biased(judge: Judge, k: int) -> None:
    """The other wrong way: P(passed given verdict) in place of the score."""
    setting, rng = SETTINGS[2], np.random.default_rng([SEED, 60 + k])
    truth, sizes, values = setting.truth(k)[1], np.full(setting.tasks, TRIALS), []
    tally = Tally(truth)
    for drawn in draws(setting, 2, MANY):
        labels = np.minimum(drawn.classes, 1)
        cells = np.bincount(labels * 2 + drawn.given, minlength=4)
        again = rng.multinomial(setting.labels, cells / cells.sum(), 300)
        tables = np.concatenate([cells[None], again])
        passed = tables[:, :2] / (tables[:, :2] + tables[:, 2:])
        of_task = subset_means(passed[:, drawn.verdicts], sizes, k)[k]
        times = rng.multinomial(setting.tasks, sizes / sizes.sum(), len(tables))
        means = (of_task * times).sum(axis=1)[1:] / setting.tasks
        values.append(float(of_task[0].mean()))
        low, high = np.quantile(means, [0.025, 0.975]).tolist()
        tally.count(low <= truth <= high, (high - low) / 2)
    mean = float(np.mean(values))
    assert mean < truth - 0.02, f"{mean:.3f} against {truth:.3f}"
    name = f"control: pass^{k}, products of P(passed given verdict): must fail"
    in_full = f"{setting}, mean {mean:.3f} of {truth:.3f}"
    tally.give(judge, name, in_full, seed=SEED, band=(0.0, 0.85))
