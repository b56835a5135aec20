"""Which traces are meant: the filters of the Data page, of `asr traces` and of saved queries."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from cattrs.errors import BaseValidationError
from cattrs.preconf.json import make_converter

from calibration.errors import InputError, StoreError
from calibration.records import NO_VERDICT, OUTCOMES

DISPUTED, UNLABELLED = "disputed", "unlabelled"
CLASSES = (*OUTCOMES, DISPUTED, UNLABELLED)
FOR_LEADS = ("classes", "tags", "judge", "verdicts", "models")

_convert = make_converter(forbid_extra_keys=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFilter:
    """Which traces are meant; what is empty does not restrict, several names mean any of them.

    `classes` is what humans said (the adjudicated class, else the one that all labels of
    production traces agree on, else ``disputed``; ``unlabelled`` without a label); `tags` are
    those that any of these labels carries, in upper or lower case. `verdicts`
    are those of `judge`. `tool_ended` is ``error`` where a call of the tool ended in an error
    and ``ok`` where every call ended well; without `tool` it is about all tools. The window is
    in UTC, without its end; a trace that says no time is in none. `text` is looked for in the
    task in any case.
    """

    workflows: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    task_key: str | None = None
    text: str | None = None
    tool: str | None = None
    tool_ended: Literal["ok", "error"] | None = None
    started_from: datetime | None = None
    started_before: datetime | None = None
    batch_id: str | None = None
    classes: tuple[str, ...] = ()
    judge: str | None = None
    verdicts: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, known in (("classes", CLASSES), ("verdicts", (*OUTCOMES, NO_VERDICT))):
            for value in getattr(self, name):
                if value not in known:
                    raise InputError(f"{name} must be of {', '.join(known)}, got {value!r:.80}")
        if self.verdicts and self.judge is None:
            raise InputError("verdicts must come with the judge whose they are")

    @property
    def for_leads(self) -> bool:
        """Whether the filter tells its user what a labelling reviewer must not know."""
        return any(getattr(self, name) for name in FOR_LEADS)

    def to_dict(self) -> dict[str, Any]:
        """Return what restricts, as JSON can hold it."""
        plain: dict[str, Any] = _convert.unstructure(self)
        return {name: value for name, value in plain.items() if value}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "TraceFilter":
        """Return the filter that `to_dict` was called on."""
        try:
            return _convert.structure(dict(plain), cls)
        except (BaseValidationError, ValueError) as error:
            raise StoreError(f"these filters are of another version: {plain!r:.200}") from error
