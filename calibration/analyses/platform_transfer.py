"""Pull traces from a platform and push scores to it, so that both may be cut off at any moment.

What is pulled is kept page by page in a folder beside the store, with the cursor of the next page,
until the importers have read it. What was pushed is noted there line by line.
"""

import asyncio
import hashlib
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from calibration.analyses.platform_api import (
    DETAILED,
    TOO_LARGE,
    Listed,
    Platform,
    PlatformAccess,
    PlatformClient,
    Told,
    TraceRows,
    Window,
)
from calibration.analyses.platform_scores import AS_SCORE, PlatformScore
from calibration.errors import InputError, PlatformError
from calibration.files import hold, private_folder, put
from calibration.judging.pace import RunClock
from calibration.text import counted

SUFFIX = ".platforms"
PLAN, PLACE, LAST, SENT, LOCK = "plan.json", "place.json", "last.json", "sent.jsonl", "lock"
SETTLED = timedelta(minutes=10)  # platforms show parts of a trace as late as that
OVERLAP = timedelta(hours=1)
FIRST_PULL = timedelta(days=7)
MOST_TRACES = 100_000
MOST_BYTES = 4_000_000_000  # of one pull on the disk
_SPAN = re.compile(r"([1-9][0-9]{0,4})([hdw])")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PullOptions:
    """What is asked of a pull; without `since`, from where the last one ended, else of 7 days.

    `limit` is the most traces, newest first. `again` also reads traces that the store has.
    `store_id` is that of the store, empty where it is yet to be made: what a pull into another
    store left behind is not gone on with.
    """

    since: str | None = None
    until: str | None = None
    limit: int = 1_000
    project: str | None = None
    again: bool = False
    store_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulled:
    """What lies in the folder of a pull: pages in the shapes of the importers.

    `more` is whether the window holds further traces, `resumed` whether an earlier pull was
    finished, `gone` how many traces were deleted before they were read.
    """

    platform: str
    folder: Path
    files: tuple[Path, ...]
    traces: int
    since: datetime
    until: datetime
    more: bool
    resumed: bool
    gone: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """What became of scores: sent now, sent before, and on traces that are no longer there."""

    platform: str
    sent: int
    sent_before: int
    gone: int


def moment_of(text: str, now: datetime) -> datetime:
    """Return the time that a text names: a date, a time, or how long ago, as ``7d`` or ``12h``.

    Examples
    --------
    >>> now = datetime(2026, 11, 26, tzinfo=UTC)
    >>> str(moment_of("7d", now)), str(moment_of("2026-11-01", now))
    ('2026-11-19 00:00:00+00:00', '2026-11-01 00:00:00+00:00')
    """
    if found := _SPAN.fullmatch(text.strip()):
        return now - timedelta(**{_UNITS[found[2]]: int(found[1])})
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise InputError(
            f"must be a date such as 2026-11-01, or how long ago, such as 7d or 12h, got {text!r}"
        ) from error
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def folder_of(store: Path, platform: str, access: PlatformAccess, project: str | None) -> Path:
    """Return the private folder, beside a store, of one project of a platform."""
    told = "\n".join([access.base, access.owner, project or ""])
    name = f"{platform}-{hashlib.sha256(told.encode()).hexdigest()[:12]}"
    return private_folder(private_folder(store.with_suffix(SUFFIX)) / name)


def _lock(folder: Path) -> int:
    held = hold(folder / LOCK)
    if held is None:
        raise PlatformError(f"another pull or push of this project is at work ({folder})")
    return held


def pull(
    platform: Platform,
    access: PlatformAccess,
    store: Path,
    options: PullOptions,
    *,
    known: Collection[str] = (),
    told: Told = lambda words: None,
    clock: RunClock | None = None,
    now: datetime | None = None,
) -> Pulled:
    """Read the traces of a window into the folder of the platform; go on where a pull was cut off.

    A pull with other options than the one that was cut off, or for another store, begins anew.
    `known` are the ids, on the platform, of the traces that the store has: they are not read again.

    Raises
    ------
    PlatformError
        If the platform does not answer as asked, or there is more than the disk should hold.
    InputError
        If a time cannot be read, or there is no such project.
    """
    folder = folder_of(store, platform.name, access, options.project)
    held = _lock(folder)
    try:
        return asyncio.run(
            _pull(platform, access, folder, options, known, told, clock, now or datetime.now(UTC))
        )
    finally:
        os.close(held)


async def _pull(
    platform: Platform, access: PlatformAccess, folder: Path, options: PullOptions,
    known: Collection[str], told: Told, clock: RunClock | None, now: datetime,
) -> Pulled:  # fmt: skip
    asked = asdict(options)
    plan = _load(folder / PLAN)
    resumed = plan is not None and plan.get("asked") == asked
    if not resumed:
        _forget(folder)
    async with PlatformClient(access, clock=clock, told=told) as client:
        if plan is None or not resumed:
            plan = await _plan(platform, client, folder, options, known, told, now)
            put(folder / PLAN, json.dumps(plan | {"asked": asked}).encode())
        since, until = (datetime.fromisoformat(plan[name]) for name in ("since", "until"))
        parts = platform.parts(plan["facts"], Window(since=since, until=until))
        gone = await _Pages(client, folder, plan["ids"], parts, told).read()
    return Pulled(
        platform=platform.name,
        folder=folder,
        files=tuple(_files(folder)),
        traces=len(plan["ids"]),
        since=since,
        until=until,
        more=plan["more"],
        resumed=resumed,
        gone=gone,
    )


async def _plan(
    platform: Platform, client: PlatformClient, folder: Path, options: PullOptions,
    known: Collection[str], told: Told, now: datetime,
) -> dict[str, Any]:  # fmt: skip
    """Return which traces are read: the newest ones of the window that are not known."""
    until = now - SETTLED if options.until is None else moment_of(options.until, now)
    last = _load(folder / LAST)
    if options.since is not None:
        since = moment_of(options.since, now)
    elif last is not None and last.get("store") == options.store_id:
        since = datetime.fromisoformat(last["until"]) - OVERLAP
    else:
        since = now - FIRST_PULL
    if since >= until:
        raise InputError(f"--since {since:%Y-%m-%d %H:%M} must be before {until:%Y-%m-%d %H:%M}")
    told(f"Looking for traces of {platform.title} since {since:%Y-%m-%d %H:%M}")
    found: Listed = await platform.list(
        client,
        Window(since=since, until=until),
        options.project,
        options.limit,
        frozenset() if options.again else frozenset(known),
    )
    newest = sorted(found.traces, key=lambda own: (found.traces[own], own), reverse=True)
    return {
        "since": since.isoformat(),
        "until": until.isoformat(),
        "facts": dict(found.facts),
        "ids": newest[: options.limit],
        "more": len(newest) > options.limit,
    }


class _Pages:
    """The pages of a pull: each is written with the place of the next one, or asked for again."""

    def __init__(
        self, client: PlatformClient, folder: Path, ids: Sequence[str], parts: Sequence[TraceRows],
        told: Told,
    ) -> None:  # fmt: skip
        self._client, self._folder, self._ids, self._parts = client, folder, ids, parts
        self._told = told
        place = _load(folder / PLACE) or {}
        self._part, self._batch = int(place.get("part", 0)), int(place.get("batch", 0))
        self._cursor: str | None = place.get("cursor")
        self._page, self._gone = int(place.get("page", 0)), int(place.get("gone", 0))
        self._first = int(place.get("first", 0))  # the last page before this batch
        self._kept = self._cursor  # a cursor that an earlier pull was given
        self._drop(self._page)
        self._bytes = sum(path.stat().st_size for path in _files(folder))

    async def read(self) -> int:
        """Read what is left; return how many traces were gone."""
        while self._part < len(self._parts):
            part = self._parts[self._part]
            ids = list(_spans(self._folder)) if part.of_spans else list(self._ids)
            batches = [ids[k : k + part.batch] for k in range(0, len(ids), part.batch)]
            what = "span" if part.of_spans else "trace"
            while self._batch < len(batches):
                await self._one(part, batches[self._batch])
                done = min(self._batch * part.batch, len(ids))
                words = f"Reading: {done:,} of {counted(len(ids), what)}"
                self._told(f"{words}, part {self._part + 1} of {len(self._parts)}")
            self._part, self._batch = self._part + 1, 0
            self._note()
        return self._gone

    async def _one(self, part: TraceRows, ids: Sequence[str]) -> None:
        """Read one page of a batch."""
        rows, cursor = await self._page_of(part, ids)
        if cursor is not None and cursor == self._cursor:
            raise PlatformError("the platform gives the same page again and again")
        if rows:
            content = json.dumps(part.wrap(rows)).encode()
            self._bytes += len(content)
            if self._bytes > MOST_BYTES:
                most = f"{MOST_BYTES / 1e9:.0f} GB"
                raise PlatformError(f"these traces have more than {most}; set a smaller --limit")
            put(_file(self._folder, self._page + 1), content)
            self._page += 1
        elif not self._part and cursor is None and self._page == self._first:
            self._gone += len(ids) == 1
        self._cursor = cursor
        if cursor is None:
            self._batch += 1
            self._first = self._page
        self._note()

    async def _page_of(self, part: TraceRows, ids: Sequence[str]) -> tuple[list[Any], str | None]:
        """Return a page, with fewer rows where it is too large; none of a trace that is gone."""
        size = DETAILED
        while True:
            try:
                return await part.page(self._client, ids, self._cursor, size)
            except PlatformError as error:
                if error.status == TOO_LARGE and size > 1:
                    size //= 2
                elif error.status in (404, 410) and len(ids) == 1:
                    return [], None
                elif error.status in (400, 422) and self._cursor and self._cursor == self._kept:
                    # It has expired meanwhile: the batch is read again from its beginning.
                    self._cursor, self._page = None, self._first
                    self._drop(self._page)
                else:
                    raise

    def _drop(self, page: int) -> None:
        """Remove the pages after one: they were cut off, or are read again."""
        for path in _files(self._folder):
            if path > _file(self._folder, page):
                path.unlink()

    def _note(self) -> None:
        place = {
            "part": self._part,
            "batch": self._batch,
            "cursor": self._cursor,
            "page": self._page,
            "first": self._first,
            "gone": self._gone,
        }
        put(self._folder / PLACE, json.dumps(place).encode())


def imported(pulled: Pulled, store_id: str) -> None:
    """Note that what was pulled is in a store: its pages go, the next pull begins at its end."""
    if not pulled.more:
        last = {"until": pulled.until.isoformat(), "store": store_id}
        put(pulled.folder / LAST, json.dumps(last).encode())
    _forget(pulled.folder)


def _file(folder: Path, page: int) -> Path:
    return folder / f"page-{page:06d}.json"


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("page-*.json"))


def _forget(folder: Path) -> None:
    """Remove a pull; the plan goes first, so that no part of it is ever taken for the whole."""
    for path in (folder / PLAN, folder / PLACE, *_files(folder)):
        path.unlink(missing_ok=True)


def _load(path: Path) -> dict[str, Any] | None:
    """Return the object of a file that this module wrote; None if there is none."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _spans(folder: Path) -> Iterator[str]:
    """Yield the ids of the spans in the pages, once each."""
    seen: dict[str, None] = {}
    for path in _files(folder):
        for row in (_load(path) or {}).get("data", []):
            if isinstance(context := row.get("context"), dict):
                seen[str(context.get("span_id"))] = None
    yield from seen


def push(
    platform: Platform,
    access: PlatformAccess,
    store: Path,
    scores: Sequence[PlatformScore],
    *,
    told: Told = lambda words: None,
    clock: RunClock | None = None,
) -> Pushed:
    """Send scores, one request each; those that were sent before as they are are left out.

    Raises
    ------
    PlatformError
        If the platform refuses a score for another reason than that its trace is gone.
    """
    folder = folder_of(store, platform.name, access, None)
    held = _lock(folder)
    try:
        return asyncio.run(_push(platform, access, folder, scores, told, clock))
    finally:
        os.close(held)


async def _push(
    platform: Platform, access: PlatformAccess, folder: Path, scores: Sequence[PlatformScore],
    told: Told, clock: RunClock | None,
) -> Pushed:  # fmt: skip
    before = _sent(folder / SENT)
    sent = gone = same = 0
    with (folder / SENT).open("a", encoding="utf-8") as journal:
        (folder / SENT).chmod(0o600)
        async with PlatformClient(access, clock=clock, told=told) as client:
            for place, score in enumerate(scores):
                payload = AS_SCORE[platform.name](score)
                digest = hashlib.sha256(json.dumps(payload, sort_keys=True).encode()).hexdigest()[
                    :16
                ]
                if before.get(score.score_id) == digest:
                    same += 1
                    continue
                told(f"Sending: {place + 1:,} of {counted(len(scores), 'score')}")
                try:
                    await platform.send(client, payload)
                except PlatformError as error:
                    if error.status != 404:
                        raise
                    gone += 1
                    continue
                journal.write(json.dumps({"id": score.score_id, "of": digest}) + "\n")
                journal.flush()
                sent += 1
    return Pushed(platform=platform.name, sent=sent, sent_before=same, gone=gone)


def _sent(path: Path) -> Mapping[str, str]:
    """Return the digest of what was last sent, by the id of the score; a cut line is none."""
    found: dict[str, str] = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                row = json.loads(line)
                found[row["id"]] = row["of"]
            except (ValueError, KeyError, TypeError):
                continue
    return found
