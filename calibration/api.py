"""The public functions: frames in, results out.

Each function takes frames of pandas, polars or pyarrow with the columns of the file formats, runs
the same analysis as the command line, and gives a `Result`: its estimates as a frame, the whole of
it as plain data, a small table in a notebook, and a document for every renderer.
"""

import functools
import html
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    ParamSpec,
    TypedDict,
    TypeVar,
    Unpack,
    get_type_hints,
)

import numpy as np
import pandas as pd

from calibration.agreement.study import Options
from calibration.analyses.agreement import sample_size
from calibration.analyses.agreement.ratings import agreement_on, read_ratings
from calibration.analyses.evidence.from_files import Ceilings, load_tables
from calibration.analyses.judge.calibration import (
    CalibrationOptions,
    JudgeCalibration,
    calibrate_judge,
)
from calibration.analyses.judge.report import JudgeReport
from calibration.analyses.reliability.trials import (
    TrialOptions,
    TrialsAnalysis,
    analyse_trials,
)
from calibration.analyses.success_rate.comparison import compare_files
from calibration.analyses.success_rate.from_runs import report_on_files
from calibration.analyses.success_rate.report import ReportOptions
from calibration.errors import InputError, LeftOutError
from calibration.judge_calibration.label_planning import (
    ScoreSpread,
    measured_spread,
    planned_human_only,
    planned_post_stratified,
    traces_needed,
    worst_spread,
)
from calibration.judge_calibration.samples import Design
from calibration.reporting import to_json
from calibration.reporting.document import Document, Headline, Row, Section, Table, number
from calibration.reporting.sections import agreement, judge, success_rate, trials
from calibration.runs.sources import Frame
from calibration.statistics.estimate import Estimate
from calibration.store import Store
from calibration.success_rate.runs import scores
from calibration.tables.reading import Reading, ReadingOptions, to_pandas
from calibration.tables.scales import Scale
from calibration.tables.vocabulary import Rest, Vocabulary
from calibration.tables.words import Dates, Decimal
from calibration.taxonomy import Taxonomy, default_taxonomy
from calibration.text import names_there
from calibration.trace_formats import Parsed
from calibration.trace_formats import read_traces as parsed_traces

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame

T = TypeVar("T")
P = ParamSpec("P")

# Options of commands, and the parameters that stand for them here.
PAIRED = {"--column": "columns", "--map": "words", "--where": "where", "--ceiling": "ceilings"}
SINGLE = {
    "--scale": "scale",
    "--pass-at": "pass_at",
    "--max-left-out": "max_left_out",
    "--raters": "raters",
    "--decimal": "decimal",
    "--dates": "dates",
    "--classes": "classes",
    "--credit": "credit",
    "--merge": "merge",
    "--rest": "rest",
    "--latest": "latest=True",
}
_OPTION = re.compile(
    rf"(?P<option>{'|'.join({**PAIRED, **SINGLE})})(?![a-z-])"
    r"(?: (?P<pairs>(?:'[^']*'|[^\s=,;]+)=(?:'[^']*'|[^\s=,;)]*)"
    r"(?:,(?:'[^']*'|[^\s=,;]+)=(?:'[^']*'|[^\s=,;)]*))*)"
    r"| (?P<low>-?[\d.]*\d)-(?P<high>\d[\d.]*\d|\d)| (?P<number>\d[\d.]*\d|\d)\b"
    r"| (?P<names>comma|point|dmy|mdy|no_verdict|\S+,\S*[^\s:;,.)]))?"
)


def as_parameters(message: str) -> str:
    """Return the message of an error with parameters of functions in place of options.

    Examples
    --------
    >>> print(as_parameters("a: no outcome: --column outcome=ok, or --map done=,won=pass"))
    a: no outcome: columns={"outcome": "ok"}, or words={"done": "", "won": "pass"}
    >>> print(as_parameters("a: --scale 1-5, or another scale with --pass-at"))
    a: scale=(1, 5), or another scale with pass_at
    """
    return _OPTION.sub(_parameter, message)


def _parameter(match: re.Match[str]) -> str:
    """Return one option, with its value, as a parameter."""
    option = match["option"]
    name = PAIRED.get(option) or SINGLE[option]
    if match["pairs"] is not None:
        parts = re.findall(r"('[^']*'|[^\s=,;]+)=('[^']*'|[^\s=,;)]*)", match["pairs"])
        several = option == "--column" and len(parts) > 1
        empty = "..." if several else "None" if option == "--column" else '""'
        listed = ", ".join(f"{_quoted(key)}: {_quoted(value) or empty}" for key, value in parts)
        return f"{name}={{{listed}}}"
    if option == "--scale" and match["low"] is not None:
        return f"{name}=({match['low']}, {match['high']})"
    if match["number"] is not None and option in ("--pass-at", "--max-left-out"):
        return f"{name}={match['number']}"
    if match["names"] is not None and option in ("--raters", "--classes"):
        return f"{name}={json.dumps(match['names'].split(','), ensure_ascii=False)}"
    if match["names"] is not None and option in ("--decimal", "--dates", "--rest"):
        return f"{name}={_quoted(match['names'])}"
    return name + match[0][len(option) :]


def _quoted(text: str) -> str:
    """Return a text as a string of Python; nothing for nothing."""
    return json.dumps(text.strip("'"), ensure_ascii=False) if text else ""


def named_by_parameters(function: Callable[P, T]) -> Callable[P, T]:
    """Return the function with errors that name its parameters, not the options of a command."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except (InputError, LeftOutError) as error:
            error.args = (as_parameters(str(error)), *error.args[1:])
            raise

    return wrapped


class TableReading(TypedDict, total=False):
    """How a table is read: keyword arguments of each function that takes one.

    Parameters
    ----------
    columns : mapping of str to (str or None)
        The column by role, such as ``{"outcome": "golden_match"}``; None leaves a role out.
        Default: by the names that such tables have.
    words : mapping of str to str
        What words are taken as: a class, ``pass``, ``fail``, or (empty) missing.
    where : mapping of str to str
        The value that rows must have in a column, to be read.
    decimal : {"point", "comma"}
        The decimal sign of numbers that are texts.
    dates : {"dmy", "mdy"}
        Whether the day or the month comes first in dates such as 03/04/2026.
    """

    columns: Mapping[str, str | None] | None
    words: Mapping[str, str] | None
    where: Mapping[str, str] | None
    decimal: Decimal | None
    dates: Dates | None


class ScoreReading(TableReading, total=False):
    """How a table is read whose outcomes may be numbers.

    Parameters
    ----------
    scale : (float, float)
        The lowest and the highest score.
    pass_at : float
        The lowest score that is a pass.
    """

    scale: tuple[float, float] | None
    pass_at: float | None


class RunReading(ScoreReading, total=False):
    """How a table of runs or trials is read.

    Parameters
    ----------
    max_left_out : float
        The largest share of rows left out from which a rate is given. Default: .02.
    latest : bool
        Whether the latest of contradicting rows counts, by a column of times.
    """

    max_left_out: float | None
    latest: bool


@dataclass(frozen=True, kw_only=True)
class Result(Generic[T]):
    """What a public function found.

    Parameters
    ----------
    title : str
        What was measured.
    analysis : object
        The whole result, as the command of the same name has it.
    estimates : mapping of str to Estimate
        Its main numbers, in the order in which they are read.
    notes : tuple of str
        What a reader must know, in sentences.
    reading : Reading or tuple of Reading, optional
        What was read of the tables, and the rows left out.
    """

    title: str
    analysis: T
    estimates: Mapping[str, Estimate]
    notes: tuple[str, ...] = ()
    reading: Reading | tuple[Reading, ...] | None = None
    _data: Callable[[], dict[str, Any]] | None = field(default=None, repr=False)
    _document: Callable[[], Document] | None = field(default=None, repr=False)

    def to_frame(self) -> pd.DataFrame:
        """Return one row an estimate: value, limits, n, method, confidence level and status."""
        rows = [
            {
                "estimate": name,
                "value": found.value,
                "low": None if found.interval is None else found.interval[0],
                "high": None if found.interval is None else found.interval[1],
                "n": found.n,
                "method": found.method,
                "confidence_level": found.confidence_level,
                "status": found.status,
            }
            for name, found in self.estimates.items()
        ]
        return pd.DataFrame(rows).astype({"value": float, "low": float, "high": float})

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON holds it: full precision, undefined is None with a status."""
        if self._data is not None:
            return self._data()
        return {
            "title": self.title,
            "estimates": {name: to_json.data(e) for name, e in self.estimates.items()},
            "notes": list(self.notes),
        }

    def document(self) -> Document:
        """Return the result as a document, for `calibration.reporting`'s renderers."""
        if self._document is not None:
            return self._document()
        name, first = next(iter(self.estimates.items()))
        rows = tuple(
            Row(cells=(named, number(found), f"{found.n:,}", found.method))
            for named, found in self.estimates.items()
        )
        table = Table(title=self.title, head=("", "value", "n", "method"), rows=rows)
        return Document(
            title=self.title,
            about=self.notes,
            headline=Headline(
                name=name,
                value=number(first),
                limits="",
                half_width="",
                kind=first.method,
                how=f"n = {first.n:,}",
            ),
            sections=(Section(title=self.title, blocks=(table,)),),
        )

    def _repr_html_(self) -> str:
        """Return a small table; every text is escaped, for names come with the data."""
        cells = [
            (name, number(found), f"{found.n:,}", found.method)
            for name, found in self.estimates.items()
        ]
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in cells
        )
        head = "".join(f"<th>{name}</th>" for name in ("", "value", "n", "method"))
        caption = html.escape(self.title)
        return f"<table><caption>{caption}</caption><tr>{head}</tr>{rows}</table>"


@named_by_parameters
def measure_agreement(
    ratings: "IntoDataFrame",
    *,
    raters: Sequence[str] = (),
    classes: Sequence[str] | None = None,
    weights: str = "identity",
    cluster: str | None = None,
    confidence_level: float = 0.95,
    **reading: Unpack[TableReading],
) -> Result[Any]:
    """Measure inter-annotator agreement.

    Parameters
    ----------
    ratings : DataFrame
        Long (columns ``item``, ``rater``, ``label``), or wide: the item, then a column a rater;
        other names are read where they are clear. A missing label is a missing rating.
    raters : sequence of str, optional
        The columns that hold the labels of one rater each; a ``*`` means any characters.
    classes : sequence of str, optional
        Every class that could have been given, in order. Default: those of the rubric where all
        labels are of it, else those that occur.
    weights : str, default "identity"
        Agreement weights by name, as ``asr agreement --weights`` takes them.
    cluster : str, optional
        Column of items that are alike, such as the task.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.
    **reading
        How the table is read; see `TableReading`. The roles are ``item``, ``rater``, ``label`` and
        ``updated_at``.

    Returns
    -------
    Result
        Every coefficient, Krippendorff's alpha first, with its jackknife interval. `reading` says
        which columns and words were read, and how.

    Raises
    ------
    InputError
        If it is not clear which columns hold ratings, a rater gave an item two that differ, or a
        label is no declared class.

    Examples
    --------
    Two raters agree on 3 of 4 items, one "yes" more from the second: the observed disagreement is
    1/4, the expected one 2 x 3 x 5 / (8 x 7) = 15/28, and alpha 1 - 7/15.

    >>> import pandas as pd
    >>> found = measure_agreement(
    ...     pd.DataFrame({"item": list("abcd"), "one": list("ynny"), "two": list("yyny")})
    ... )
    >>> round(found.estimates["krippendorff_alpha"].value, 4)
    0.5333
    """
    held = read_ratings(
        to_pandas(ratings),
        _reading_options(TableReading, reading, raters=tuple(raters)),
        classes=classes,
        item_columns=() if cluster is None else (cluster,),
    )
    found = agreement_on(
        held, weights=weights, cluster=cluster, options=Options(confidence_level=confidence_level)
    )
    return Result(
        title="Agreement between the raters",
        analysis=found,
        estimates=found.study.coefficients,
        _data=lambda: to_json.data(found),
        reading=held.reading,
        _document=lambda: agreement.ratings(found),
    )


@named_by_parameters
def calibrate(
    labels: "IntoDataFrame",
    verdicts: "IntoDataFrame",
    *,
    design: Design = "production",
    classes: Sequence[str] | None = None,
    credit: Mapping[str, float] | None = None,
    rest: Rest | None = None,
    merge: Mapping[str, Sequence[str]] | None = None,
    ceilings: Mapping[str, float] | None = None,
    taxonomy: Taxonomy | None = None,
    confidence_level: float = 0.95,
    seed: int = 0,
    **reading: Unpack[ScoreReading],
) -> Result[JudgeCalibration]:
    """Calibrate a judge against human labels and correct the rate.

    Parameters
    ----------
    labels : DataFrame
        Columns ``trace_id`` and ``outcome``; ``reviewer``, ``adjudicated``, ``weight`` and more as
        in the file of ``asr calibrate --human``.
    verdicts : DataFrame
        Columns ``trace_id`` and ``outcome``; ``workflow``, ``cost_usd``, ``task`` and more as in
        the file of ``asr calibrate --verdicts``.
    design : {"production", "reference"}
        Whether the labelled traces are a random sample of the verdicts, or a reference set.
    classes : sequence of str, optional
        Every class there is, in order, in exactly this spelling. Default: those of the taxonomy if
        no others occur; success and failure if all outcomes say pass or fail and no taxonomy is
        given; else those that occur.
    credit : mapping of str to float, optional
        What each class is worth, from 0 to 1. Default: the taxonomy's if the classes are its own.
    rest : {"no_verdict"}, optional
        What every other verdict outside the classes is taken as. Default: it is an error.
    merge : mapping of str to sequence of str, optional
        Classes of labels and verdicts that become one, by its name. Its credit must be given unless
        theirs is the same.
    ceilings : mapping of str to float, optional
        Cost ceilings by workflow; they go before those of the taxonomy.
    taxonomy : Taxonomy, optional
        Default: the one of the package.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.
    seed : int, default 0
        Of every resample.
    **reading
        How the frames are read; see `ScoreReading`. Columns are given by role, such as ``{"human":
        "label", "verdict": "gpt", "trace_id": "id"}``, for the frames that have them; ``words`` may
        also say ``no_verdict``.

    Returns
    -------
    Result
        The corrected rate first, net of cost, then every other estimator with its status.

    Raises
    ------
    InputError
        If a frame lacks a column, two columns may be it, an outcome is no class, two labels of one
        person contradict each other, or a name is not known.
    CalibrationError
        If no labelled trace has a verdict.

    Examples
    --------
    Of 80 runs the judge calls complete, 20 were labelled and 15 are; of 20 it calls abandoned all
    were labelled and none is complete: the corrected rate is .8 x 15/20.

    >>> import pandas as pd
    >>> outcomes = ["complete"] * 80 + ["abandoned"] * 20
    >>> verdicts = pd.DataFrame({"trace_id": [f"t{i}" for i in range(100)], "outcome": outcomes})
    >>> human = ["complete"] * 15 + ["abandoned"] * 25
    >>> at = [*range(20), *range(80, 100)]
    >>> labels = pd.DataFrame({"trace_id": [f"t{i}" for i in at], "outcome": human})
    >>> found = calibrate(labels, verdicts)
    >>> round(found.estimates["post_stratified"].value, 3)
    0.6
    """
    options = _reading_options(ScoreReading, reading)
    data = load_tables(
        to_pandas(labels),
        to_pandas(verdicts),
        design=design,
        classes=classes,
        credit=credit,
        vocabulary=Vocabulary(mapped=options.mapped, rest=rest, merged=merge or {}),
        reading=options,
        ceilings=Ceilings(by_workflow=ceilings or {}),
        taxonomy=taxonomy,
    )
    found = calibrate_judge(
        data, CalibrationOptions(design=design, confidence_level=confidence_level, seed=seed)
    )
    estimators = found.calibration.estimates
    first = [found.calibration.headline] if found.calibration.headline else []
    order = [*first, *(name for name in estimators if name not in first)]
    return Result(
        title="Agent Success Rate, corrected for judge error",
        analysis=found,
        estimates={name: estimators[name].net for name in order},
        notes=found.notes,
        reading=found.reading,
        _data=lambda: to_json.data(found),
        _document=lambda: judge.document(JudgeReport(calibration=found)),
    )


@named_by_parameters
def agent_success_rate(
    runs: "IntoDataFrame",
    *,
    ceilings: Mapping[str, float] | None = None,
    taxonomy: Taxonomy | None = None,
    confidence_level: float = 0.95,
    seed: int = 0,
    **reading: Unpack[RunReading],
) -> Result[Any]:
    """Report the Agent Success Rate of runs whose outcomes are taken as given.

    Parameters
    ----------
    runs : DataFrame
        A row a run: its outcome, and what else is known of it: ``trace_id``, ``workflow``,
        ``cost_usd``, ``task_id``, ``started_at``, ``model``, ``weight`` and more as in the files of
        ``asr report``. Columns are known by the names that such tables have.
    ceilings : mapping of str to float, optional
        Cost ceilings by workflow; they go before those of the taxonomy.
    taxonomy : Taxonomy, optional
        Default: the one of the package, or two classes where all outcomes are pass or fail.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.
    seed : int, default 0
        Of every resample.
    **reading
        How the table is read; see `RunReading`.

    Returns
    -------
    Result
        Net and gross of cost, without abandoned runs, and the pass rate. `reading` says which
        columns and words were read, and what was left out.

    Raises
    ------
    InputError
        If no column holds the outcome, or the outcomes can be read in two ways.
    LeftOutError
        If too many runs are left out for a reason that may depend on the outcome.
    CalibrationError
        If no run is left.

    Examples
    --------
    Credits 1, 1, .4 and 0 without cost: the rate is 2.4 / 4.

    >>> import pandas as pd
    >>> outcomes = ["complete", "complete", "partial_plus", "abandoned"]
    >>> runs = pd.DataFrame({"trace_id": list("abcd"), "workflow": "w", "outcome": outcomes})
    >>> found = agent_success_rate(runs.assign(cost_usd=0.0))
    >>> round(found.estimates["asr"].value, 3)
    0.6
    """
    report = report_on_files(
        Frame(runs),
        options=_options(ceilings, confidence_level, seed, _reading_options(RunReading, reading)),
        taxonomy=taxonomy,
    )
    return Result(
        title="Agent Success Rate",
        analysis=report,
        estimates={
            "asr": report.asr,
            "asr_gross": report.asr_gross,
            "asr_without_abandoned": report.asr_without_abandoned,
            "pass_rate": report.pass_rate,
        },
        notes=report.warnings,
        reading=report.reading,
        _data=lambda: to_json.data(report),
        _document=lambda: success_rate.document(report),
    )


@named_by_parameters
def compare(
    before: "IntoDataFrame",
    after: "IntoDataFrame",
    *,
    ceilings: Mapping[str, float] | None = None,
    margin: float = 0.05,
    taxonomy: Taxonomy | None = None,
    confidence_level: float = 0.95,
    seed: int = 0,
    **reading: Unpack[RunReading],
) -> Result[Any]:
    """Compare two sets of runs; tasks of the same name are paired.

    Parameters
    ----------
    before, after : DataFrame
        As for `agent_success_rate`.
    margin : float, default 0.05
        Smallest change that matters, as a fraction.
    ceilings, taxonomy, confidence_level, seed
        As for `agent_success_rate`.
    **reading
        How both tables are read; see `RunReading`.

    Returns
    -------
    Result
        The rates of both sides; the difference and the verdict stand in `analysis`.

    Raises
    ------
    InputError
        If a frame cannot be used or the cost ceilings differ.
    LeftOutError
        If too many runs of a side are left out for a reason that may depend on the outcome.
    CalibrationError
        If no run is left on a side.

    Examples
    --------
    >>> import pandas as pd
    >>> runs = pd.DataFrame({"trace_id": list("abcd"), "workflow": "w", "cost_usd": 0.0})
    >>> first = runs.assign(outcome=["complete", "abandoned"] * 2)
    >>> compare(first, runs.assign(outcome="complete")).estimates["after"].value
    1.0
    """
    found = compare_files(
        Frame(before, "before"),
        Frame(after, "after"),
        options=_options(ceilings, confidence_level, seed, _reading_options(RunReading, reading)),
        taxonomies=(taxonomy, taxonomy),
        margin=margin,
    )
    return Result(
        title="Agent Success Rate, two sets of runs",
        analysis=found,
        estimates={"before": found.found.before.asr, "after": found.found.after.asr},
        notes=found.warnings,
        reading=found.readings,
        _data=lambda: to_json.data(found),
        _document=lambda: success_rate.comparison_document(found),
    )


@named_by_parameters
def pass_at_k(
    runs: "IntoDataFrame",
    ks: Sequence[int] = (1, 2, 3),
    *,
    confidence_level: float = 0.95,
    seed: int = 0,
    **reading: Unpack[RunReading],
) -> Result[TrialsAnalysis]:
    """Estimate pass@k and pass^k of repeated trials of one agent.

    Parameters
    ----------
    runs : DataFrame
        A row a trial: its task and its outcome, optionally ``trial`` and more as in the file of
        ``asr trials``. Columns are known by the names that such tables have.
    ks : sequence of int
        Trials looked at together.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.
    seed : int, default 0
        Of the resamples of whole tasks.
    **reading
        How the table is read; see `RunReading`.

    Returns
    -------
    Result
        ``pass@k`` and ``pass^k`` of every k, as the mean over tasks.

    Raises
    ------
    InputError
        If no column holds the task or the outcome, the outcomes can be read in two ways, or trials
        are of several agents.
    LeftOutError
        If too many trials are left out for a reason that may depend on the outcome.
    CalibrationError
        If no trial is left.

    Examples
    --------
    Five tasks of two trials; two passed twice, one once: pass^2 = 2/5, pass@2 = 3/5.

    >>> import pandas as pd
    >>> good = [1, 1, 1, 1, 1, 0, 0, 0, 0, 0]
    >>> outcomes = ["complete" if passed else "abandoned" for passed in good]
    >>> runs = pd.DataFrame({"task_id": [i // 2 for i in range(10)], "outcome": outcomes})
    >>> found = pass_at_k(runs, [2])
    >>> found.estimates["pass@2"].value, found.estimates["pass^2"].value
    (0.6, 0.4)
    """
    found = analyse_trials(
        to_pandas(runs),
        TrialOptions(ks=tuple(ks), seed=seed, confidence_level=confidence_level),
        reading=_reading_options(RunReading, reading),
    )
    estimates: dict[str, Estimate] = {}
    for k in found.ks:
        estimates |= {
            f"pass@{k}": found.pass_at_k[k].estimate,
            f"pass^{k}": found.pass_hat_k[k].estimate,
        }
    return Result(
        title="Repeated trials",
        analysis=found,
        estimates=estimates,
        notes=found.notes,
        reading=found.reading,
        _data=lambda: to_json.data(found),
        _document=lambda: trials.trials(found),
    )


@named_by_parameters
def plan_labels(
    *,
    n: int | None = None,
    half_width: float | None = None,
    labels: "IntoDataFrame | None" = None,
    verdicts: "IntoDataFrame | None" = None,
    taxonomy: Taxonomy | None = None,
    confidence_level: float = 0.95,
) -> pd.DataFrame:
    """Plan labels: the half-width that `n` labelled traces give, or how many a half-width takes.

    Parameters
    ----------
    n : int, optional
        Labelled traces, at least 2.
    half_width : float, optional
        Wanted, in (0, 1/2). Exactly one of `n` and `half_width` is given.
    labels, verdicts : DataFrame, optional
        Earlier labels with the verdicts of the judge, as for `calibrate`; without them the worst
        case is planned for.
    taxonomy : Taxonomy, optional
        Default: the one of the package.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    DataFrame
        A row an estimator (``human_only`` and, with verdicts, ``post_stratified``) with columns
        ``n`` and ``half_width``; `n` is missing where no number of labels is enough.

    Raises
    ------
    InputError
        If not exactly one of `n` and `half_width` is given.

    Examples
    --------
    The worst case with 100 labels, t = 1.984 with 99 df: half the length of the logit interval
    around 1/2 with standard error .05 is 1 / (1 + exp(-1.984 x .2)) - 1/2.

    >>> float(round(plan_labels(n=100)["half_width"][0], 4))
    0.0979
    """
    if (n is None) == (half_width is None):
        raise InputError("give either n or half_width")
    spread, counts, values = _spread(labels, verdicts, taxonomy)
    rows = []
    for name, population in (("human_only", None), ("post_stratified", counts)):
        if name == "post_stratified" and population is None:
            continue
        options: dict[str, Any] = {"confidence_level": confidence_level}
        if n is None:
            assert half_width is not None  # noqa: S101
            wanted = traces_needed(half_width, spread, population, verdict_values=values, **options)
            rows.append({"estimator": name, "n": wanted, "half_width": half_width})
        elif population is None:
            reach = planned_human_only(n, spread, **options)
            rows.append({"estimator": name, "n": n, "half_width": reach})
        else:
            reach = planned_post_stratified(n, spread, population, verdict_values=values, **options)
            rows.append({"estimator": name, "n": n, "half_width": reach})
    return pd.DataFrame(rows)


@named_by_parameters
def plan_agreement(
    class_shares: Sequence[float],
    *,
    alpha: float,
    half_width: float,
    n_raters: int = 2,
    confidence_level: float = 0.95,
    seed: int = 0,
) -> sample_size.PlannedAgreement:
    """Plan how many traces two or more raters must share for alpha to be known as closely.

    Parameters
    ----------
    class_shares : sequence of float
        Share of each class, used or not; they sum to 1.
    alpha : float
        Alpha expected, in [0, 1].
    half_width : float
        Half the length of the interval wanted, in (0, 1).
    n_raters : int, default 2
        Raters of each trace.
    confidence_level : float, default 0.95
        Of the interval planned for, strictly between 0 and 1.
    seed : int, default 0
        Of the simulated samples.

    Raises
    ------
    InputError
        If an argument is outside its range; the message names it.

    Examples
    --------
    Two raters agree on .9 of the items where chance is .5: by a normal approximation
    (1.96 x .6 / .1)^2 = 138 items.

    >>> found = plan_agreement([0.5, 0.5], alpha=0.8, half_width=0.1)
    >>> 138 <= found.plan.typical.n < 150
    True
    """
    return sample_size.plan_agreement(
        class_shares,
        alpha=alpha,
        n_raters=n_raters,
        half_width=half_width,
        confidence_level=confidence_level,
        seed=seed,
    )


@named_by_parameters
def read_traces(path: str | Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read agent traces of any known format.

    Parameters
    ----------
    path : str or Path
        A file, or a tau2-bench run directory.

    Returns
    -------
    traces : DataFrame
        A row a run: ``trace_id``, ``workflow``, ``task_key``, ``model``, ``cost_usd``, ``trace``.
    set_aside : DataFrame
        What could not be read: ``file``, ``line``, ``reason``.

    Raises
    ------
    TraceFormatError
        If the format is not recognised, or the file breaks off or holds no run.
    """
    traces, aside = [], []
    for item in parsed_traces(Path(path)):
        if isinstance(item, Parsed):
            names = ("trace_id", "workflow", "task_key", "model", "cost_usd")
            row = {name: getattr(item.trace, name) for name in names}
            traces.append(row | {"trace": item.trace})
        else:
            aside.append({"file": item.file, "line": item.line, "reason": item.reason})
    return pd.DataFrame(traces), pd.DataFrame(aside, columns=["file", "line", "reason"])


def open_store(path: str | Path, *, create: bool = False) -> Store:
    """Open a store of traces, labels and verdicts; close it, or use it in a ``with`` block.

    Raises
    ------
    StoreLockedError
        If another process, for instance the app, holds it.
    """
    return Store.open(path, create=create)


def _reading_options(
    known: type[TableReading], given: Mapping[str, Any], raters: tuple[str, ...] = ()
) -> ReadingOptions:
    """Return the keyword arguments of a function that say how a table is read."""
    names = get_type_hints(known)
    unknown = sorted(given.keys() - names.keys())
    if unknown:
        raise TypeError(
            f"unexpected keyword argument {unknown[0]!r}; {names_there(unknown[0], names)}"
        )
    scale = given.get("scale")
    return ReadingOptions(
        columns=given.get("columns") or {},
        mapped=given.get("words") or {},
        where=tuple((given.get("where") or {}).items()),
        scale=None if scale is None else Scale(*scale),
        pass_at=given.get("pass_at"),
        max_left_out=given.get("max_left_out"),
        decimal=given.get("decimal"),
        dates=given.get("dates"),
        latest=given.get("latest", False),
        raters=raters,
    )


def _options(
    ceilings: Mapping[str, float] | None,
    confidence_level: float,
    seed: int,
    reading: ReadingOptions,
) -> ReportOptions:
    return ReportOptions(
        reading=reading,
        ceilings=dict(ceilings or {}),
        any_workflow=True,
        confidence_level=confidence_level,
        seed=seed,
    )


def _spread(
    labels: "IntoDataFrame | None", verdicts: "IntoDataFrame | None", taxonomy: Taxonomy | None
) -> tuple[ScoreSpread, Any, Any]:
    """Measure how scores vary, or assume the worst."""
    if labels is None or verdicts is None:
        return worst_spread(1), None, None
    data = load_tables(
        to_pandas(labels), to_pandas(verdicts), taxonomy=taxonomy or default_taxonomy()
    )
    sample = data.sample("production")
    counts = np.bincount(data.verdicts, minlength=len(data.verdict_names))
    tables, table = data.tables
    credit = tables[0] if table is None else tables[table].mean(axis=0)
    values = np.array([*credit, *[np.nan] * (counts.size - credit.size)])
    penalties = np.zeros(len(sample.human)) if sample.penalties is None else sample.penalties
    spread = measured_spread(
        scores(sample.human, penalties, credit=data.credit_of(data.labelled)),
        sample.verdicts,
        counts,
        verdict_values=values,
        weights=sample.weights,
    )
    return spread, counts, values
