"""A store as a folder in the form of Hugging Face datasets: Parquet files and a card."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from calibration.analyses.agreement.analysis import analyse_agreement
from calibration.analyses.evidence.from_store import choose_judge
from calibration.analyses.exports import dataset_of
from calibration.analyses.success_rate.from_store import report_on_store
from calibration.analyses.success_rate.report import ReportOptions
from calibration.errors import CalibrationError
from calibration.files import written_whole
from calibration.reporting.document import SIMULATED, brief_lines, escaped
from calibration.reporting.sections import agreement, success_rate
from calibration.store import Store
from calibration.tables.rows import TypedRows, write_rows
from calibration.text import named_batches

WHAT = {
    "traces": "labelled runs of the agents as reviewers saw them, with their consensus",
    "labels": "one row a label, a skip or an adjudicated class",
    "verdicts": "the verdict of the judge on each run that the labelled ones were drawn from",
}
BASIS = {
    "adjudicated": "a lead decided, blind first",
    "agreed": "two blind labels or more, all of one class",
    "one label": "one person labelled the run",
    "open": "reviewers differ and nobody has decided; the class is empty",
}


def write_dataset(
    store: Store, folder: Path, *, batch_id: str, judge_id: str | None = None
) -> tuple[dict[str, int], int]:
    """Write a dataset to a new folder, whole or not at all; return the rows of each file.

    The second number is that of the traces left out.

    ``data/CONFIG/SPLIT.parquet`` and ``README.md``: the card, whose licence is to be filled in.
    Without a judge the verdicts are those of the judge in use, if there is one. Raises InputError
    if the folder exists, and as `dataset_of`.
    """
    if judge_id is None:
        with suppress(CalibrationError):  # a store without a judge, or with several
            judge_id = choose_judge(store, None)
    found = dataset_of(store, batch_id, judge_id)
    tables = found.tables
    rows: dict[str, int] = {}
    size: dict[str, int] = {}
    with written_whole(folder) as made:
        for (config, split), table in tables.items():
            name = f"data/{config}/{split}.parquet"
            path = made / name
            path.parent.mkdir(parents=True, exist_ok=True)
            rows[name] = write_rows(table, path)
            size[name] = path.stat().st_size
        card = "\n".join(_card(store, batch_id, judge_id, tables, rows, size))
        (made / "README.md").write_text(card, encoding="utf-8", errors="replace")
    return rows, found.left_out


def _card(
    store: Store,
    batch_id: str,
    judge_id: str | None,
    tables: Mapping[tuple[str, str], TypedRows],
    rows: Mapping[str, int],
    size: Mapping[str, int],
) -> Iterator[str]:
    """Yield the lines of the card."""
    simulated = store.is_simulated()
    yield from _front_matter(tables, rows, size, simulated=simulated)
    taxonomy = store.taxonomy()
    yield "# Labelled agent runs\n"
    if simulated:
        yield f"**{SIMULATED}**\n"
    yield "Runs of agents with the classes that people gave them, from `asr export dataset`.\n"
    yield "To fill in before you share it: the licence above, whose runs these are, and who may"
    yield "read them. Texts of runs, reasons and quotes are as they were: remove personal data.\n"
    yield "## What is in it\n"
    yield "| config | split | rows | what |"
    yield "|---|---|---|---|"
    for config, split in tables:
        n = rows[f"data/{config}/{split}.parquet"]
        yield f"| {config} | {split} | {n:,} | {WHAT[config]} |"
    yield ""
    yield "Splits are by task: a judge may be trained or chosen on `development`, three tasks in"
    yield "ten, and is measured on `certification`. `weight` is one over the chance with which a"
    yield "run was drawn: use it for figures on all runs.\n"
    yield "## How the labels were made\n"
    yield f"Taxonomy {escaped(taxonomy.version)}, {named_batches(batch_id)}. Reviewers answered the"
    yield "questions of it alone, blind to each other and to any judge; they are numbered here.\n"
    yield "| class | credit |"
    yield "|---|---|"
    for of in taxonomy.classes:
        yield f"| {escaped(of.name)} | {taxonomy.credit[of.name]:g} |"
    yield ""
    yield "The class of a run rests on its `basis`:\n"
    yield from (f"* `{name}`: {words}." for name, words in BASIS.items())
    yield "\n## Agreement\n"
    yield from _said(lambda: agreement.agreement(analyse_agreement(store, batch_id)))
    yield "\n## The rate\n"
    options = ReportOptions(batch_id=batch_id, judge_id=judge_id)
    yield from _said(lambda: success_rate.document(report_on_store(store, options)))
    yield ""


def _said(made: Any) -> Iterator[str]:
    """Yield the answer of a document as text, or why there is none."""
    try:
        lines = list(brief_lines(made()))
    except CalibrationError as error:
        lines = [f"None can be given: {error}"]
    yield from ("```text", *lines, "```")


def _front_matter(
    tables: Mapping[tuple[str, str], TypedRows],
    rows: Mapping[str, int],
    size: Mapping[str, int],
    *,
    simulated: bool,
) -> Iterator[str]:
    """Yield the YAML that begins a card; values are JSON, which YAML reads."""
    configs = list(dict.fromkeys(config for config, _ in tables))
    info, files = [], []
    for config in configs:
        splits = [split for of, split in tables if of == config]
        names = {split: f"data/{config}/{split}.parquet" for split in splits}
        columns = next(table.columns for (of, _), table in tables.items() if of == config)
        total = sum(size[name] for name in names.values())
        info.append({
            "config_name": config,
            "features": [_feature(name, kind) for name, kind in columns.items()],
            "splits": [
                {"name": split, "num_bytes": size[name], "num_examples": rows[name]}
                for split, name in names.items()
            ],
            "download_size": total,
            "dataset_size": total,
        })  # fmt: skip
        files.append({
            "config_name": config,
            "data_files": [{"split": split, "path": name} for split, name in names.items()],
            **({"default": True} if config == configs[0] else {}),
        })  # fmt: skip
    tags = ["agent-traces", "human-labels", "asr-calibration", *["simulated"] * simulated]
    yield "---"
    yield "license: unknown  # fill in before you share this"
    yield 'pretty_name: "Labelled agent runs"'
    yield f"tags: {json.dumps(tags)}"
    yield "configs:"
    yield from _items(files)
    yield "dataset_info:"
    yield from _items(info)
    yield "---\n"


def _items(found: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    return (f"- {json.dumps(item, ensure_ascii=False)}" for item in found)


def _feature(name: str, kind: pa.DataType) -> dict[str, Any]:
    """Return the type of a column as a card names it."""
    return {"name": name, **_kind(kind)}


def _kind(kind: pa.DataType) -> dict[str, Any]:
    if pa.types.is_list(kind):
        inner = _kind(kind.value_type)
        return {"list": inner.get("struct", inner.get("dtype"))}
    if pa.types.is_struct(kind):
        return {"struct": [_feature(field.name, field.type) for field in kind]}
    names = {pa.float64(): "float64", pa.int64(): "int64", pa.bool_(): "bool"}
    return {"dtype": names.get(kind, "string" if pa.types.is_string(kind) else str(kind))}
