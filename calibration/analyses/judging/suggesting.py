"""Rules for a judge, suggested from the practice traces on which it and the reference differ."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.judging.probing import RunsInMemory, Spending
from calibration.analyses.judging.runs import reading
from calibration.analyses.judging.versions import judge_of, practice_ids
from calibration.errors import CalibrationError
from calibration.judging.budget import Cap
from calibration.judging.prompt import pieces_of
from calibration.judging.steps import TreeJudge
from calibration.judging.suggestions import (
    MOST_DISAGREEMENTS,
    SUGGESTED,
    Adviser,
    JudgedOtherwise,
    SuggestedRule,
    suggested_rules,
)
from calibration.records import TraceForReview
from reference_dataset.loader import ReferenceSet
from reference_dataset.team import team_reference

REQUEST = "rules"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestions:
    """What a model suggests for a judge.

    `n_judged` practice traces have a verdict of the judge, which differs on `n_differences` and of
    which `n_shown` were in the request. `ended` says why there is no answer, None if there is one.
    """

    judge: str
    n_judged: int
    n_differences: int
    n_shown: int
    rules: tuple[SuggestedRule, ...]
    spent_usd: float | None
    spent_tokens: int
    ended: str | None

    @property
    def usable(self) -> tuple[tuple[str, str], ...]:
        """The question and the text of each rule that copies nothing."""
        return tuple((of.question, of.rule) for of in self.rules if of.copied is None)


def suggest_rules(path: Path, name: str, *, cap: Cap, key: str) -> Suggestions:
    """Ask the model of a judge, in one call, for rules that would mend its practice verdicts.

    Nothing of exam A, exam B or production is in the request, and nothing is changed.

    Parameters
    ----------
    path : Path
        The store; it must not be open.
    name : str
        A judge with verdicts on practice traces.
    cap : Cap
        The most that the call may cost.
    key : str
        Of the endpoint.

    Raises
    ------
    CalibrationError
        If the judge has judged no practice trace, or differs on none.
    InputError
        If there is no such judge.
    JudgeRunError
        As `runner.run`.
    """
    with reading(path) as store:
        entry, judge = judge_of(store, name)
        dataset = team_reference(store.path, judge.taxonomy)
        samples = store.verdict_samples(name)
    first = samples[samples["sample"] == 0]
    verdicts = dict(zip(first["trace_id"], first[["outcome", "reason"]].to_numpy(), strict=True))
    ids = [i for i in practice_ids(dataset) if i in verdicts]
    if not ids:
        raise CalibrationError(
            f"judge {name} has judged no practice trace: `asr judge run {name} --form practice`"
        )
    differences = [
        of for i in ids
        if (of := _difference(dataset, judge, dataset.traces[i].for_review(), verdicts[i]))
    ]  # fmt: skip
    if not differences:
        raise CalibrationError(f"judge {name} agrees with the reference on {len(ids):,} traces")
    adviser = Adviser(entry.version, entry.capabilities, judge.taxonomy, differences)
    runs = RunsInMemory(path, entry, key, Spending(cap), REQUEST)
    asked = differences[0].trace  # the request is about all of them, and has to be about one
    (found,) = runs.samples(adviser, [(asked, adviser.judge_id)]).values() or [[]]
    answer = found[0].answer if found and found[0].outcome == SUGGESTED else None
    why = (found[0].reason or found[0].cause) if found and answer is None else None
    texts = [
        text
        for i in practice_ids(dataset)
        for text in (*_texts(dataset.traces[i].for_review()), dataset.labels[i].rationale)
    ]
    return Suggestions(
        judge=name,
        n_judged=len(ids),
        n_differences=len(differences),
        n_shown=min(len(differences), MOST_DISAGREEMENTS),
        rules=() if answer is None else suggested_rules(answer, judge.taxonomy, texts),
        spent_usd=None if entry.prices is None else runs.spending.usd,
        spent_tokens=runs.spending.tokens,
        ended=runs.ended or why,
    )


def _texts(trace: TraceForReview) -> list[str]:
    return [piece.text for piece in pieces_of(trace)]


def _difference(
    dataset: ReferenceSet, judge: TreeJudge, trace: TraceForReview, verdict: NDArray[Any]
) -> JudgedOtherwise | None:
    """Return how a verdict differs from the reference; None if it does not, or is none."""
    label, taxonomy = dataset.labels[trace.trace_id], judge.taxonomy
    given, reason = str(verdict[0]), verdict[1]
    if given == label.outcome or given not in taxonomy.names:
        return None
    own: Mapping[str, str] = taxonomy.answers_for(given)
    question = next(q for q in own if label.answers.get(q) != own[q])
    return JudgedOtherwise(
        trace=trace,
        question=question,
        reference=label.outcome,
        reference_reason=label.rationale,
        judge=given,
        judge_reason="" if pd.isna(reason) else str(reason),
    )
