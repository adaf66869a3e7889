# SPDX-License-Identifier: Apache-2.0
"""Waivers: what may be written, what counts, and where it is marked."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from made_runs import FOG, NOISE, in_process, made_run, sparse_drive, verdicts

from mt_nodes.base.errors import UsageError
from mt_nodes.base.jsonl import read_result
from mt_nodes.cli.main import main
from mt_nodes.engine.finish import read_summary
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.waivers import apply_waivers, load_waivers

TODAY = datetime.date(2026, 6, 1)
GOOD = "- {relation: noise, reason: ticket 7, expires: 2026-06-01}\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def marked_run(path: Path, text: str, today: datetime.date = TODAY, **fog: Any) -> dict[str, Any]:
    """Summary of a run in which ``noise`` is violated on bundles 3 and 4, marked."""
    run = made_run(path / "run", [*verdicts("noise", [3, 4]), *verdicts("fog", **fog)], NOISE, FOG)
    lines = list(read_journal(run / "result.jsonl"))
    return apply_waivers(read_summary(run), lines, load_waivers(write(path / "waivers.yaml", text)), today)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("relation: noise", "got dict, expected a list"),
        ("- noise", r"\[0\]: got 'noise', expected a mapping"),
        ("- {relation: noise, reason: x}", "missing expires"),
        ("- {relation: noise, expires: 2026-06-01, reason: ''}", "missing reason"),
        ("- {relation: noise, reason: x, expires: 2026-06-01, until: 3}", "unknown key 'until'"),
        ("- {relation: noise, reason: x, expire: 2026-06-01}", "did you mean 'expires'"),
        ("- {relation: noise, reason: x, expires: soon}", "got 'soon', expected a date such as"),
        ("- {relation: noise, reason: x, expires: 2026-06-01 12:00:00}", "expected a date"),
        ("- {relation: noise, reason: 7, expires: 2026-06-01}", "reason: got 7, expected a text"),
        ("- {relation: noise, reason: x, expires: 2026-06-01, pair: 0/3/noise}", "expected EPISODE/BUNDLE"),
        ("- {relation: noise, reason: x, expires: 2026-06-01, pair: 0/3/fog/0}", "expected a pair of relation 'noise'"),
        ("- {relation: identity, reason: x, expires: 2026-06-01, pair: 0/3/identity/0@noise}", "not of control"),
        ("- [", "not valid YAML"),
    ],
)
def test_what_cannot_be_understood_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as error:
        load_waivers(write(tmp_path / "w.yaml", text))
    assert "w.yaml" in str(error.value)


def test_dates_may_be_quoted_and_a_file_may_be_empty(tmp_path: Path) -> None:
    (waiver,) = load_waivers(write(tmp_path / "w.yaml", GOOD.replace("2026-06-01", "'2026-06-01'")))
    assert waiver.expires == TODAY and waiver.as_plain()["expires"] == "2026-06-01"
    assert load_waivers(write(tmp_path / "none.yaml", "# none\n")) == ()


def test_a_waived_fail_stays_fail_and_does_not_count(tmp_path: Path) -> None:
    summary = marked_run(tmp_path, GOOD)
    noise = summary["relations"]["noise"]
    assert noise["outcome"] == "FAIL" and summary["relations"]["fog"]["waived"] is None
    assert noise["waived"] == {"reason": "ticket 7", "expires": "2026-06-01", "requirement": [], "pairs": []}
    assert (summary["exit_code"], summary["waivers"]) == (0, [])
    assert summary["exit_why"] == "all relations PASS, except FAIL (waived): noise"


def test_the_exit_code_goes_on_to_the_next_rule(tmp_path: Path) -> None:
    assert marked_run(tmp_path / "undecided", GOOD, count=3)["exit_code"] == 3
    other = marked_run(tmp_path / "other", GOOD, violated=[9])
    assert (other["exit_code"], other["exit_why"]) == (1, "FAIL: fog")


def test_it_counts_through_its_last_day(tmp_path: Path) -> None:
    assert marked_run(tmp_path / "a", GOOD, TODAY)["exit_code"] == 0
    late = marked_run(tmp_path / "b", GOOD, TODAY + datetime.timedelta(days=1))
    assert late["exit_code"] == 1 and late["relations"]["noise"]["waived"] is None
    assert "expired on 2026-06-01, does not count" in late["waivers"][0]


def test_pairs_are_waived_only_when_all_are(tmp_path: Path) -> None:
    row = "- {{relation: noise, reason: frame {0}, expires: 2026-0{0}-01, pair: 0/{0}/noise/0}}\n"
    late = row.replace("2026-0{0}-01", "2027-0{0}-01")
    one = marked_run(tmp_path / "a", late.format(3))
    assert one["exit_code"] == 1 and "1 of 2 violated pairs are waived" in one["waivers"][0]
    both = marked_run(tmp_path / "b", late.format(3) + late.format(4))
    waived = both["relations"]["noise"]["waived"]
    assert both["exit_code"] == 0 and waived["pairs"] == ["0/3/noise/0", "0/4/noise/0"]
    assert (waived["reason"], waived["expires"]) == ("frame 3; frame 4", "2027-03-01")


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (GOOD.replace("noise", "rain"), "the run has no relation 'rain'"),
        (GOOD.replace("noise", "fog"), "relation fog is PASS, nothing to waive"),
        (GOOD.replace("}", ", requirement: REQ-8}"), "carries requirement REQ-7, not REQ-8"),
        (GOOD.replace("}", ", pair: 0/9/noise/0}"), "the pair is not violated"),
    ],
)
def test_what_does_not_count_is_told(tmp_path: Path, text: str, note: str) -> None:
    summary = marked_run(tmp_path, text)
    assert summary["exit_code"] == 1 and note in summary["waivers"][0]


def test_marks_are_in_every_output_and_go_away_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = made_run(tmp_path / "run", verdicts("noise", [3]), NOISE)
    text = GOOD.replace("2026", "2999").replace("}", ", requirement: REQ-7}")
    waivers = write(tmp_path / "w.yaml", text)
    assert main(["report", str(run), "--waivers", str(waivers)]) == 0
    assert "noise: FAIL waived until 2999-06-01: ticket 7" in capsys.readouterr().out
    case = ET.parse(run / "junit.xml").getroot().find("testcase")
    assert case is not None and case.find("failure") is None
    properties = {p.get("name"): p.get("value") for p in case.iter("property")}
    assert properties == {"requirement": "REQ-7", "waived": "until 2999-06-01: ticket 7"}
    assert "FAIL: necessary" in (account := case.findtext("system-out") or "") and "waived until" in account
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "Waived until 2999-06-01" in page and "requirement REQ-7" in page
    assert read_summary(run)["relations"]["noise"]["waived"]["requirement"] == ["REQ-7"]
    assert main(["report", str(run), "--waivers", str(write(tmp_path / "none.yaml", ""))]) == 0
    assert "Waived until" not in (run / "report.html").read_text(encoding="utf-8")
    assert ET.parse(run / "junit.xml").getroot().find("testcase/failure") is not None


def test_report_makes_tables_anew_with_requirements(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", verdicts("noise", [3]), NOISE)
    table = (run / "pairs.csv").read_text(encoding="utf-8")
    assert table.splitlines()[1].split(",")[5:8] == ["noise", "REQ-7", "HOLDS"]
    (run / "pairs.csv").unlink()
    (run / "junit.xml").write_text("damaged")
    assert main(["report", str(run)]) == 0
    assert (run / "pairs.csv").read_text(encoding="utf-8") == table
    assert ET.parse(run / "junit.xml").getroot().get("failures") == "1"


def test_a_replay_takes_waivers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bag = sparse_drive(tmp_path / "drive", 1)
    bad = write(tmp_path / "bad.yaml", "- {relation: x}\n")
    words = ["replay", str(bag), "--transport", "inprocess", "--relations", "noise_outside_roi_1000"]
    assert main([*words, "--waivers", str(bad), "--out", str(tmp_path / "no")]) == 2
    assert not (tmp_path / "no").exists()
    name = "noise_outside_roi_1000"
    waivers = write(tmp_path / "w.yaml", f"- {{relation: {name}, reason: known, expires: 2999-01-01}}\n")
    fault = {"faults": ("grid_index_wrap",), "waivers": str(waivers)}
    out = in_process(bag, tmp_path / "run", name, **fault).out
    summary = read_result(out / "summary.json")
    assert summary["relations"][name]["outcome"] == "FAIL"
    assert summary["relations"][name]["waived"]["reason"] == "known" and summary["exit_code"] == 0
