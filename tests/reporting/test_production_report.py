"""One report in four shapes: the same numbers, a published schema, and no name that is obeyed."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from markdown_it import MarkdownIt

from calibration.analyses.success_rate.from_runs import report_on_files
from calibration.analyses.success_rate.report import ReportOptions, SuccessRateReport
from calibration.reporting import to_json
from calibration.reporting.document import Name, escaped, markdown, text_lines
from calibration.reporting.render_html import POLICY, html, nice_scale
from calibration.reporting.sections import success_rate
from calibration.tables.reading import ReadingOptions
from calibration.text import shown
from tests.analyses.production_files import HOSTILE, MIXED10, alike, runs, write


def report(path: str, **options: Any) -> SuccessRateReport:
    return report_on_files([path], options=ReportOptions(**({"n_resamples": 100} | options)))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> SuccessRateReport:
    """Every name that a file brings is an attack: traces, workflows, models, tags, classes."""
    rows = alike("a", {"complete": 40, "abandoned": 40, "partial_minus": 20})
    for k, row in enumerate(rows):
        name = HOSTILE[k % len(HOSTILE)]
        row |= {"trace_id": f"{name}-{k}", "workflow": name, "model": name, "tags": name}
        row |= {"started_at": f"2026-10-{1 + k % 28:02d}T00:00:00Z", "status": name}
    rows += [{**rows[0], "trace_id": f"bad{k}", "outcome": name} for k, name in enumerate(HOSTILE)]
    folder = tmp_path_factory.mktemp("hostile") / "<b>&'\"`|folder"
    folder.mkdir()
    # The names of classes that nobody knows are to reach the page too.
    return report(write(folder / "runs.csv", rows), reading=ReadingOptions(max_left_out=1.0))


class Page(HTMLParser):
    """The tags and attributes of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.values: list[str] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.values += [value or "" for _, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_page_has_no_tag_of_a_name(hostile: SuccessRateReport) -> None:
    page = html(success_rate.document(hostile))
    found = Page(page)
    assert found.tags <= {
        "html", "head", "meta", "title", "style", "body", "main", "header", "h1", "h2", "h3", "p",
        "div", "dl", "dt", "dd", "section", "table", "caption", "thead", "tbody", "tr", "th", "td",
        "span", "small", "ul", "li", "details", "summary", "bdi", "footer", "svg", "line", "circle",
        "rect", "text", "desc",
    }  # fmt: skip
    assert not {name for name in found.attributes if name.startswith("on")}
    assert not found.attributes & {"src", "href", "style", "xlink:href", "srcset", "action"}
    assert POLICY in found.values
    assert "url(" not in page
    assert "@import" not in page
    text = "".join(found.text)
    assert "<script>alert(1)</script>" in text  # as text, for the reader to see
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "x" * 601 not in page


def test_markdown_obeys_no_name(hostile: SuccessRateReport) -> None:
    text = markdown(success_rate.document(hostile))
    made = MarkdownIt("commonmark").enable("table").render(text)
    found = Page(made)
    assert not found.tags & {"script", "img", "a", "b", "iframe", "svg"}
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
    # A mention or an address that stands outside of a code span would come to life.
    outside = re.sub(r"<code>.*?</code>", "", made, flags=re.DOTALL)
    assert "@everyone" not in outside
    assert "http" not in outside
    heads = {len(re.findall("<th", row)) for row in re.findall("<tr>.*?</tr>", made, re.DOTALL)}
    assert len(heads) > 1


def test_the_terminal_is_not_steered_and_programs_get_names_as_they_are(
    hostile: SuccessRateReport,
) -> None:
    for line in text_lines(success_rate.document(hostile)):
        assert not re.search("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", line)
        assert len(line) < 1_500
    data = json.loads(json.dumps(to_json.data(hostile), allow_nan=False))
    jsonschema.Draft202012Validator(to_json.schema()).validate(data)
    assert "<script>alert(1)</script>" in data["by_model"]


@pytest.mark.parametrize(
    "rows",
    [
        runs(MIXED10),
        runs([("complete", None)]),
        runs([("abandoned", 1.0)] * 30),
        alike("a", {"complete": 30, "abandoned": 9}, started_at="2026-10-01", latency_s=3.5),
        alike("a", {"partial_plus": 6}, units=3, weight=2.5, stratum="s", task_id="t", model="m"),
    ],
)
def test_every_report_satisfies_the_published_schema(
    tmp_path: Path, rows: list[dict[str, Any]]
) -> None:
    found = report(write(tmp_path / "f.csv", rows))
    data = json.loads(json.dumps(to_json.data(found), allow_nan=False))
    jsonschema.Draft202012Validator.check_schema(to_json.schema())
    jsonschema.Draft202012Validator(to_json.schema()).validate(data)
    assert data.keys() >= {
        "asr", "asr_gross", "asr_literal", "asr_without_abandoned", "pass_rate", "class_shares",
        "cost", "weekly", "by_workflow", "calibrated", "set_aside",
    }  # fmt: skip
    assert data["calibrated"] is False
    assert data["asr"]["value"] == found.asr.value  # full precision
    made = success_rate.document(found)
    for text in ("\n".join(text_lines(made)), markdown(made), html(made)):
        assert not re.search(r"\b(?:nan|inf|None)\b", text), text
        assert f"{found.asr.value:.3f}" in text
        assert found.origin.fingerprint in text


def test_names_are_cut_and_spelled_out() -> None:
    assert shown("a\x00b\u202e") == "a\\x00b\\u202e"
    assert shown("\ud800") == "\ufffd"
    assert len(shown("x" * 10_000)) == 200
    assert escaped(Name("")) == "(empty)"
    assert escaped("1 * 2 [a](b)") == "1 \\* 2 [a\\](b)"


def test_a_scale_of_equal_values_still_spans() -> None:
    assert nice_scale(0.5, 0.5)[0] < nice_scale(0.5, 0.5)[-1]
    assert nice_scale(0.0, 1.0) == [0.0, 0.25, 0.5, 0.75, 1.0]
