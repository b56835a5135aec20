"""Gates as JUnit XML and Markdown: the structure that CI servers read, and hostile names in it."""

import html
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from calibration.analyses.gates.run import GateAnalysis
from calibration.analyses.success_rate.report import LeftOutRows
from calibration.gates.evaluate import Condition, GateReport, GateResult, Status
from calibration.gates.gate_file import Level, default_gates
from calibration.reporting.document import Name, escaped, markdown, text_lines
from calibration.reporting.sections.gates import document, junit
from calibration.text import shown
from tests.analyses.production_files import HOSTILE
from tests.success_rate.rates import agent_success_rate

AT = datetime(2026, 11, 2, 9, 30, tzinfo=UTC)
RATES = agent_success_rate([0] * 30 + [4] * 10, rng=np.random.default_rng(1))

# What the schema of Jenkins' xunit plugin (junit-10.xsd) and the older one of Ant both take: by
# element the attributes that must be there, those that may, and the children in order.
SCHEMA: dict[str, tuple[set[str], set[str], tuple[str, ...]]] = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, ("testsuite",)),
    "testsuite": (
        {"name", "tests", "failures", "errors", "time", "timestamp", "hostname"},
        {"skipped", "id", "package"},
        ("properties", "testcase", "system-out", "system-err"),
    ),
    "properties": (set(), set(), ("property",)),
    "property": ({"name", "value"}, set(), ()),
    "testcase": ({"name", "classname", "time"}, set(), ("skipped", "failure")),
    "failure": ({"type"}, {"message"}, ()),
    "skipped": (set(), {"message", "type"}, ()),
    "system-out": (set(), set(), ()),
    "system-err": (set(), set(), ()),
}


def gate(name: str, status: Status, level: Level = "must", why: str = "") -> GateResult:
    part = Condition(
        name=name, status=status, value=0.5, interval=None, rule=f">= .8 {name}", n=9, why=why
    )
    return GateResult(
        name=name, level=level, status=status, value=0.5, interval=(0.4, 0.6), threshold=0.8,
        rule=">= 0.8", n=9, method="m", why=why,
        blocks=level == "must" and status != "pass", parts=(part,),
    )  # fmt: skip


def analysis(found: Sequence[GateResult], text: str = "a note") -> GateAnalysis:
    return GateAnalysis(
        report=GateReport(gates=tuple(found), confidence_level=0.95), settings=default_gates(),
        asr=RATES.asr, rates=RATES, calibrated=False, kind=text, n_runs=40, n_tasks=40,
        notes=(text,), marks=(text,), baseline=None, comparable=None,
        set_aside=(LeftOutRows(reason="outcome is missing", n=3, examples=(text,)),),
        taxonomy_version=text, taxonomy_fingerprint="f" * 64, seed=0, fingerprint="e" * 64,
        outcomes="human labels",
    )  # fmt: skip


def every_gate(name: str = "g", why: str = "") -> list[GateResult]:
    statuses: tuple[Status, ...] = ("pass", "fail", "skipped", "not_estimable")
    levels: tuple[Level, ...] = ("must", "should")
    return [gate(name, status, level, why) for status in statuses for level in levels]


def check(element: ET.Element) -> None:
    """Check an element against the schema, with everything in it."""
    needed, allowed, children = SCHEMA[element.tag]
    assert needed <= set(element.attrib) <= needed | allowed, element.attrib
    order = [children.index(child.tag) for child in element]
    assert order == sorted(order), [child.tag for child in element]
    if children:
        assert not (element.text or "").strip()
    for child in element:
        check(child)


def suite_of(text: str) -> ET.Element:
    root = ET.fromstring(text)
    check(root)
    (suite,) = root
    return suite


def test_junit_has_the_structure_and_the_counts_of_its_cases() -> None:
    suite = suite_of(junit(analysis(every_gate()), at=AT))
    assert [child.tag for child in suite] == (
        ["properties", *["testcase"] * 8, "system-out", "system-err"]
    )
    counts = {name: suite.attrib[name] for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "8", "failures": "3", "errors": "0", "skipped": "3"}
    for name, tag in (("failures", "failure"), ("skipped", "skipped")):
        assert int(counts[name]) == len(suite.findall(f"testcase/{tag}"))
    assert all(len(case) <= 1 for case in suite.findall("testcase"))
    assert suite.attrib["timestamp"] == "2026-11-02T09:30:00"
    assert re.fullmatch(r"\d+(\.\d+)?", suite.attrib["time"])
    # A should gate turns no runner red.
    suite = suite_of(junit(analysis([gate("a", "pass"), gate("b", "fail", "should")]), at=AT))
    assert (suite.attrib["failures"], suite.attrib["skipped"]) == ("0", "1")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text_in_xml(name: str) -> None:
    text = junit(analysis(every_gate(name, name), name), at=AT)
    suite = suite_of(text)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert len(text) < 200_000
    assert suite.find("testcase/script") is None
    shown = suite.findall("testcase")[0].attrib["name"]
    assert shown[:20].isprintable()


@given(st.text(max_size=60))
def test_any_name_is_well_formed_xml_of_the_structure(name: str) -> None:
    suite_of(junit(analysis(every_gate(name, name), name), at=AT))


@given(st.text(max_size=60))
def test_any_name_is_text_in_markdown(name: str) -> None:
    made = MarkdownIt("commonmark").renderInline(f"see {escaped(Name(name))} there")
    assert re.sub("<[^>]*>", "", made) == made.replace("<code>", "").replace("</code>", "")
    assert "@" not in re.sub("<code>.*</code>", "", made)
    words = html.unescape(re.sub("<[^>]*>", "", made)).removeprefix("see ").removesuffix(" there")
    if shown(name).strip():
        # A bar is kept from ending the cell of a table.
        assert words.split() == shown(name).replace("|", "\\|").split()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_make_no_markup_in_the_summary(name: str) -> None:
    text = markdown(document(analysis(every_gate(name, name), name)))
    made = MarkdownIt("commonmark").enable("table").render(text)
    outside = re.sub("<code>.*?</code>", "", made, flags=re.DOTALL)
    for active in ("<script", "<img", "<a ", "\x1b", "http:", "https:", "@everyone", "${"):
        assert active not in outside
    rows = re.findall("<tr>.*?</tr>", made, re.DOTALL)
    assert [len(re.findall("<t[hd]", row)) for row in rows] == [5] * 9
    assert max(map(len, text.splitlines())) < 12_000


def test_marks_come_first_and_what_was_set_aside_is_said_everywhere() -> None:
    made = analysis(every_gate(), "MARKED: of the reference set")
    assert next(text_lines(document(made))) == "MARKED: of the reference set"
    text = "\n".join(text_lines(document(made)))
    assert "skipped: 3 rows, outcome is missing (the first: MARKED" in text
    summary = markdown(document(made))
    assert summary.index("> **`MARKED:") < summary.index("| gate |")
    assert "skipped: 3 rows, outcome is missing" in summary
    suite = suite_of(junit(made, at=AT))
    assert str(suite.findtext("system-out")).startswith("MARKED: of the reference set\nGATES")
