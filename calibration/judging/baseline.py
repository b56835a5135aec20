"""The baseline judge: words and facts of a run, put into a logistic regression at no cost.

It is fitted on practice labels alone and shows what a judge has to beat besides the majority class.
It knows nothing of the task: what it finds is what length, wording, errors and unsupported figures
say of the class.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import sklearn  # type: ignore[import-untyped]
from scipy import sparse, special
from sklearn.feature_extraction.text import TfidfVectorizer  # type: ignore[import-untyped]
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

from calibration.errors import InputError
from calibration.records import Step, TraceForReview, Verdict
from calibration.statistics.estimate import FloatArray, IntArray
from calibration.taxonomy import Taxonomy

NAME = "baseline"
FEATURES = "1"  # raised with every change of what is read from a trace
STRENGTHS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
FOLDS = 10
LAST_STEPS = 3
HEAD, TAIL = 2_000, 2_000  # characters of a text that are read
MOST_TERMS = 20_000  # of one kind of terms in one text
PART = 250  # traces that are in memory as features at once
FURTHEST = 4.0  # standard deviations of a fact; beyond, it says no more
NO_SIZE = 1e-12  # of a direction in which the traces differ by rounding alone
LEAST_CHANCE = 1e-15  # of a class in the log loss, so that it stays finite

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_THOUSANDS = re.compile(r",(?=\d{3}(?!\d))")
_WORD = re.compile(r"[^\W\d_][\w'-]*")
# A capital within a sentence; at its beginning every word has one.
_NAME = re.compile(r"(?<=[\w,;)] )[A-ZÀ-ÖØ-Þ][\w'-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class PracticeExample:
    """A trace with its practice label; `task_key` joins the runs of a task."""

    trace: TraceForReview
    task_key: str
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """What the baseline reads of a trace."""

    texts: tuple[str, str, str]  # response, task, last steps
    status: str
    facts: tuple[float, ...]

    def key(self) -> str:
        """Return the same text for traces that the baseline cannot tell apart."""
        return _hash([self.texts, self.status, self.facts])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Features:
    """Vocabularies and scales, learned from the traces of one fit."""

    vectorizers: tuple[tuple[int, Any], ...]  # which text, and its fitted vectorizer
    statuses: tuple[str, ...]
    centre: FloatArray
    scale: FloatArray

    def of(self, readings: Sequence[_Reading]) -> Any:
        """Return the features, a sparse matrix of shape (n_traces, n_features)."""
        facts = (_facts(readings, self.statuses) - self.centre) / self.scale
        blocks: list[Any] = [sparse.csr_array(facts.clip(-FURTHEST, FURTHEST))]
        blocks += [v.transform([r.texts[k] for r in readings]) for k, v in self.vectorizers]
        return sparse.hstack(blocks, format="csr")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Regression:
    """Features and coefficients of one fit; a class without a label has no chance."""

    features: _Features
    weights: FloatArray  # shape (n_features, n_classes)
    constants: FloatArray

    def chances(self, matrix: Any) -> FloatArray:
        """Return the probability of each class, shape (n_traces, n_classes)."""
        return np.asarray(special.softmax(matrix @ self.weights + self.constants, axis=1))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Baseline:
    """A fitted baseline judge.

    Parameters
    ----------
    judge_id : str
        Hash of all that can change a verdict: practice traces, their content, tasks and labels, the
        taxonomy, the features, the strength and the release of scikit-learn.
    trained_on : tuple of str
        Ids of the practice traces, in order.
    out_of_fold : tuple of Verdict
        Of the practice traces, each by a fit without the traces of its task.
    majority : str
        The most frequent class of the practice labels: what a judge says that reads nothing.
    strength : float
        C of the logistic regression, inverse to the penalty.
    log_loss : float
        Out of fold, classes weighted alike; log(number of classes) is that of a guess.
    """

    judge_id: str
    trained_on: tuple[str, ...]
    out_of_fold: tuple[Verdict, ...]
    majority: str
    strength: float
    log_loss: float
    names: tuple[str, ...]
    fit: _Regression
    known: dict[str, str]  # outcome out of fold, by what was read of a practice trace
    name: str = NAME

    def predict(self, traces: Iterable[TraceForReview]) -> Iterator[Verdict]:
        """Yield the verdict of each trace, in order; memory stays bounded for any number.

        A trace that the fit has seen, under any id, gets its verdict out of fold.
        """
        # Of a part only what was read is held: a trace may have megabytes of results.
        rest = ((trace.trace_id, _read(trace)) for trace in traces)
        while part := list(islice(rest, PART)):
            readings = [reading for _, reading in part]
            chances = self.fit.chances(self.fit.features.of(readings))
            for (trace_id, reading), code in zip(
                part, chances.argmax(axis=1).tolist(), strict=True
            ):
                outcome = self.known.get(reading.key(), self.names[code])
                yield _verdict(self.judge_id, trace_id, outcome)


def fit_baseline(examples: Sequence[PracticeExample], taxonomy: Taxonomy) -> Baseline:
    """Fit the baseline judge on practice labels.

    Features are TF-IDF of words (1 and 2) and characters (3 to 5) of response, task and last three
    steps, and facts of the run: status, share of failed results, steps, lengths, and the shares of
    figures and names in the response that occur in what the agent was given. They enter a
    multinomial logistic regression with classes weighted alike, as rare ones matter as much. Its
    strength is that of the smallest log loss over ten folds, in which the runs of a task stay
    together and vocabularies are learned anew. The result is the same for the same examples in any
    order, and takes seconds for a few hundred.

    Parameters
    ----------
    examples : sequence of PracticeExample
        Practice labels only: no trace of an examination, and none that is to correct a rate.
    taxonomy : Taxonomy

    Raises
    ------
    InputError
        If a label is no class, a trace occurs twice, or there are not two classes with labels of
        two tasks each.

    References
    ----------
    Salton and Buckley (1988), "Term-weighting approaches in automatic text retrieval", Inf.
    Process. Manag. 24. https://doi.org/10.1016/0306-4573(88)90021-0
    Le Cessie and van Houwelingen (1992), "Ridge estimators in logistic regression", J. R. Stat.
    Soc. C 41. https://doi.org/10.2307/2347628

    Examples
    --------
    Runs that answer and runs that give up differ in one word:

    >>> from calibration.taxonomy import default_taxonomy
    >>> def run(number, response):
    ...     return TraceForReview(
    ...         trace_id=f"t{number}", workflow="w", prompt="Which day is it?", inputs=(),
    ...         sub_goals=(), steps=(), response=response, status=None, agent="a", latency_s=None)
    >>> answers = {"It is Monday.": "complete", "Sorry, no.": "abandoned"}
    >>> examples = [
    ...     PracticeExample(trace=run(n, text), task_key=f"k{n}", outcome=answers[text])
    ...     for n, text in enumerate(list(answers) * 4)]
    >>> judge = fit_baseline(examples, default_taxonomy())
    >>> new = [run(8, "Sorry, no!"), run(9, "It is Friday.")]
    >>> [verdict.outcome for verdict in judge.predict(new)]
    ['abandoned', 'complete']
    """
    ordered = sorted(examples, key=lambda example: example.trace.trace_id)
    _check(ordered, taxonomy)
    readings = [_read(example.trace) for example in ordered]
    codes = np.array([taxonomy.place(example.outcome) for example in ordered])
    fold = _folds([example.task_key for example in ordered], codes)
    names = taxonomy.names
    losses, out_of_fold = _by_strength(readings, codes, fold, len(names))
    best = int(np.argmin(losses))
    given = [names[code] for code in out_of_fold[best].argmax(axis=1).tolist()]
    judge_id = _judge_id(ordered, readings, taxonomy, STRENGTHS[best])
    counts = Counter(example.outcome for example in ordered)
    return Baseline(
        judge_id=judge_id,
        trained_on=tuple(example.trace.trace_id for example in ordered),
        out_of_fold=tuple(
            _verdict(judge_id, example.trace.trace_id, outcome)
            for example, outcome in zip(ordered, given, strict=True)
        ),
        majority=max(names, key=lambda name: counts[name]),
        strength=STRENGTHS[best],
        log_loss=losses[best],
        names=names,
        fit=_fit(readings, codes, (STRENGTHS[best],), len(names))[0],
        known={reading.key(): outcome for reading, outcome in zip(readings, given, strict=True)},
    )


def _check(examples: Sequence[PracticeExample], taxonomy: Taxonomy) -> None:
    """Raise InputError for examples that no fit can use."""
    tasks: dict[str, set[str]] = {}
    seen: set[str] = set()
    for example in examples:
        trace_id = example.trace.trace_id
        if example.outcome not in taxonomy.names:
            raise InputError(f"trace {trace_id!r}: label {example.outcome!r} is not a class")
        if trace_id in seen:
            raise InputError(f"trace {trace_id!r} has two practice labels: give one")
        seen.add(trace_id)
        tasks.setdefault(example.outcome, set()).add(example.task_key)
    if sum(len(keys) >= 2 for keys in tasks.values()) < 2:
        raise InputError(
            "the baseline needs practice labels of two classes, in two tasks each: label more"
        )


def _judge_id(
    examples: Sequence[PracticeExample],
    readings: Sequence[_Reading],
    taxonomy: Taxonomy,
    strength: float,
) -> str:
    version = {
        "judge": NAME,
        "features": FEATURES,
        "scikit-learn": ".".join(sklearn.__version__.split(".")[:2]),
        "taxonomy": [taxonomy.version, *taxonomy.names],
        "strength": strength,
        "examples": [
            [example.trace.trace_id, example.task_key, example.outcome, reading.key()]
            for example, reading in zip(examples, readings, strict=True)
        ],
    }
    return _hash(version)[:16]


def _hash(content: object) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _verdict(judge_id: str, trace_id: str, outcome: str) -> Verdict:
    return Verdict(judge_id=judge_id, trace_id=trace_id, outcome=outcome, cost_usd=0.0)


def _folds(task_keys: Sequence[str], codes: IntArray) -> IntArray:
    """Return the fold of each trace: tasks stay whole, and every class is spread evenly."""
    tasks, task = np.unique(np.array(task_keys), return_inverse=True)
    counts = np.zeros((tasks.size, int(codes.max()) + 1))
    np.add.at(counts, (task, codes), 1)
    total = np.maximum(counts.sum(axis=0), 1)
    # Tasks with rare classes are placed first, while every fold has room for them.
    order = np.lexsort((np.arange(tasks.size), -(counts / total).sum(axis=1)))
    held = np.zeros((min(FOLDS, tasks.size), counts.shape[1]))
    fold = np.zeros(tasks.size, dtype=np.int64)
    for place in order.tolist():
        crowded = ((held + counts[place]) ** 2 - held**2) / total
        fullness = crowded.sum(axis=1) + 1e-6 * held.sum(axis=1)
        fold[place] = int(np.argmin(fullness))
        held[fold[place]] += counts[place]
    return fold[task]


def _by_strength(
    readings: Sequence[_Reading], codes: IntArray, fold: IntArray, n_classes: int
) -> tuple[list[float], FloatArray]:
    """Return the log loss of each strength and its probabilities, both out of fold."""
    found = np.zeros((len(STRENGTHS), codes.size, n_classes))
    for left_out in np.unique(fold).tolist():
        inside, outside = (fold != left_out).nonzero()[0], (fold == left_out).nonzero()[0]
        fits = _fit([readings[k] for k in inside.tolist()], codes[inside], STRENGTHS, n_classes)
        rest = fits[0].features.of([readings[k] for k in outside.tolist()])
        for number, fit in enumerate(fits):
            found[number, outside] = fit.chances(rest)
    weight = 1 / np.bincount(codes, minlength=n_classes)[codes]
    own = np.maximum(found[:, np.arange(codes.size), codes], LEAST_CHANCE)
    losses = -(np.log(own) @ weight) / weight.sum()
    return losses.tolist(), found


def _fit(
    readings: Sequence[_Reading], codes: IntArray, strengths: Sequence[float], n_classes: int
) -> list[_Regression]:
    """Learn the features once, and fit a regression of each strength.

    The coefficients of a ridge lie in the span of the traces: there it has as many columns as there
    are traces, instead of tens of thousands, and the same solution.
    """
    features = _learned(readings)
    matrix = features.of(readings)
    size, axes = np.linalg.eigh((matrix @ matrix.T).toarray())
    kept = size > NO_SIZE * size[-1]
    length, axes = np.sqrt(size[kept]), axes[:, kept]
    fits = []
    for strength in strengths:
        model = LogisticRegression(C=strength, class_weight="balanced", tol=1e-8, max_iter=9_999)
        model.fit(axes * length, codes)
        weights = np.zeros((matrix.shape[1], n_classes))
        constants = np.full(n_classes, -np.inf)
        # Of two classes scikit-learn has the coefficients of the second alone.
        own = model.classes_ if len(model.classes_) > 2 else model.classes_[1:]
        constants[model.classes_] = 0.0
        constants[own] = model.intercept_
        weights[:, own] = matrix.T @ (axes / length @ model.coef_.T)
        fits.append(_Regression(features=features, weights=weights, constants=constants))
    return fits


def _learned(readings: Sequence[_Reading]) -> _Features:
    vectorizers = []
    for place in range(len(readings[0].texts)):
        texts = [reading.texts[place] for reading in readings]
        for analyzer, lengths in (("word", (1, 2)), ("char_wb", (3, 5))):
            vectorizer = TfidfVectorizer(
                analyzer=analyzer, ngram_range=lengths, sublinear_tf=True, min_df=2,
                max_features=MOST_TERMS, dtype=np.float64,
            )  # fmt: skip
            try:
                vectorizer.fit(texts)
            except ValueError:  # no term occurs in two traces
                continue
            vectorizers.append((place, vectorizer))
    statuses = tuple(sorted({reading.status for reading in readings}))
    facts = _facts(readings, statuses)
    spread = facts.std(axis=0)
    return _Features(
        vectorizers=tuple(vectorizers), statuses=statuses, centre=facts.mean(axis=0),
        scale=np.where(spread > 0, spread, 1.0),
    )  # fmt: skip


def _facts(readings: Sequence[_Reading], statuses: tuple[str, ...]) -> FloatArray:
    is_status = [[float(reading.status == status) for status in statuses] for reading in readings]
    return np.hstack([np.array([reading.facts for reading in readings]), np.array(is_status)])


def _read(trace: TraceForReview) -> _Reading:
    """Read the texts and the facts of a trace."""
    response, steps = trace.response or "", trace.steps
    results = [step.result for step in steps if step.result is not None]
    given = [trace.prompt, *(document.text for document in trace.inputs), *results]
    calls = sum(step.arguments is not None for step in steps)
    figures, names = _supported(response, given)
    sizes = (len(response), len(trace.prompt), len(steps), calls, sum(map(len, results)))
    errors = sum(step.error for step in steps) / max(1, len(results))
    return _Reading(
        texts=(
            _ends(response),
            _ends(trace.prompt),
            _ends("\n".join(_words(step) for step in steps[-LAST_STEPS:])),
        ),
        status=trace.status or "",
        facts=(*np.log1p(sizes).tolist(), float(not response.strip()), errors, figures, names),
    )


def _words(step: Step) -> str:
    parts = (step.role, step.tool, step.content, step.arguments, step.result)
    return "\n".join(_ends(part) for part in parts if part)


def _ends(text: str) -> str:
    """Return a text of bounded length: its beginning and its end."""
    return text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}\n{text[-TAIL:]}"


def _supported(response: str, given: Sequence[str]) -> tuple[float, float]:
    """Return the shares of figures and of names in a response that occur in the given texts."""
    figures, names = _figures(response), {name.casefold() for name in _NAME.findall(response)}
    given_figures = set().union(*map(_figures, given))
    given_words = {word.casefold() for text in given for word in _WORD.findall(text)}
    return _share(figures, given_figures), _share(names, given_words)


def _figures(text: str) -> set[str]:
    """Return the figures of two digits or more, in one spelling: the others often count a list."""
    plain = (_THOUSANDS.sub("", found) for found in _NUMBER.findall(text))
    cut = (p.rstrip("0").rstrip(".") if "." in p else p for p in plain)
    return {figure for figure in cut if len(figure) > 1}


def _share(found: set[str], given: set[str]) -> float:
    return len(found & given) / len(found) if found else 1.0
