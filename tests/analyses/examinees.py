"""People who sit examinations, and err where a test says so."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from unittest.mock import patch
from uuid import uuid4

import pytest

from calibration.analyses.reviewers.examinations import Examiner, settle, start_exam, start_practice
from calibration.records import Evidence, LabelDraft, TraceForReview
from calibration.store import Store, batches, certification, labels, leases, queue
from calibration.store.certification import Exam
from tests.store.builders import Clock

ME = "anna"


def set_clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (leases, certification, batches, labels, queue):
        monkeypatch.setattr(module, "utc_now", made)
    return made


@dataclass(frozen=True)
class Examinee:
    """One reviewer at their examinations."""

    store: Store
    by: Examiner
    clock: Clock
    who: str = ME

    def start(self) -> Exam:
        return start_exam(self.store, self.by, self.who, now=self.clock.now)

    def sit(self, exam: Exam, wrong: Mapping[str, str] | None = None) -> Exam:
        """Label what is open as the key says, but for `wrong` by trace; return it recorded."""
        self.label(exam.batch_id, lambda i: (wrong or {}).get(i, self.due(i)))
        settle(self.store, self.by, self.who)
        return next(e for e in self.store.exams_of(self.who) if e.batch_id == exam.batch_id)

    def due(self, trace_id: str) -> str:
        label = self.by.dataset.labels.get(trace_id)
        return "complete" if label is None else label.outcome

    def label(self, batch_id: str, outcome: Callable[[str], str]) -> None:
        """Label all that is open, in one go: by the queue it takes as long as for people."""
        labelled = self.store.exam_labels(self.who, batch_id)
        tree = self.store.taxonomy()
        drafts = [
            LabelDraft(
                client_token=str(uuid4()), trace_id=trace_id, reviewer_id=self.who,
                batch_id=batch_id, answers=tree.answers_for(outcome(trace_id)),
            )
            for trace_id in self.store.batch_items(batch_id)["trace_id"]
            if trace_id not in labelled
        ]  # fmt: skip
        with patch.object(labels, "is_exam", return_value=False):
            self.store.import_labels(batch_id, drafts)

    def wrong(self, exam: Exam, due: str, given: str, n: int) -> dict[str, str]:
        """Return `n` errors of one kind among the traces of an examination."""
        items = self.store.batch_items(exam.batch_id)["trace_id"]
        return dict.fromkeys([i for i in items if self.due(i) == due][:n], given)

    def fail(self) -> Exam:
        exam = self.start()
        items = self.store.batch_items(exam.batch_id)["trace_id"]
        return self.sit(exam, dict.fromkeys(items, "abandoned"))

    def practise(self) -> None:
        made = start_practice(self.store, self.by.dataset, self.who)
        self.label(made.batch_id, self.due)

    def later(self, **by: float) -> datetime:
        self.clock.forward(**by)
        return self.clock.now


def give(store: Store, who: str, batch_id: str, trace: TraceForReview, outcome: str) -> None:
    step = next(s for s in trace.steps if s.content)
    quote = Evidence(step_id=step.step_id, quote=(step.content or "")[:20])
    store.record_label(
        LabelDraft(
            client_token=str(uuid4()), trace_id=trace.trace_id, reviewer_id=who,
            batch_id=batch_id, answers=store.taxonomy().answers_for(outcome), evidence=(quote,),
        )
    )  # fmt: skip
