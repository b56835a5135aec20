"""The judges of a store: made from the handbook, practice traces and what a probe found."""

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from calibration.errors import InputError
from calibration.judging.budget import Prices
from calibration.judging.probe import Probe, probe
from calibration.judging.prompt import FewShot, few_shots_digest
from calibration.judging.requests import Capabilities
from calibration.judging.steps import TreeJudge
from calibration.judging.transport import Transport
from calibration.judging.versions import (
    DEFAULT_ROLE,
    READER,
    JudgeVersion,
    new_version,
    version_from_dict,
)
from calibration.records import Evidence
from calibration.store import Store
from calibration.store.judges import StoredJudge
from calibration.taxonomy import Taxonomy
from reference_dataset.handbook import handbook
from reference_dataset.loader import ReferenceSet
from reference_dataset.team import team_reference

PRACTICE, EXAM_A, EXAM_B = "practice", "exam_a", "exam_b"
KEY, ADDRESSES = "ASR_JUDGE_KEY", "ASR_JUDGE_URL"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeEntry:
    """A judge of a store, with what is needed to ask it.

    `address` is that of the endpoint when the judge was made, without a key; `findings` say how
    the endpoint answered each call of the probe. `rules` were suggested: each is for a question.
    """

    name: str
    version: JudgeVersion
    capabilities: Capabilities
    address: str
    prices: Prices | None = None
    findings: tuple[str, ...] = ()
    parent: str | None = None
    rules: tuple[tuple[str, str], ...] = ()

    def body(self) -> str:
        """Return what a store keeps, as JSON."""
        return json.dumps(
            {
                "version": self.version.to_dict(),
                "capabilities": asdict(self.capabilities),
                "address": self.address,
                "prices": None if self.prices is None else asdict(self.prices),
                "findings": list(self.findings),
                "parent": self.parent,
                "rules": self.rules,
            }
        )


def entry_of(stored: StoredJudge) -> JudgeEntry:
    """Return a stored judge; InputError if its version cannot be read."""
    body = stored.body
    prices = body.get("prices")
    return JudgeEntry(
        name=stored.judge_id,
        version=version_from_dict(body["version"], where=f"judge {stored.judge_id}"),
        capabilities=Capabilities(**body["capabilities"]),
        address=body["address"],
        prices=None if prices is None else Prices(**prices),
        findings=tuple(body["findings"]),
        parent=body["parent"],
        rules=tuple((question, rule) for question, rule in body.get("rules", ())),
    )


def endpoint_key() -> str:
    """Return the key of the endpoint from the environment; empty without one."""
    return os.environ.get(KEY, "")


def permitted_addresses() -> tuple[str, ...]:
    """Return the addresses that whoever runs the app lets its pages ask, and give the key."""
    found = (address.strip() for address in os.environ.get(ADDRESSES, "").split(","))
    return tuple(dict.fromkeys(address for address in found if address))


def check_permitted(address: str) -> None:
    """Raise InputError for an address that the pages of the app may not ask."""
    if address not in permitted_addresses():
        raise InputError(
            f"{address!r:.200} is not in {ADDRESSES} where the app runs; add it there and start "
            "the app again, or use the command line"
        )


def ask_endpoint(address: str, model: str) -> Probe:
    """Ask an endpoint what it can do; raises as `probe`."""

    async def go() -> Probe:
        transport = Transport(address, endpoint_key())
        try:
            return await probe(transport, model)
        finally:
            await transport.aclose()

    return asyncio.run(go())


def make_judge(
    store: Store,
    name: str,
    *,
    model: str | None = None,
    address: str | None = None,
    kind: str | None = None,
    parent: str | None = None,
    **about: Any,
) -> JudgeEntry:
    """Ask an endpoint what it can do, and store the judge that is made for it.

    Parameters
    ----------
    store : Store
    name : str
    model, address : str, optional
        Those of the parent where they are not given.
    kind : str, optional
        The kind of endpoint; its host where it is not given.
    parent : str, optional
        A judge whose settings are taken over where none are given.
    **about
        Further arguments of `add_judge`.

    Raises
    ------
    InputError
        As `add_judge`, and without a model or an address.
    JudgeRunError
        As `ask_endpoint`.
    """
    before = None if parent is None else entry_of(store.judge(parent))
    if before is not None:
        model, address = model or before.version.model, address or before.address
    if not model or not address:
        raise InputError("give the model and the address of the endpoint, or a judge to start from")
    if kind is None and before is not None and before.address == address:
        kind = before.version.endpoint
    found = ask_endpoint(address, model)
    return add_judge(
        store, name, model=model, address=address, parent=parent,
        endpoint=kind or urlsplit(address).hostname or address,
        capabilities=found.capabilities, findings=found.findings, **about,
    )  # fmt: skip


def add_judge(
    store: Store,
    name: str,
    *,
    model: str,
    endpoint: str,
    address: str,
    capabilities: Capabilities,
    findings: Sequence[str] = (),
    prices: Prices | None = None,
    per_class: int | None = None,
    parent: str | None = None,
    role: str | None = None,
    settings: dict[str, Any] | None = None,
) -> JudgeEntry:
    """Make a judge of the store's taxonomy and store it under a name.

    Parameters
    ----------
    store : Store
    name : str
        As it is called in verdicts and reports.
    model, endpoint : str
        The name to ask for, and the kind of endpoint.
    address : str
        The address of the endpoint.
    capabilities, findings
        What the probe found.
    prices : Prices, optional
        For a cap and an estimate in money.
    per_class : int, optional
        Worked examples of each class, from the practice form; those of the parent, or none.
    parent : str, optional
        A judge whose settings are taken over where none are given; both are of one line.
    role : str, optional
        What the judge is told to be.
    settings : dict, optional
        Further fields of `JudgeVersion`.

    Raises
    ------
    InputError
        If the name is taken, the version exists, or a setting has no permitted value.
    """
    taxonomy = store.taxonomy()
    given = {key: value for key, value in (settings or {}).items() if value is not None}
    before = None if parent is None else entry_of(store.judge(parent))
    rules = () if before is None else before.rules
    if before is not None:
        kept = before.version.to_dict()
        own = ("samples", "temperature", "seed", "token_limit", "reasoning_effort", "plan",
               "thoughts", "context_tokens", "characters_per_token")  # fmt: skip
        given = {key: kept[key] for key in own} | given
        role = role or before.version.role
        prices = prices or before.prices
    if not capabilities.temperature:
        given["temperature"] = None
    if not capabilities.seed:
        given["seed"] = None
    if capabilities.context is not None:
        given.setdefault("context_tokens", capabilities.context)
        given["context_tokens"] = min(
            given["context_tokens"] or capabilities.context, capabilities.context
        )
    dataset = team_reference(store.path, taxonomy)
    if per_class is None and before is not None:
        examples = worked_examples(dataset, taxonomy, before.version.few_shots)
    else:
        examples = worked_examples(dataset, taxonomy, per_class=per_class or 0)
    version = new_version(
        model=model,
        endpoint=endpoint,
        taxonomy=taxonomy,
        few_shots=[example.trace.trace_id for example in examples],
        few_shots_sha256=few_shots_digest(examples),
        handbook=excerpts(store, taxonomy, rules),
        role=role or DEFAULT_ROLE,
        **given | {"structured": capabilities.structured},
    )
    entry = JudgeEntry(
        name=name, version=version, capabilities=capabilities, address=address, prices=prices,
        findings=tuple(findings), parent=parent, rules=rules,
    )  # fmt: skip
    tree_judge(entry, dataset, taxonomy)
    store.add_judge(name, version.judge_id, entry.body(), parent)
    return entry


def with_this_reader(entry: JudgeEntry, name: str) -> JudgeEntry:
    """Return a judge that reads the paid answers of another one as this release does.

    Raises
    ------
    InputError
        If the release reads answers as the judge did.
    """
    if entry.version.reader == READER:
        raise InputError(
            f"judge {entry.name} was made for reader {READER}, that of this release: its answers "
            "would be read in the same way"
        )
    version = replace(entry.version, reader=READER)
    return replace(entry, name=name, version=version, parent=entry.name)


def tree_judge(entry: JudgeEntry, dataset: ReferenceSet, taxonomy: Taxonomy) -> TreeJudge:
    """Return the judge itself; InputError if its taxonomy or examples have changed."""
    return TreeJudge(
        version=entry.version,
        taxonomy=taxonomy,
        few_shots=worked_examples(dataset, taxonomy, entry.version.few_shots),
        capabilities=entry.capabilities,
    )


def judge_of(store: Store, name: str) -> tuple[JudgeEntry, TreeJudge]:
    """Return a judge of the store by name.

    Raises
    ------
    InputError
        If there is none of this name, or it does not fit the taxonomy in force.
    """
    entry, taxonomy = entry_of(store.judge(name)), store.taxonomy()
    return entry, tree_judge(entry, team_reference(store.path, taxonomy), taxonomy)


def with_rules(
    store: Store, parent: str, name: str, rules: Sequence[tuple[str, str]]
) -> JudgeEntry:
    """Store a judge that is told further rules, each for a question, and is else as its parent.

    Raises
    ------
    InputError
        If the name is taken, the version exists, or its parent does not fit the taxonomy.
    """
    before, judge = judge_of(store, parent)
    every = (*before.rules, *(rule for rule in rules if rule not in before.rules))
    version = replace(
        before.version, handbook=tuple(excerpts(store, judge.taxonomy, every).items())
    )
    entry = replace(before, name=name, version=version, parent=parent, rules=every)
    store.add_judge(name, version.judge_id, entry.body(), parent)
    return entry


def excerpts(
    store: Store, taxonomy: Taxonomy, rules: Sequence[tuple[str, str]] = ()
) -> dict[str, str]:
    """Return what the handbook, the team's own sentences and `rules` say on each question."""
    published, own = handbook(), store.handbook_additions()
    texts = {
        node.id: "\n".join([*([published[node.id]] if node.id in published else []),
                            *own.get(node.id, []),
                            *(rule for question, rule in rules if question == node.id)])
        for node in taxonomy.nodes
    }  # fmt: skip
    return {question: text for question, text in texts.items() if text}


def practice_ids(dataset: ReferenceSet) -> list[str]:
    """Return the traces that may be worked examples: practice forms, with a label to show."""
    names = [name for name in dataset.forms if name.rpartition("/")[2] == PRACTICE]
    return [i for name in names for i in dataset.forms[name] if i in dataset.labels]


def worked_examples(
    dataset: ReferenceSet,
    taxonomy: Taxonomy,
    trace_ids: Sequence[str] = (),
    *,
    per_class: int = 0,
) -> tuple[FewShot, ...]:
    """Return practice traces with their reference answers.

    Parameters
    ----------
    dataset : ReferenceSet
        It must hold no private labels: examples are sent to the endpoint.
    taxonomy : Taxonomy
    trace_ids : sequence of str
        Practice traces, in this order.
    per_class : int
        Without ids: so many of each class, the shortest ones, in the order of the classes.

    Raises
    ------
    InputError
        If one is no practice trace, or a class has too few.
    """
    known = practice_ids(dataset)
    chosen = list(trace_ids)
    for outcome in taxonomy.names if not chosen else ():
        of_class = [i for i in known if dataset.labels[i].outcome == outcome]
        if len(of_class) < per_class:
            raise InputError(
                f"{len(of_class)} practice traces are {outcome!r}, {per_class} examples of each "
                "class were asked for; ask for fewer"
            )
        of_class.sort(key=lambda i: (len(repr(dataset.traces[i])), i))
        chosen += of_class[:per_class]
    for trace_id in chosen:
        if trace_id not in known:
            raise InputError(f"{trace_id!r:.80} is no practice trace, so it may be no example")
    return tuple(_example(dataset, trace_id) for trace_id in chosen)


def _example(dataset: ReferenceSet, trace_id: str) -> FewShot:
    label = dataset.labels[trace_id]
    return FewShot(
        trace=dataset.traces[trace_id].for_review(),
        answers=label.answers,
        reason=label.rationale,
        evidence=tuple(Evidence(step_id=e.step_id, quote=e.quote) for e in label.evidence),
    )
