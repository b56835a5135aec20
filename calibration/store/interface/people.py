"""People, the taxonomy in force, workflows."""

from calibration.records import Reviewer, Workflow
from calibration.store import people
from calibration.store.interface.base import Calls
from calibration.store.interface.roles import ADMIN, LEAD, REVIEWER, open_to
from calibration.taxonomy import Taxonomy


class PeopleCalls(Calls):
    """People, the taxonomy in force, workflows."""

    @open_to(REVIEWER)
    def taxonomy(self) -> Taxonomy:
        """Return the taxonomy in force."""
        return people.taxonomy(self._db)

    @open_to(ADMIN)
    def set_taxonomy(self, taxonomy: Taxonomy) -> None:
        """Put a taxonomy in force."""
        people.set_taxonomy(self._db, taxonomy)

    @open_to(REVIEWER)
    def workflows(self) -> dict[str, Workflow]:
        """Return the workflows by name."""
        return people.workflows(self._db)

    @open_to(LEAD)
    def set_workflow(self, workflow: Workflow) -> None:
        """Set ceiling and unit of a workflow."""
        people.set_workflow(self._db, workflow)

    @open_to(LEAD)
    def reviewers(self) -> list[Reviewer]:
        """Return everybody who can label."""
        return people.reviewers(self._db)

    @open_to(ADMIN)
    def add_reviewer(
        self, name: str, *, role: str = "reviewer", simulated: bool = False
    ) -> Reviewer:
        """Add a reviewer, or return the one who has this name."""
        return people.add_reviewer(self._db, name, role=role, simulated=simulated)
