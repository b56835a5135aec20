"""Classes of the store as scores of the platform that a trace came from.

One function a platform turns a class into the score, the feedback or the annotation that its API
and its imports take. Scores hold no name of a person and no text of a trace.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import numpy as np

from calibration.analyses.evidence.from_store import choose_judge, load_batch
from calibration.errors import CalibrationError, MixedDataError
from calibration.records import NO_VERDICT, SOURCE_JUDGE
from calibration.store import Store
from calibration.trace_formats.spans import OWN_SCORES

CONSENSUS = f"{OWN_SCORES}consensus"
AT_ONCE = 200  # traces whose text is read together
MOST_NAME = 180  # characters of a feedback key of LangSmith, the shortest name of the three
SIMULATED = (
    "these labels are simulated; the platform shows them beside real scores: nothing is sent"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformScore:
    """The class of one trace of a platform, by people (consensus) or by a judge.

    `source_id` is the id of the trace on the platform, `name` that of the score there. `project_id`
    is that of LangSmith, which wants it beside the trace; empty where the trace does not tell it.
    """

    trace_id: str
    source_id: str
    name: str
    outcome: str
    credit: float
    taxonomy: str
    by_people: bool
    batch_id: str = ""
    labels: int = 0
    judge_id: str = ""
    project_id: str = ""

    @property
    def score_id(self) -> str:
        """The id of the score, a UUID of trace and name: a later class takes the same place.

        Examples
        --------
        >>> score = PlatformScore(
        ...     trace_id="t", source_id="a1", name=CONSENSUS, outcome="complete", credit=1.0,
        ...     taxonomy="v1", by_people=True,
        ... )
        >>> score.score_id
        '032ccab1-43e9-59b7-8f71-ae54dc6b316d'
        """
        return str(uuid5(NAMESPACE_URL, f"{self.name}#{self.source_id}"))

    @property
    def about(self) -> dict[str, Any]:
        """What the score is of: the rubric, and the batch or the judge."""
        known = {"taxonomy": self.taxonomy, "credit": self.credit}
        if self.by_people:
            return known | {"batch": self.batch_id, "labels": self.labels}
        return known | {"judge": self.judge_id}


def langfuse_score(score: PlatformScore) -> dict[str, Any]:
    """Return the body of ``POST /api/public/scores`` of Langfuse."""
    return {
        "id": score.score_id,
        "traceId": score.source_id,
        "name": score.name,
        "value": score.outcome,
        "dataType": "CATEGORICAL",
        "metadata": score.about,
    }


def langsmith_feedback(score: PlatformScore) -> dict[str, Any]:
    """Return the body of ``POST /api/v1/feedback`` of LangSmith, on the first run of a trace."""
    return {
        "id": score.score_id,
        "run_id": score.source_id,
        "trace_id": score.source_id,
        **({"session_id": score.project_id} if score.project_id else {}),
        "key": score.name,
        "score": score.credit,
        "value": score.outcome,
        "feedback_source": {
            "type": "api" if score.by_people else "model",
            "metadata": score.about,
        },
    }


def phoenix_annotation(score: PlatformScore) -> dict[str, Any]:
    """Return one of the `data` of ``POST /v1/trace_annotations`` of Phoenix."""
    return {
        "trace_id": score.source_id,
        "name": score.name,
        "annotator_kind": "HUMAN" if score.by_people else "LLM",
        "result": {"label": score.outcome, "score": score.credit},
        "metadata": score.about,
        "identifier": score.score_id,
    }


AS_SCORE: Mapping[str, Callable[[PlatformScore], dict[str, Any]]] = {
    "langfuse": langfuse_score,
    "langsmith": langsmith_feedback,
    "phoenix": phoenix_annotation,
}


def consensus_scores(store: Store, platform: str, batch_id: str | None) -> list[PlatformScore]:
    """Return the consensus of a batch, by default as `choose_batch`, on traces of a platform.

    A trace has one where its labels are adjudicated or unanimous. Raises as `load_batch`;
    MixedDataError if the labels are simulated.
    """
    data = load_batch(store, batch_id, sample=False, arms=True)
    if data.provenance.simulated:
        raise MixedDataError(SIMULATED)
    sources = store.ids_at_source(platform)
    labels = data.labels.groupby("trace_id").size()
    settled = data.human.max(axis=1) == 1.0
    found = []
    for trace_id, agreed, at in zip(
        data.labelled["trace_id"], settled, np.argmax(data.human, axis=1), strict=True
    ):
        if agreed and trace_id in sources:
            found.append(
                PlatformScore(
                    trace_id=trace_id,
                    source_id=sources[trace_id],
                    name=CONSENSUS,
                    outcome=data.classes[at],
                    credit=float(data.credit[at]),
                    taxonomy=data.taxonomy.version,
                    by_people=True,
                    batch_id=data.provenance.batch_id,
                    labels=int(labels[trace_id]),
                )
            )
    return _with_projects(store, platform, found)


def judge_scores(store: Store, platform: str, judge_id: str) -> list[PlatformScore]:
    """Return the first verdicts of a judge on traces of a platform; `no_verdict` is none.

    Raises InputError, CalibrationError as `choose_judge`; CalibrationError for the grades that came
    with the traces; MixedDataError if the judge or the store is simulated.
    """
    judge_id = choose_judge(store, judge_id)
    if judge_id.startswith(SOURCE_JUDGE):
        raise CalibrationError(f"{judge_id!r} are the platform's own scores: it has them already")
    judges = store.judge_frame()
    if store.is_simulated() or judges.loc[judges["judge_id"] == judge_id, "simulated"].any():
        raise MixedDataError(SIMULATED)
    taxonomy, sources = store.taxonomy(), store.ids_at_source(platform)
    credit = dict(zip(taxonomy.names, taxonomy.credits, strict=True))
    verdicts = store.verdict_frame(judge_id)
    found = [
        PlatformScore(
            trace_id=trace_id,
            source_id=sources[trace_id],
            name=f"{OWN_SCORES}judge/{judge_id}"[:MOST_NAME],
            outcome=outcome,
            credit=float(credit[outcome]),
            taxonomy=taxonomy.version,
            by_people=False,
            judge_id=judge_id,
        )
        for trace_id, outcome in zip(verdicts["trace_id"], verdicts["outcome"], strict=True)
        if trace_id in sources and outcome != NO_VERDICT
    ]
    return _with_projects(store, platform, found)


def _with_projects(
    store: Store, platform: str, scores: Sequence[PlatformScore]
) -> list[PlatformScore]:
    """Return scores by trace, those of LangSmith with the project that their trace tells."""
    ordered = sorted(scores, key=lambda score: score.trace_id)
    if platform != "langsmith":
        return ordered
    found = []
    for start in range(0, len(ordered), AT_ONCE):
        some = ordered[start : start + AT_ONCE]
        about = {t.trace_id: t.metadata for t in store.whole_traces([s.trace_id for s in some])}
        for score in some:
            told = about.get(score.trace_id, {})
            project = told.get("session_id") or told.get("project_id") or ""
            found.append(replace(score, project_id=str(project)))
    return found


def inspect_score(score: PlatformScore) -> dict[str, Any]:
    """Return a score for a sample of an Inspect log: a name, and the `Score` under it.

    The sample is named by its uuid, in older logs by run and sample id.
    """
    return {
        "sample_uuid": score.source_id,
        "score_name": score.name,
        "score": {"value": score.credit, "answer": score.outcome, "metadata": score.about},
    }
