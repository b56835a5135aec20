"""A report made again from what it says of itself, and what came out differently."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibration.analyses.fingerprint import package_version
from calibration.analyses.success_rate.from_runs import report_on_files
from calibration.analyses.success_rate.from_store import report_on_store
from calibration.analyses.success_rate.report import ProductionReport, options_of
from calibration.errors import InputError
from calibration.runs.sources import DEFAULT_MEMORY, place_of_settings
from calibration.store import Store
from calibration.taxonomy import load_taxonomy

SHORTEST = 8

# Sums in another order may differ in their last digits.
TOLERANCE = 1e-9

MOST_FILE = 50_000_000

NUMBERS = ("asr", "asr_gross", "asr_literal", "asr_without_abandoned", "pass_rate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What came of making a report again.

    Parameters
    ----------
    path : Path
        The report.
    said, found : str
        Its fingerprint, and the one it has now.
    same : bool
        Whether fingerprint and numbers agree.
    differences : tuple of str
        Inputs, settings, taxonomy, version or numbers that differ, in words.
    """

    path: Path
    said: str
    found: str
    same: bool
    differences: tuple[str, ...]


def find_report(named: str, folder: Path) -> Path:
    """Return the JSON report of a name: a file, or the fingerprint of one in a folder.

    Raises
    ------
    InputError
        If there is no such report, or several differ.
    """
    if Path(named).is_file():
        return Path(named)
    given = named.lower()
    if len(given) < SHORTEST or set(given) - set("0123456789abcdef"):
        raise InputError(
            f"{named!r:.80} is neither a report nor a fingerprint of {SHORTEST} digits or more"
        )
    found = [
        path
        for path in sorted(folder.glob("*.json"))
        if path.stat().st_size <= MOST_FILE
        and str(_data(path, strict=False).get("fingerprint", "")).startswith(given)
    ]
    if not found:
        raise InputError(
            f"no report with the fingerprint {given} in {folder}: save one with "
            "asr report FILE --json > report.json, and pass it"
        )
    if len({_data(path)["fingerprint"] for path in found}) > 1:
        raise InputError(f"several reports begin with {given}: {', '.join(map(str, found[:5]))}")
    return found[0]


def verify_report(
    path: Path, store: Store | None = None, *, memory: str = DEFAULT_MEMORY
) -> tuple[Verification, ProductionReport]:
    """Make a report again and compare.

    Parameters
    ----------
    path : Path
        What `asr report --json` printed.
    store : Store, optional
        The store that it was made from, if it was one.
    memory : str
        What reading files may hold, as in `open_files`.

    Returns
    -------
    Verification, ProductionReport
        What differs, and the report as it is now.

    Raises
    ------
    InputError
        If it is no such report, or its inputs are gone.
    """
    said = _data(path)
    try:
        origin, settings = said["origin"], said["origin"]["settings"]
        fingerprint = str(said["fingerprint"])
        for name in NUMBERS:
            _checked(said[name])
        if "batch" in settings:
            now = _on_store(settings, store)
        else:
            now = _on_files(settings, memory)
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: is no report that can be made again; {error}") from error
    differences = tuple(_differences(said, origin, now))
    same = not differences and fingerprint == now.origin.fingerprint
    if not same and not differences:
        differences = ("the settings in the report do not belong to its fingerprint",)
    verification = Verification(
        path=path,
        said=fingerprint,
        found=now.origin.fingerprint,
        same=same,
        differences=differences,
    )
    return verification, now


def needs_store(path: Path) -> bool:
    """Return whether a report was made from a store."""
    origin = _data(path).get("origin")
    settings = origin.get("settings") if isinstance(origin, dict) else None
    return isinstance(settings, dict) and "batch" in settings


def _on_files(settings: Mapping[str, Any], memory: str) -> ProductionReport:
    taxonomy = None if settings["taxonomy"] is None else Path(settings["taxonomy"])
    return report_on_files(
        place_of_settings(settings, memory),
        options=options_of(settings),
        taxonomy=None if taxonomy is None else load_taxonomy(taxonomy),
        taxonomy_path=taxonomy,
    )


def _on_store(settings: Mapping[str, Any], store: Store | None) -> ProductionReport:
    if store is None:
        raise InputError("this report was made from a store; name it with --store")
    return report_on_store(store, options_of(settings))


def _differences(
    said: Mapping[str, Any], origin: Mapping[str, Any], now: ProductionReport
) -> Iterator[str]:
    version = package_version()
    if origin.get("version") != version:
        yield f"version: {origin.get('version')!s:.40} then, {version} now"
    taxonomy = origin.get("taxonomy") or {}
    if taxonomy.get("fingerprint") != now.origin.taxonomy_fingerprint:
        yield (
            f"taxonomy: {taxonomy.get('version')!s:.40} ({taxonomy.get('fingerprint')!s:.16}) "
            "then, "
            f"{now.origin.taxonomy_version} ({now.origin.taxonomy_fingerprint[:16]}) now"
        )
    yield from _inputs(said, origin, now)
    for name in NUMBERS:
        yield from _number(name, said.get(name) or {}, getattr(now, name))


def _inputs(
    said: Mapping[str, Any], origin: Mapping[str, Any], now: ProductionReport
) -> Iterator[str]:
    then = {s.get("name"): s for s in origin.get("sources") or []}
    for source in now.origin.sources:
        old = then.get(source.name)
        if old is not None and (old.get("size"), old.get("sha256")) != (source.size, source.sha256):
            yield f"inputs: {source.name} has changed"
    details = said.get("details") or {}
    for key, what in (("inputs", "the runs"), ("earlier_inputs", "the runs it is compared with")):
        if details.get(key) != now.details.get(key):
            yield f"inputs: {what} are not the same ({said.get('n')} then, {now.n} now)"


def _number(name: str, then: Mapping[str, Any], now: Any) -> Iterator[str]:
    ends = then.get("interval") or (None, None)
    for what, old, new in (
        (name, then.get("value"), now.value),
        (f"{name}, lower limit", ends[0], (now.interval or (None, None))[0]),
        (f"{name}, upper limit", ends[1], (now.interval or (None, None))[1]),
    ):
        if old is not None and new is not None and abs(old - new) <= TOLERANCE:
            continue
        if old != new:
            yield f"{what}: {old!s:.24} then, {new!s:.24} now"


def _checked(then: Mapping[str, Any]) -> None:
    """Refuse an estimate whose numbers are none."""
    for value in (then["value"], *(then["interval"] or ())):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise TypeError(f"a number, got {value!r:.40}")


def _data(path: Path, *, strict: bool = True) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        if not strict:
            return {}
        raise InputError(f"{path}: is no JSON report ({error!s:.200})") from error
    if not isinstance(data, dict):
        if not strict:
            return {}
        raise InputError(f"{path}: is no report")
    return data
