"""What a judge asks next about a trace, and the verdict: a pure function of the replies so far."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from calibration.errors import InputError, TaxonomyError
from calibration.judging.answers import (
    CUT,
    ERROR,
    FILTER,
    FORM,
    LENGTH,
    OVERFLOW,
    REFUSAL,
    Expected,
    Unusable,
    Usable,
    answer_schema,
    answers_of,
    judged,
    path_of,
    plan_schema,
    read_reply,
    shape_of,
)
from calibration.judging.prompt import (
    ALL,
    PLAN,
    Ask,
    FewShot,
    Messages,
    Renderer,
    few_shots_digest,
)
from calibration.judging.requests import (
    Capabilities,
    QuotedEvidence,
    Reply,
    Request,
    SampleVerdict,
)
from calibration.judging.versions import READER, RENDERER, JudgeVersion, misfit, tree_digest
from calibration.records import NO_VERDICT, TraceForReview
from calibration.taxonomy import Taxonomy

SPLIT = "split"  # no class has more votes than each other one

# Once a call each: what is wrong with an answer and may be mended by asking again.
_REASKED = {
    FORM: FORM,
    LENGTH: LENGTH,
    FILTER: FILTER,
    REFUSAL: FILTER,
    OVERFLOW: OVERFLOW,
    CUT: CUT,
    ERROR: ERROR,
}
_NEVER_AS_FEW = 2.0  # characters a token, where a server names no more than its limit


class TreeJudge:
    """A judge that asks a model the questions of a taxonomy; immutable.

    Parameters
    ----------
    version
        What the judge is.
    taxonomy
        The tree that the version was made for.
    few_shots
        The worked examples of the version, in its order.
    capabilities
        What the probe found at the endpoint.

    Raises
    ------
    InputError
        If taxonomy or examples are not those of the version, its texts are from another release,
        or the endpoint does not do what it wants.

    Examples
    --------
    >>> from calibration.judging.versions import new_version
    >>> from calibration.taxonomy import default_taxonomy
    >>> taxonomy = default_taxonomy()
    >>> version = new_version(
    ...     model="m", endpoint="vllm", taxonomy=taxonomy, structured="plain", token_limit=500
    ... )
    >>> judge = TreeJudge(version=version, taxonomy=taxonomy, capabilities=Capabilities())
    >>> trace = TraceForReview(
    ...     trace_id="t1", workflow="w", prompt="Add 1 and 2.", inputs=(), sub_goals=(), steps=(),
    ...     response="It is 3.", status=None, agent="x", latency_s=None,
    ... )
    >>> request = judge.next_step(trace, "hash", 0, [])
    >>> request.call, request.reask, request.body["max_tokens"]
    (0, 0, 500)
    >>> refused = '{"choices": [{"finish_reason": "content_filter", "message": {}}]}'
    >>> filtered = Reply(key="k", status=200, headers={}, body=refused, latency_s=1.0)
    >>> judge.next_step(trace, "hash", 0, [filtered]).reask
    1
    >>> judge.next_step(trace, "hash", 0, [filtered, filtered]).cause
    'content_filter'
    """

    def __init__(
        self,
        *,
        version: JudgeVersion,
        taxonomy: Taxonomy,
        few_shots: Sequence[FewShot] = (),
        capabilities: Capabilities,
    ) -> None:
        _check(version, taxonomy, few_shots, capabilities)
        self.version, self.taxonomy, self.capabilities = version, taxonomy, capabilities
        self.few_shots = tuple(few_shots)
        self._schemas = _schemas(version, taxonomy)
        forms = {form: shape_of(schema) for form, schema in self._schemas.items()}
        self._renderer = Renderer(version, taxonomy, few_shots, forms=forms)
        self._judge_id = version.judge_id

    @property
    def judge_id(self) -> str:
        """The identity of everything that can change an answer."""
        return self._judge_id

    @property
    def samples(self) -> int:
        """How many samples are taken of each trace."""
        return self.version.samples

    def next_step(
        self, trace: TraceForReview, content_hash: str, sample: int, replies: Sequence[Reply]
    ) -> Request | SampleVerdict:
        """Return the next request about a sample, or its verdict.

        `replies` are all final replies of this trace and sample, in the order of the requests;
        those after the verdict are not looked at.
        """
        so_far = _SoFar(token_limit=self.version.token_limit, form=self._first_form())
        for reply in (*replies, None):
            messages = self._messages(trace, content_hash, so_far)
            if messages is None:
                return self._none(trace, sample, so_far, so_far.problem or OVERFLOW)
            if reply is None:
                return self._request(trace, content_hash, sample, so_far, messages)
            so_far.keys.append(reply.key)
            so_far.cut_characters = max(so_far.cut_characters, messages.cut_characters)
            read = self._read(reply, content_hash, so_far, messages)
            if isinstance(read, Usable):
                if self._accept(read, so_far):
                    return self._verdict(trace, sample, so_far)
            elif not self._ask_again(read, so_far, messages):
                return self._none(trace, sample, so_far, read.cause)
        raise AssertionError("the last round returns")  # pragma: no cover

    def lessons(
        self, trace: TraceForReview, content_hash: str, answer: Mapping[str, Any]
    ) -> list[list[dict[str, str]]] | None:
        """Return conversations to train a judge on, one a call; None if the trace does not fit.

        Each has the messages that the judge sends and, as the last one, the reply that it should
        get, which it would read as this answer.

        Parameters
        ----------
        trace, content_hash
            As of `next_step`.
        answer
            ``subgoals``, ``violations``, and a part for each question on the path.
        """
        path = path_of(answer, self.taxonomy)
        forms = [ALL] if self.version.plan == "one_call" else [node.id for node in path]
        found = []
        for call, form in enumerate(forms):
            messages = self._messages(
                trace, content_hash,
                _SoFar(token_limit=self.version.token_limit, form=form, call=call),
            )  # fmt: skip
            if messages is None:
                return None
            codes = {
                "head": self._renderer.head,
                "tail": self._renderer.tail(content_hash, call),
            }
            fields = self._schemas[form]["properties"]
            said = {name: codes.get(name, answer.get(name)) for name in fields}
            reply = {"role": "assistant", "content": json.dumps(said, ensure_ascii=False)}
            found.append([*map(dict, messages.messages), reply])
        return found

    def _first_form(self) -> str:
        """Return what the first call asks for."""
        by_plan = {"plan_first": PLAN, "per_node": self.taxonomy.root.id}
        return by_plan.get(self.version.plan, ALL)

    def _messages(
        self, trace: TraceForReview, content_hash: str, so_far: "_SoFar"
    ) -> Messages | None:
        """Return the messages of the call that is due, None if they do not fit."""
        rooms = [self._renderer.room(so_far.token_limit), so_far.room]
        known = [room for room in rooms if room is not None]
        return self._renderer.messages(
            trace,
            content_hash,
            Ask(call=so_far.call, form=so_far.form, plan=so_far.plan, note=so_far.note),
            token_limit=so_far.token_limit,
            room=min(known) if known else None,
        )

    def _request(
        self,
        trace: TraceForReview,
        content_hash: str,
        sample: int,
        so_far: "_SoFar",
        messages: Messages,
    ) -> Request:
        """Return the request of the call that is due."""
        return Request(
            trace_id=trace.trace_id,
            content_hash=content_hash,
            sample=sample,
            output_limit=so_far.token_limit,
            call=so_far.call,
            reask=so_far.reask,
            body=body_of(
                self.version,
                self.capabilities,
                messages.messages,
                self._schemas[so_far.form],
                token_limit=so_far.token_limit,
                sample=sample,
            ),
        )

    def _read(
        self, reply: Reply, content_hash: str, so_far: "_SoFar", messages: Messages
    ) -> Usable | Unusable:
        """Return the answer in a reply, or why there is none."""
        read = read_reply(
            reply.status,
            reply.body,
            Expected(
                schema=self._schemas[so_far.form],
                head=self._renderer.head,
                tail=self._renderer.tail(content_hash, so_far.call),
                prompt_tokens=messages.characters / self.version.characters_per_token,
            ),
        )
        if isinstance(read, Usable) and so_far.form == ALL:
            try:
                path_of(read.answer, self.taxonomy)
            except TaxonomyError as error:
                return Unusable(cause=FORM, message=str(error))
        return read

    def _accept(self, read: Usable, so_far: "_SoFar") -> bool:
        """Take in an answer; return whether it is the last one."""
        so_far.answer |= {k: v for k, v in read.answer.items() if k not in ("head", "tail")}
        so_far.models.add(read.model)
        if so_far.form == ALL:
            return True
        if so_far.form == PLAN:
            so_far.plan = json.dumps(read.answer, ensure_ascii=False)
            following = ALL
        else:
            node = self.taxonomy.node(so_far.form)
            following = node.target(answers_of(read.answer, self.taxonomy)[node.id])
            if following in self.taxonomy.names:
                return True
        so_far.next_call(following, self.version.token_limit)
        return False

    def _ask_again(self, read: Unusable, so_far: "_SoFar", messages: Messages) -> bool:
        """Prepare the next attempt at a call; return False if there is none."""
        kind = _REASKED[read.cause]
        if kind in so_far.tried:
            return False
        so_far.tried.add(kind)
        so_far.problem = read.cause
        if kind == FORM:
            so_far.note = read.message
        elif kind == LENGTH:
            so_far.token_limit *= 2
        elif kind in (OVERFLOW, CUT):
            room = _smaller_room(read, messages.characters, so_far.token_limit)
            if room is None:
                return False
            so_far.room = room
        so_far.reask += 1
        return True

    def _verdict(self, trace: TraceForReview, sample: int, so_far: "_SoFar") -> SampleVerdict:
        """Return the verdict of a whole answer."""
        answer = {"subgoals": [], "violations": []} | so_far.answer
        found = judged(answer, self.taxonomy, trace)
        named = self.capabilities.model_returned
        other = bool(named) and bool(so_far.models - {named, ""})
        return SampleVerdict(
            trace_id=trace.trace_id,
            sample=sample,
            outcome=found.outcome,
            answer=answer,
            reason=found.reason,
            evidence=found.evidence,
            flags=(*found.flags, *(("other_model",) if other else ())),
            cut_characters=so_far.cut_characters,
            replies=tuple(so_far.keys),
        )

    def _none(
        self, trace: TraceForReview, sample: int, so_far: "_SoFar", cause: str
    ) -> SampleVerdict:
        """Return that there is no verdict, and why; what was answered before is kept."""
        return SampleVerdict(
            trace_id=trace.trace_id,
            sample=sample,
            outcome=NO_VERDICT,
            cause=cause,
            answer=so_far.answer or None,
            cut_characters=so_far.cut_characters,
            replies=tuple(so_far.keys),
        )


@dataclass(slots=True, kw_only=True)
class _SoFar:
    """Where a sample stands while its replies are gone through."""

    token_limit: int
    form: str
    call: int = 0
    reask: int = 0
    plan: str = ""
    note: str = ""
    problem: str = ""
    room: int | None = None
    cut_characters: int = 0
    tried: set[str] = field(default_factory=set)
    keys: list[str] = field(default_factory=list)
    models: set[str] = field(default_factory=set)
    answer: dict[str, Any] = field(default_factory=dict)

    def next_call(self, form: str, token_limit: int) -> None:
        """Go on to another call; what was learned of the room remains."""
        self.call, self.reask, self.form = self.call + 1, 0, form
        self.token_limit, self.note, self.problem = token_limit, "", ""
        self.tried = set()


def _check(
    version: JudgeVersion,
    taxonomy: Taxonomy,
    few_shots: Sequence[FewShot],
    capabilities: Capabilities,
) -> None:
    """Require what a version was made with, and an endpoint that does what it wants."""
    if (version.renderer, version.reader) != (RENDERER, READER):
        raise InputError(
            f"judge {version.judge_id} is of texts {version.renderer} and reader {version.reader}, "
            f"this release has {RENDERER} and {READER}; make a new version"
        )
    if (version.tree_version, version.tree_sha256) != (taxonomy.version, tree_digest(taxonomy)):
        raise InputError(
            f"judge {version.judge_id} was made for the questions of taxonomy "
            f"{version.tree_version}, which are not those of taxonomy {taxonomy.version} at hand"
        )
    ids = tuple(few_shot.trace.trace_id for few_shot in few_shots)
    if ids != version.few_shots:
        raise InputError(
            f"judge {version.judge_id} has the worked examples "
            f"{', '.join(version.few_shots) or 'none'}, got {', '.join(ids) or 'none'}"
        )
    if few_shots_digest(few_shots) != version.few_shots_sha256:
        raise InputError(
            f"the worked examples of judge {version.judge_id} were changed since it was made"
        )
    reason = misfit(version, capabilities)
    if reason is not None:
        raise InputError(f"judge {version.judge_id}: {reason}")


def _schemas(version: JudgeVersion, taxonomy: Taxonomy) -> dict[str, dict[str, Any]]:
    """Return the schemas of the answers of a judge, by what is asked for."""
    if version.plan == "per_node":
        return {node.id: answer_schema(taxonomy, node.id) for node in taxonomy.nodes}
    whole = {ALL: answer_schema(taxonomy)}
    return {PLAN: plan_schema(), **whole} if version.plan == "plan_first" else whole


def body_of(
    version: JudgeVersion,
    capabilities: Capabilities,
    messages: Sequence[Mapping[str, str]],
    schema: Mapping[str, Any],
    *,
    token_limit: int,
    sample: int = 0,
) -> dict[str, object]:
    """Return the arguments of a call to the model of a judge, with the judge's settings."""
    body: dict[str, object] = {
        "model": version.model,
        "messages": [dict(message) for message in messages],
        capabilities.token_parameter: token_limit,
    }
    if version.temperature is not None:
        body["temperature"] = version.temperature
    if version.seed is not None:
        body["seed"] = version.seed + sample
    if version.reasoning_effort is not None:
        body["reasoning_effort"] = version.reasoning_effort
    return body | structured(version.structured, schema)


def structured(mode: str, schema: Mapping[str, Any]) -> dict[str, object]:
    """Return the arguments of a call that ask for an answer of a schema, in one of the modes.

    Examples
    --------
    >>> structured("json_object", {})
    {'response_format': {'type': 'json_object'}}
    >>> structured("plain", {})
    {}
    """
    if mode == "json_schema":
        of = {"name": "answer", "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": of}}
    if mode == "tool":
        function = {"name": "answer", "description": "The answer.", "parameters": schema}
        return {
            "tools": [{"type": "function", "function": function}],
            "tool_choice": {"type": "function", "function": {"name": "answer"}},
        }
    if mode == "json_object":
        return {"response_format": {"type": "json_object"}}
    return {}


def _smaller_room(read: Unusable, characters: int, token_limit: int) -> int | None:
    """Return how many characters a server takes, from the numbers that it named.

    `limit` counts prompt and answer, unless it leaves nothing for the prompt, or is how much of
    the prompt a server read before it cut it.
    """
    if read.limit is None:
        return None
    whole_prompt = read.cause == CUT or read.limit <= token_limit
    tokens = read.limit if whole_prompt else read.limit - token_limit
    per_token = characters / read.used if read.used else _NEVER_AS_FEW
    return int(0.9 * min(characters, tokens * per_token))


# ---- samples


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceVerdict:
    """The verdict of all samples on a trace.

    `outcome` is the class with most votes, or ``no_verdict`` with a cause: ``split`` if two classes
    share the most votes, else the most frequent cause of the samples. `shares` are of the votes
    and no probabilities. `reason` and `evidence` are of the first sample of the class.
    """

    trace_id: str
    outcome: str
    cause: str | None
    shares: dict[str, float]
    causes: dict[str, int]
    n_samples: int
    n_valid: int
    reason: str | None = None
    evidence: tuple[QuotedEvidence, ...] = ()
    flags: tuple[str, ...] = ()
    cut_characters: int = 0


def combine(samples: Sequence[SampleVerdict]) -> TraceVerdict:
    """Return the verdict of all samples on a trace: the plurality of the valid ones.

    With fewer than half of them valid there is no verdict. Of causes that are equally frequent the
    first in the alphabet is named.

    Raises
    ------
    ValueError
        If there is no sample, or they are of several traces.

    Examples
    --------
    >>> votes = ["complete", "partial_plus", "complete"]
    >>> samples = [
    ...     SampleVerdict(trace_id="t", sample=k, outcome=vote) for k, vote in enumerate(votes)
    ... ]
    >>> verdict = combine(samples)
    >>> verdict.outcome, round(verdict.shares["complete"], 2)
    ('complete', 0.67)
    >>> combine(samples[:2]).outcome, combine(samples[:2]).cause
    ('no_verdict', 'split')
    """
    if not samples or len({sample.trace_id for sample in samples}) > 1:
        raise ValueError("samples must be of one trace, and at least one")
    ordered = sorted(samples, key=lambda sample: sample.sample)
    valid = [sample for sample in ordered if sample.outcome != NO_VERDICT]
    votes = Counter(sample.outcome for sample in valid)
    causes = Counter(s.cause or ERROR for s in ordered if s.outcome == NO_VERDICT)
    first = [outcome for outcome, n in votes.items() if n == max(votes.values())]
    outcome, cause = NO_VERDICT, None
    if 2 * len(valid) < len(samples):
        cause = min(causes, key=lambda name: (-causes[name], name))
    elif len(first) > 1:
        cause = SPLIT
    else:
        outcome = first[0]
    chosen = next((sample for sample in valid if sample.outcome == outcome), None)
    return TraceVerdict(
        trace_id=ordered[0].trace_id,
        outcome=outcome,
        cause=cause,
        shares={name: n / len(valid) for name, n in sorted(votes.items())},
        causes=dict(sorted(causes.items())),
        n_samples=len(samples),
        n_valid=len(valid),
        reason=chosen.reason if chosen else None,
        evidence=chosen.evidence if chosen else (),
        flags=tuple(sorted({flag for sample in ordered for flag in sample.flags})),
        cut_characters=max(sample.cut_characters for sample in ordered),
    )
