# SPDX-License-Identifier: Apache-2.0
"""The page of a campaign, in a real browser; and the map of what was tried in the report of a run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Browser
from campaign_runs import RELATIONS, carried_out, drives, planned, summary_of
from made_runs import made_run, verdict, verdicts

from mt_nodes.base.jsonl import read_result
from mt_nodes.cli.main import main
from mt_nodes.data.polar_cells import JUDGED_IN
from mt_nodes.data.verdict import Judgement, Outcome, Pair, Verdict
from mt_nodes.engine.summary.summary import RelationInfo
from mt_nodes.report.campaign_page import write_campaign_page
from mt_nodes.report.coverage.coverage import coverage
from mt_nodes.report.coverage.coverage_view import coverage_html
from mt_nodes.runs.campaign.campaign_summary import sum_up_campaign
from mt_nodes.runs.campaign.conductor import conduct

NAMES = ("noise", "fog~visibility_m_60", "fog~visibility_m_200")
INFOS = [RelationInfo(name, "expected", 20, "x") for name in NAMES]
CELLS = {"first-seed0": "first", "first-seed1": "first", "second-seed0": "second"}
TROUBLE = "bag is damaged <after> 2 messages"


def seen(bundle: int, lost: int, relation: str = NAMES[0], classes: tuple[str, ...] = ("car",)) -> Verdict:
    """A verdict that tells where the obstacles were that it is about."""
    outcome = Outcome.VIOLATED if lost else Outcome.HOLDS
    detail = {JUDGED_IN: {label: [[10, 0, 2]] for label in classes}, "lost_at": [[12.0, 1.0, "car"]] * lost}
    return Verdict(
        Pair(0, bundle, relation), 10**17, Judgement(outcome, 3, 4, -lost, "obstacles", "x", lost, 0, detail)
    )


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign of three cells with results and one without; its second pair of noise is the worst."""
    out = tmp_path_factory.mktemp("campaigns") / "a night"
    summaries: dict[str, Any] = {}
    for at, cell in enumerate(CELLS):
        rows = [row for name in NAMES[1:] for row in verdicts(name, range(9 * at if "60" in name else 1))]
        rows += verdicts(NAMES[0])[30:] + [seen(b, b * (b < 3)) for b in range(30)]
        made_run(out / "cells" / cell, rows, *INFOS)
        summaries[cell] = summary_of(out / "cells" / cell)
    summaries["third-seed0"] = {**summaries["first-seed0"], "relations": {}, "offered": 0, "exit_code": 4}
    stacks = {**CELLS, "third-seed0": "third"}
    failed = [{"cell": cell, "drive": 1, "url": "drives/wet", "trouble": TROUBLE} for cell in stacks]
    about = {
        "drives": 4,
        "cells": {cell: {"stack": stack, "seed": 0, "relations": list(NAMES)} for cell, stack in stacks.items()},
        "notes": ["drives/again has the content of drives/first"],
        "left": ["2 drives beyond the budget of 60 pairs"],
        "stop_early": None,
        "stopped": {"second-seed0": {NAMES[1]: 3}},
        "failed": [*failed, {**failed[0], "drive": 2, "trouble": "a disk was full"}],
    }
    sum_up_campaign(out, about, summaries, {"done": 8, "failed": 5, "planned": 3}, why_left="x", interrupted=False)
    write_campaign_page(out, {})
    return out


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def page(browser: Browser, campaign: Path) -> Browser:
    browser.ask("Emulation.setEmulatedMedia", features=[])
    browser.open((campaign / "report.html").as_uri())
    return browser


def texts(page: Browser, selector: str) -> list[str]:
    found: list[str] = page.value(f"[...document.querySelectorAll('{selector}')].map(e => e.innerText)")
    return found


def test_the_page_is_one_file_that_needs_no_script(page: Browser, campaign: Path) -> None:
    text = (campaign / "report.html").read_text()
    assert "<script" not in text and "http" not in text.replace("http-equiv", "")
    assert page.troubles == []
    assert page.value("performance.getEntriesByType('resource').length") == 0


def test_the_worst_cell_comes_first_with_its_worst_pair_and_what_to_type(campaign: Path) -> None:
    text = (campaign / "report.html").read_text()
    begins = [text.index(part) for part in ("<h1>", 'class="violation front"', 'class="next"', '<h2 id="outcomes">')]
    assert begins == sorted(begins) and begins[-1] < text.index("<table")
    front = text[begins[1] : begins[2]]
    assert "No picture: evidence/" in front and "cells/second-seed0/report.html#pair=" in front
    assert f"mt reproduce {campaign / 'cells' / 'second-seed0'}".replace(" ", "") in text.replace("&#39;", "").replace(
        " ", ""
    )


def test_every_cell_and_relation_has_its_outcome(page: Browser, campaign: Path) -> None:
    summary = summary_of(campaign)
    assert texts(page, ".matrix thead th")[1:] == [name.replace("_", "_\u200b") for name in summary["cells"]]
    rows: list[list[str]] = page.value(
        "[...document.querySelectorAll('.matrix tbody tr')].map(r => [...r.cells].map(c => c.innerText))"
    )
    assert [row[0].replace("\u200b", "") for row in rows] == list(NAMES)
    for row in rows:
        for cell, told in zip(summary["cells"], row[1:], strict=True):
            found = summary["cells"][cell]["relations"].get(row[0].replace("\u200b", ""))
            if found is None:
                assert told == "nothing judged"
                continue
            assert found["outcome"] in told and told[0] in "✓✗?≈"
            assert f"{found['violated']} / {found['decided']}" in told and f"{100 * found['rate']:.1f} %" in told
    stopped = [
        (row[0], at) for row in rows for at, told in enumerate(row) if "stopped early, after drive 3 of 4" in told
    ]
    assert [(name.replace("\u200b", ""), at) for name, at in stopped] == [(NAMES[1], 3)]


def test_what_was_not_done_is_told_with_why(page: Browser) -> None:
    told = page.value("document.body.innerText")
    assert "8 done, 5 failed" in told and "3 left" in told
    assert "Left: 2 drives beyond the budget of 60 pairs." in told
    assert "drives/again has the content of drives/first" in told
    failed = [row.split("\t")[-2:] for row in texts(page, "h2 + .note + .stack tbody tr") if row[0].isdigit()]
    assert failed == [["every cell", TROUBLE], ["first-seed0", "a disk was full"]]


def test_an_outcome_leads_to_the_worst_pair_in_the_cells_report(page: Browser, campaign: Path) -> None:
    links: list[str] = page.value("[...document.querySelectorAll('table a')].map(a => a.href)")
    assert len(links) == 3 * (2 + len(NAMES)), "the name of each cell twice, and each outcome"
    assert all(Path(link.removeprefix("file://").split("#")[0].replace("%20", " ")).is_file() for link in links)
    worst = page.value("document.querySelector('.matrix tbody tr td a').href")
    assert worst.endswith("cells/first-seed0/report.html#pair=0/2/noise/0")
    page.open(worst)
    shown = "document.querySelector('#opened').dataset.ready === '0/2/noise/0'"
    page.value(
        f"new Promise(done => {{ const look = () => {shown} ? done(1) : requestAnimationFrame(look); look(); }})"
    )


def test_a_parameter_that_is_varied_is_drawn(page: Browser) -> None:
    assert page.value("document.querySelectorAll('.effect svg').length") == 2, "of each stack that judged anything"
    assert page.value("document.querySelector('.effect svg').getBoundingClientRect().height") > 100
    assert page.value("document.querySelectorAll('.effect circle').length") == 6
    assert texts(page, ".effect figcaption")[0].split() == ["fog", "first"]


def test_what_is_folded_comes_out_in_print(page: Browser) -> None:
    page.value("document.querySelector('details').open = false")
    shown = "document.querySelector('details .effect svg').checkVisibility({contentVisibilityAuto: true})"
    assert not page.value(shown)
    page.ask("Emulation.setEmulatedMedia", media="print")
    try:
        page.value("new Promise(requestAnimationFrame)")
        assert page.value(shown)
        assert page.value("document.querySelector('.effect svg').getBoundingClientRect().height") > 100
    finally:
        page.ask("Emulation.setEmulatedMedia", media="")


def test_what_all_cells_tried_is_shown_together(page: Browser, campaign: Path) -> None:
    assert coverage_html(coverage([campaign])) in (campaign / "report.html").read_text()
    assert "6/90" in texts(page, ".mt-coverage td")


@pytest.mark.parametrize("width", [360, 1200])
def test_the_page_fits_small_screens_and_dark_ones(page: Browser, width: int) -> None:
    page.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    assert page.value("document.documentElement.scrollWidth") <= width
    colours = "(() => { const it = getComputedStyle(document.body); return it.color + it.backgroundColor; })()"
    light = page.value(colours)
    page.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert page.value(colours) == "rgb(228, 230, 232)rgb(21, 24, 28)" != light


def test_what_lies_beside_it_is_linked(campaign: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(campaign, tmp_path / "night"))
    assert "See also" not in (out / "report.html").read_text()
    pages = [Path("trend.html"), Path("cells/first-seed0/review/review.html")]
    for page in pages:
        (out / page).parent.mkdir(exist_ok=True)
        (out / page).touch()
    assert main(["report", str(write_campaign_page(out, {}).parent / "cells" / "first-seed0")]) == 0
    assert all(f'href="{page}"' in (out / "report.html").read_text() for page in pages)
    report = (out / "cells" / "first-seed0" / "report.html").read_text()
    assert 'href="review/review.html"' in report and 'href="trend.html"' not in report


def test_it_is_made_anew(campaign: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (campaign / "report.html").read_text()
    (campaign / "report.html").unlink()
    (campaign / "campaign.sqlite").touch()
    assert main(["report", str(campaign)]) == 0
    assert (campaign / "report.html").read_text() == before
    assert capsys.readouterr().out.strip() == str(campaign / "report.html")
    assert main(["report", str(campaign), "--pair", "0/0/noise/0"]) == 2
    assert "are for one of its cells" in capsys.readouterr().err
    (tmp_path / "campaign.sqlite").touch()
    assert main(["report", str(tmp_path)]) == 4
    assert "campaign.sqlite: holds no campaign that can be read" in capsys.readouterr().err
    (tmp_path / "summary.json").write_text("{}")
    assert main(["report", str(tmp_path)]) == 4
    assert f"mt campaign --resume {tmp_path} --minutes 0" in capsys.readouterr().err


def test_a_campaign_leaves_it(tmp_path: Path) -> None:
    relations = [RELATIONS[0], {"id": "fog_keeps_near_obstacles", "set": {"fog.visibility_m": [20, 400]}}]
    out = carried_out(tmp_path, drives(tmp_path, 1, bundles=1), relations=relations)
    text = (out / "report.html").read_text()
    assert 'href="cells/reference_detector-seed0/report.html' in text and "visibility_m" in text
    assert summary_of(out)["campaign"]["left"] == []
    conducted = planned(tmp_path, drives(tmp_path / "more", 2, bundles=1), "short", budget={"pairs": 6})
    assert conducted.allowed == 1
    assert conduct(conducted, lambda: True)["campaign"]["left"] == [
        "1 drive beyond the budget of 6 pairs",
        "the campaign was interrupted",
    ]


# --- in the report of a run


@pytest.mark.parametrize(("classes", "folded"), [(("car",), False), (("bus", "car", "cyclist", "dog"), True)])
def test_a_run_shows_what_it_tried(tmp_path: Path, browser: Browser, classes: tuple[str, ...], folded: bool) -> None:
    run = made_run(tmp_path / "run", [seen(b, int(b == 1), classes=classes) for b in range(30)], INFOS[0])
    assert coverage_html(coverage([run])) in (run / "report.html").read_text()
    browser.open((run / "report.html").as_uri())
    assert browser.value("document.querySelectorAll('.mt-coverage caption').length") == len(classes)
    assert browser.value("document.querySelector('details.tried').open") is not folded
    assert browser.value("document.querySelector('.mt-coverage td').checkVisibility()") is not folded
    assert browser.troubles == []


def test_a_run_that_tells_no_places_has_no_map(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", [verdict(NAMES[0], b, False) for b in range(3)], INFOS[0])
    assert "mt-coverage" not in (run / "report.html").read_text()
    assert read_result(run / "summary.json")["offered"] == 3
