"""How far off a judge is, and where: beside the humans, by question, by trace, by agent."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.agreement.margins import holm
from calibration.agreement.outsider import BesidePanel, outsider_beside_panel
from calibration.agreement.recoding import answers_at, parting_questions
from calibration.analyses.agreement import planned_codes
from calibration.analyses.fingerprint import fingerprint
from calibration.analyses.judge import INPUT_COLUMNS, VERDICT_NAMES, human_frame
from calibration.analyses.judge_disagreements import Disagreement, disagreements
from calibration.analyses.judged import Judged, group_names, read_judged
from calibration.correction.confusion import confusion
from calibration.correction.means import MeanAgainstZero, mean_against_zero
from calibration.correction.nodes import NodeQuality, errors_by_node, node_quality
from calibration.correction.retest import MISSING, Retest, retest
from calibration.correction.slopes import HC3, slope_within_class
from calibration.estimates import not_estimable
from calibration.records import OUTCOMES
from calibration.store import Store

NO_CLASS = "no labelled trace has a verdict that is a class: run the judge on the labelled traces"
NO_FAMILY = "the model family of the judge is not known to the store: name it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leniency:
    """The judge's mean credit less the human one in one group, above zero where it is lenient.

    `p_holm` is the p-value adjusted for the number of groups that were looked at.
    """

    group: str
    verdict_credit: float
    human_credit: float
    gap: MeanAgainstZero
    p_holm: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeDiagnostics:
    """What a calibrated rate does not show of a judge.

    Parameters
    ----------
    ceiling : dict of str to BesidePanel
        Agreement among the humans and of the judge with them, on the same traces.
    nodes : dict of str to NodeQuality
        By question of the tree, in its order.
    errors : dict of str or None to float
        Effective labelled traces by the question at which judge and humans part; None: no verdict.
    disagreements : tuple of Disagreement
        In the order of what they move.
    leniency : MeanAgainstZero
        Over all labelled traces.
    leniency_by : dict of str to tuple of Leniency
        By ``agent`` and ``workflow``.
    slopes : dict of str to MeanAgainstZero
        Change of the gap, within human class, with each doubling of the ``response`` (characters)
        and of the ``steps``.
    own_family : MeanAgainstZero
        Gap on agents of the judge's own model family less that on others, within human class.
    retest : Retest
    """

    batch_id: str
    judge_id: str
    verdict_names: tuple[str, ...]
    ceiling: dict[str, BesidePanel]
    nodes: dict[str, NodeQuality]
    errors: dict[str | None, float]
    disagreements: tuple[Disagreement, ...]
    leniency: MeanAgainstZero
    leniency_by: dict[str, tuple[Leniency, ...]]
    slopes: dict[str, MeanAgainstZero]
    own_family: MeanAgainstZero
    retest: Retest
    simulated: bool
    fingerprint: str


def diagnose_judge(
    store: Store,
    batch_id: str | None = None,
    *,
    judge_id: str | None = None,
    judge_family: str | None = None,
    confidence_level: float = 0.95,
) -> JudgeDiagnostics:
    """Compare a judge with the humans on the labelled traces of a batch.

    `judge_family` is a word that the names of models of the judge's own family hold, for instance
    ``gpt``; without it self-preference is left out and says so.
    """
    judged = read_judged(store, batch_id, judge_id, sample=False)
    loaded, level = judged.loaded, confidence_level
    samples = store.verdict_samples(judged.judge_id)
    crossed = confusion(loaded.human, judged.verdicts, n_verdicts=judged.n_verdicts)
    paths, names = loaded.taxonomy.paths(OUTCOMES), [n.id for n in loaded.taxonomy.nodes]
    codes = np.arange(len(OUTCOMES))[:, None]
    answers = {node: answers_at(codes, node=node, paths=paths)[:, 0].tolist() for node in names}
    leniency, by = _leniency(judged, level)
    return JudgeDiagnostics(
        batch_id=loaded.batch.batch_id,
        judge_id=judged.judge_id,
        verdict_names=VERDICT_NAMES[: judged.n_verdicts],
        ceiling=_ceiling(judged, level),
        nodes={
            node: node_quality(crossed.table, answers[node], confidence_level=level)
            for node in names
        },
        errors=errors_by_node(crossed.table, parting_questions(paths)),
        disagreements=disagreements(judged, samples),
        leniency=leniency,
        leniency_by=by,
        slopes=_slopes(store, judged, level),
        own_family=_own_family(judged, judge_family, level),
        retest=_retest(judged, samples, level),
        simulated=loaded.simulated,
        fingerprint=_fingerprint(judged, samples, judge_family, level),
    )


def _ceiling(judged: Judged, confidence_level: float) -> dict[str, BesidePanel]:
    """Compare on the traces that the plan gave to two or more reviewers."""
    traces, codes, _ = planned_codes(judged.loaded)
    row = judged.population.row
    verdicts = judged.population.verdicts[traces["trace_id"].map(row).to_numpy(dtype=np.int64)]
    return outsider_beside_panel(
        codes,
        verdicts,
        n_classes=max(len(OUTCOMES), int(verdicts.max(initial=0)) + 1),
        confidence_level=confidence_level,
    )


def _leniency(
    judged: Judged, confidence_level: float
) -> tuple[MeanAgainstZero, dict[str, tuple[Leniency, ...]]]:
    has, gaps, tasks = judged.has_class, judged.gaps(), judged.tasks[judged.has_class]
    labelled = judged.loaded.labelled[has]
    said = judged.credit[judged.verdicts[has]]

    def mean(rows: NDArray[np.bool_]) -> MeanAgainstZero:
        return mean_against_zero(
            gaps[rows], nothing=NO_CLASS, clusters=tasks[rows], confidence_level=confidence_level
        )

    found: dict[str, tuple[Leniency, ...]] = {}
    for by in ("agent", "workflow"):
        of = group_names(labelled, by)
        means = {str(name): mean(of == name) for name in np.unique(of)}
        tested = {name: m.p_value for name, m in means.items() if m.p_value is not None}
        adjusted = holm(tested)
        found[by] = tuple(
            Leniency(
                group=name,
                verdict_credit=float(said[of == name].mean()),
                human_credit=float((said - gaps)[of == name].mean()),
                gap=m,
                p_holm=adjusted.get(name),
            )
            for name, m in sorted(means.items(), key=lambda pair: (-pair[1].estimate.n, pair[0]))
        )
    return mean(np.ones(gaps.size, dtype=bool)), found


def _slopes(store: Store, judged: Judged, confidence_level: float) -> dict[str, MeanAgainstZero]:
    labelled = judged.loaded.labelled[judged.has_class]
    texts = {t.trace_id: t.response or "" for t in store.for_review(labelled["trace_id"].tolist())}
    sizes = {
        "response": np.array([len(texts[name]) for name in labelled["trace_id"]]),
        "steps": labelled["n_steps"].to_numpy(dtype=np.int64),
    }
    return {
        name: slope_within_class(
            judged.gaps(),
            judged.loaded.human[judged.has_class],
            np.log2(np.maximum(1, size)),
            clusters=judged.tasks[judged.has_class],
            confidence_level=confidence_level,
        )
        for name, size in sizes.items()
    }


def _own_family(judged: Judged, family: str | None, confidence_level: float) -> MeanAgainstZero:
    if family is None or not family.strip():
        refused = not_estimable(NO_FAMILY, method=HC3, confidence_level=confidence_level)
        return MeanAgainstZero(estimate=refused, p_value=None)
    models = judged.loaded.labelled["model"][judged.has_class]
    known = models.notna().to_numpy(dtype=bool)
    own = models[known].str.contains(family.strip(), case=False, regex=False)
    return slope_within_class(
        judged.gaps()[known],
        judged.loaded.human[judged.has_class][known],
        own.to_numpy(dtype=np.float64),
        clusters=judged.tasks[judged.has_class][known],
        confidence_level=confidence_level,
    )


def _retest(judged: Judged, samples: pd.DataFrame, confidence_level: float) -> Retest:
    known = samples[samples["trace_id"].isin(judged.population.row)]
    codes = known["outcome"].map({name: k for k, name in enumerate(VERDICT_NAMES)})
    wide = known.assign(code=codes).pivot_table(
        index="trace_id", columns="sample", values="code", aggfunc="first"
    )
    return retest(
        wide.fillna(MISSING).to_numpy(dtype=np.int64),
        n_verdicts=len(VERDICT_NAMES),
        confidence_level=confidence_level,
    )


def _fingerprint(
    judged: Judged, samples: pd.DataFrame, judge_family: str | None, confidence_level: float
) -> str:
    loaded = judged.loaded
    return fingerprint(
        taxonomy=loaded.taxonomy.fingerprint,
        settings={
            "kind": "judge diagnostics",
            "judge": judged.judge_id,
            "family": judge_family,
            "confidence_level": confidence_level,
        },
        labels=loaded.labels[["trace_id", "reviewer_id", "outcome"]],
        human=human_frame(loaded),
        traces=loaded.traces[[*INPUT_COLUMNS, "model", "agent_version", "n_steps"]],
        verdicts=samples[["trace_id", "sample", "outcome"]],
    )
