"""A store that another process holds: questions go to its snapshot, writes to its inbox."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from calibration.errors import StoreLockedError
from calibration.records import LabelDraft, Reviewer, Trace, Verdict, Workflow
from calibration.store import sharing, traces
from calibration.store.batches import Batch
from calibration.store.labels import LabelsStored
from calibration.store.leases import CertificateDemand
from calibration.store.sharing import hand_over, is_attended
from calibration.store.sign_in import hashed
from calibration.store.store import Store
from calibration.store.verdicts import VerdictsStored
from calibration.taxonomy import Taxonomy


class RemoteStore(Store):
    """The store as a command sees it while the app holds the file.

    After a write the snapshot is read again, so that a command sees what it has stored. What
    only the Label page writes cannot be handed over.

    Raises
    ------
    StoreLockedError
        `locked`, if no app takes requests in.
    """

    def __init__(
        self, path: Path, locked: StoreLockedError, *, waiting: Callable[[float], None]
    ) -> None:
        if not is_attended(path):
            raise locked
        self._locked, self._waiting = locked, waiting
        super().__init__(sharing.open_snapshot(path, locked))

    def set_taxonomy(self, taxonomy: Taxonomy) -> None:
        """Put a taxonomy in force."""
        self._hand_over("set_taxonomy", taxonomy=taxonomy)

    def set_workflow(self, workflow: Workflow) -> None:
        """Set ceiling and unit of a workflow."""
        self._hand_over("set_workflow", workflow=workflow)

    def add_reviewer(
        self, name: str, *, role: str = "reviewer", simulated: bool = False
    ) -> Reviewer:
        """Add a reviewer, or return the one who has this name."""
        added: Reviewer = self._hand_over("add_reviewer", name=name, role=role, simulated=simulated)
        return added

    def set_passphrase(self, reviewer_id: str, passphrase: str) -> None:
        """Give a person a passphrase; only its hash is handed over."""
        self._hand_over("store_hash", reviewer_id=reviewer_id, hash=hashed(passphrase))

    def set_identities(self, wanted: str) -> None:
        """Choose how people say who they are."""
        self._hand_over("set_identities", wanted=wanted)

    def set_role(self, reviewer_id: str, role: str) -> Reviewer:
        """Give a person another role."""
        changed: Reviewer = self._hand_over("set_role", reviewer_id=reviewer_id, role=role)
        return changed

    def ingest(self, new: Sequence[Trace], *, take_changed: bool = False) -> traces.IngestResult:
        """Write the text of traces here; the app adds those that are new to its index."""
        index = traces.write_index(self.path, new)
        done: traces.IngestResult = self._hand_over(
            "ingest_written", index=index, take_changed=take_changed
        )
        return done

    def add_batch(
        self,
        *,
        purpose: str,
        trace_ids: Sequence[str],
        inclusion_probability: float | None = None,
        labels_wanted: int = 2,
        design: dict[str, Any] | None = None,
        token: str | None = None,
        item_labels: Sequence[int] | None = None,
        item_probabilities: Sequence[float] | None = None,
        item_strata: Sequence[int] | None = None,
        reviewer_id: str | None = None,
        certificate: str | None = None,
    ) -> Batch:
        """Store a batch; traces are served in the order given."""
        batch: Batch = self._hand_over(
            "add_batch",
            purpose=purpose,
            trace_ids=list(trace_ids),
            inclusion_probability=inclusion_probability,
            labels_wanted=labels_wanted,
            design=design or {},
            token=token or str(uuid4()),
            item_labels=None if item_labels is None else list(item_labels),
            item_probabilities=None if item_probabilities is None else list(item_probabilities),
            item_strata=None if item_strata is None else list(item_strata),
            reviewer_id=reviewer_id,
            certificate=certificate,
        )
        return batch

    def import_labels(self, batch_id: str, drafts: Sequence[LabelDraft]) -> LabelsStored:
        """Store labels that were made elsewhere; none is ever overwritten."""
        done: LabelsStored = self._hand_over(
            "import_labels", batch_id=batch_id, drafts=list(drafts)
        )
        return done

    def add_verdicts(self, new: Sequence[Verdict]) -> VerdictsStored:
        """Store verdicts; none is ever overwritten."""
        done: VerdictsStored = self._hand_over("add_verdicts", new=list(new))
        return done

    def set_certificate_demand(self, wanted: CertificateDemand, *, by: str) -> None:
        """Demand certificates from now on."""
        self._hand_over("set_certificate_demand", wanted=wanted, by=by)

    def _hand_over(self, call: str, **arguments: Any) -> Any:
        path = self.path
        result = hand_over(path, call, arguments, waiting=self._waiting)
        self._db.close()
        self._db = sharing.open_snapshot(path, self._locked)
        return result
