"""What the locked dependencies bring along: licences, known advisories and their documentation.

Run by `make check`. The advisories are those that `uv audit` finds; it wants a project of its own,
so every pin of the lock files is written into one that is thrown away.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from itertools import chain
from pathlib import Path

import click
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCKS = ROOT / ".ci" / "requirements"
PAGE = ROOT / "docs" / "design" / "dependencies.md"
TIMEOUT_S = 15
# SPDX identifiers, and the names that older packages use in their place.
ALLOWED = frozenset(
    """0BSD Apache-2.0 BSD-2-Clause BSD-3-Clause CC0-1.0 ISC MIT MIT-0 MIT-CMU MPL-2.0 PSF-2.0
    Unlicense Zlib""".split()
) | {
    "3-Clause BSD License",
    "Apache License 2.0",
    "Apache Software License",
    "BSD License",
    "MIT License",
    "Mozilla Public License 2.0 (MPL 2.0)",
}


class NotAskedError(Exception):
    """The advisory service could not be asked."""


def pins(lock: Path) -> list[Requirement]:
    """Return what a lock file pins, each with its marker."""
    lines = lock.read_text(encoding="utf-8").splitlines()
    return [Requirement(line.removesuffix("\\").strip()) for line in lines if line[:1].isalnum()]


def version(pin: Requirement) -> str:
    return str(pin.specifier).removeprefix("==")


def rows(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the table under a heading, without its first two lines."""
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    table = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def licence_of(found: Distribution) -> str:
    """Return the licence that a distribution states; empty if it states none."""
    if "License-Expression" in found.metadata:
        return found.metadata["License-Expression"]
    classifiers = [
        text.rpartition(" :: ")[2]
        for text in found.metadata.get_all("Classifier") or []
        if text.startswith("License ::") and text.count(" :: ") > 1
    ]
    if classifiers or "License" not in found.metadata:
        return " AND ".join(classifiers)
    # Some put the whole text there.
    return found.metadata["License"].partition("\n")[0]


def is_allowed(licence: str) -> bool:
    """Return whether one alternative is allowed; of a grouped expression, all of it."""
    alternatives = [licence] if "(" in licence else licence.split(" OR ")
    terms = [re.split(" AND | OR ", alternative) for alternative in alternatives]
    return any(all({term, term.strip("()")} & ALLOWED for term in each) for each in terms)


def licences(
    locks: dict[str, list[Requirement]],
    explained: dict[str, str],
    installed: Callable[[str], Distribution] = distribution,
) -> tuple[list[str], list[str]]:
    """Return what is wrong with the licences, and which distributions were not checked."""
    wrong: list[str] = []
    users = {pin.name for lock in ("run", "oidc", "judge") for pin in locks.get(lock, [])}
    engines = {pin.name for pin in locks["engines"]} - {pin.name for pin in locks["dev"]}
    every = [pin for each in locks.values() for pin in each]
    here = {pin.name: pin for pin in every if not pin.marker or pin.marker.evaluate()}
    elsewhere = {pin.name for pin in every} - set(here)
    unchecked = [f"{name} (not for this machine)" for name in sorted(elsewhere)]
    for name, pin in sorted(here.items()):
        make = "make engines" if name in engines else "make dev"
        try:
            found = installed(name)
        except PackageNotFoundError:
            if name in engines:
                unchecked.append(f"{name} (`make engines` installs it)")
            else:
                wrong.append(f"{name} {version(pin)} is pinned and not installed. Run `{make}`.")
            continue
        if found.version != version(pin):
            wrong.append(
                f"{name} {found.version} is installed and {version(pin)} is pinned. Run `{make}`."
            )
            continue
        licence = licence_of(found)
        if is_allowed(licence) or (
            name not in users and name in explained and licence in ("", explained[name])
        ):
            continue
        stated = f"has the licence {licence}, which is not allowed" if licence else "has no licence"
        remedy = (
            "Users install it: replace it, or add a permissive licence to ALLOWED in "
            "tests/dependencies.py."
            if name in users
            else "Replace it, or explain it under 'Other licences' in docs/design/dependencies.md."
        )
        wrong.append(f"{name} {found.version} {stated}. {remedy}")
    return wrong, unchecked


def undocumented(project: str, page: str) -> list[str]:
    """Return the direct dependencies that have no row in the design page."""
    declared = tomllib.loads(project)["project"]
    texts = [*declared["dependencies"], *chain(*declared["optional-dependencies"].values())]
    documented = {
        canonicalize_name(name.strip())
        for heading in ("Run time", "Extras", "Development")
        for first, *_ in rows(page, heading)
        for name in re.sub(r"\(.*?\)", "", first).split(",")
    }
    missing = {canonicalize_name(Requirement(text).name) for text in texts} - documented
    return [
        f"{name} is a dependency in pyproject.toml: add it to a table in "
        "docs/design/dependencies.md, with its licence and purpose."
        for name in sorted(missing)
    ]


def project_of(pinned: set[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the files of a project for `uv audit`, which reads names and versions only."""
    yield "pyproject.toml", '[project]\nname = "pins"\nversion = "0"\nrequires-python = ">=3.11"\n'
    source = 'source = { registry = "." }'
    needs = [f'{{ name = "{n}", version = "{v}", {source} }},' for n, v in sorted(pinned)]
    packages = [
        f'[[package]]\nname = "{n}"\nversion = "{v}"\n{source}\n' for n, v in sorted(pinned)
    ]
    root = '[[package]]\nname = "pins"\nversion = "0"\nsource = { virtual = "." }\ndependencies = ['
    yield (
        "uv.lock",
        "\n".join(['version = 1\nrequires-python = ">=3.11"\n', root, *needs, "]\n", *packages]),
    )


def advisories(
    pinned: set[tuple[str, str]],
    accepted: list[list[str]],
    today: date,
    service: str | None = None,
    timeout_s: float = TIMEOUT_S,
) -> list[str]:
    """Return the known advisories of pinned versions that are not accepted, or no longer."""
    command = [
        str(Path(sys.executable).with_name("uv")), "audit", "--frozen", "--quiet", "--no-config",
        "--no-cache", "--preview-features", "audit-command,json-output", "--output-format", "json",
        *(["--service-url", service] if service else []),
    ]  # fmt: skip
    patience = {"UV_HTTP_RETRIES": "1", "UV_HTTP_TIMEOUT": "5", "UV_HTTP_CONNECT_TIMEOUT": "5"}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in project_of(pinned):
            (Path(folder) / name).write_text(text, encoding="utf-8")
        try:
            done = subprocess.run(
                command, cwd=folder, env={**os.environ, **patience}, capture_output=True,
                text=True, timeout=timeout_s, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise NotAskedError(f"no answer within {timeout_s:g} seconds") from error
    if done.returncode not in (0, 1):
        # uv breaks long lines, sometimes before the address.
        words = " ".join(done.stderr.split())
        # Anything else, such as a project that cannot be read, is a fault of this check.
        if "for url (" not in words:
            raise RuntimeError(done.stderr)
        raise NotAskedError(re.split(r"(?:cause|error): ", words)[-1])
    answer = json.loads(done.stdout)
    if answer["summary"]["audited_packages"] != len(pinned):
        raise RuntimeError(f"{len(pinned)} packages were to be audited: {answer['summary']}")
    valid = {(row[0], row[1]) for row in accepted if date.fromisoformat(row[2]) >= today}
    wrong = []
    for each in answer["vulnerabilities"]:
        name, ids = each["dependency"]["name"], {each["id"], *each["aliases"]}
        if any((known, name) in valid for known in ids):
            continue
        fixed = ", ".join(each["fix_versions"])
        remedy = f"fixed in {fixed}. Run `make lock`" if fixed else "no fixed version. Replace it"
        wrong.append(
            f"{name} {each['dependency']['version']}: {', '.join(sorted(ids))}, "
            f"{each['summary'] or 'no summary'}; {remedy}, or accept it with a date and a reason "
            "under 'Accepted advisories' in docs/design/dependencies.md."
        )
    return wrong


def main() -> int:
    """Check everything, print what is wrong and return 1 if anything is."""
    page = PAGE.read_text(encoding="utf-8")
    locks = {path.stem: pins(path) for path in LOCKS.glob("*.lock")}
    explained = {row[0]: row[1] for row in rows(page, "Other licences")}
    wrong, unchecked = licences(locks, explained)
    wrong += undocumented((ROOT / "pyproject.toml").read_text(encoding="utf-8"), page)
    pinned = {(pin.name, version(pin)) for each in locks.values() for pin in each}
    try:
        wrong += advisories(pinned, rows(page, "Accepted advisories"), datetime.now(UTC).date())
        click.echo(f"dependencies: {len(pinned)} pins audited for known advisories")
    except NotAskedError as error:
        click.echo(f"dependencies: advisories NOT CHECKED, the service cannot be asked: {error}")
    if unchecked:
        click.echo(f"dependencies: licences not checked: {', '.join(unchecked)}")
    for sentence in wrong:
        click.echo(f"dependencies: {sentence}", err=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
