# SPDX-License-Identifier: Apache-2.0
"""Many versions of one stack: the exact test of a change, where rates change, what fails newly, tables and page."""

from __future__ import annotations

import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import FOG, NOISE, made_run, verdicts

from mt_nodes.base.stats.intervals import fisher_p, sign_test_p
from mt_nodes.cli.main import main
from mt_nodes.engine.summary.headline import Headline
from mt_nodes.report.comparison import NEWLY_FAILING
from mt_nodes.report.trend.changes import best_split, change_p, further_splits
from mt_nodes.report.trend.page import front
from mt_nodes.report.trend.versions import Version, by_date, trend

Counts = np.typing.NDArray[np.int64]


def table(rows: list[list[int]]) -> Counts:
    return np.array(rows, dtype=np.int64)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_with_two_versions_and_pairs_it_is_mcnemars(pairs: list[tuple[bool, bool]]) -> None:
    hits = table([[int(was), int(now)] for was, now in pairs])
    newly, no_longer = sum(now > was for was, now in pairs), sum(was > now for was, now in pairs)
    assert change_p(hits, np.ones_like(hits), 1) == pytest.approx(sign_test_p(newly, no_longer))


@given(st.integers(1, 40), st.integers(1, 40), st.data())
def test_of_other_pairs_it_is_fishers(before: int, after: int, data: st.DataObject) -> None:
    a, b = data.draw(st.integers(0, before)), data.draw(st.integers(0, after))
    found = change_p(table([[a, b]]), table([[before, after]]), 1)
    assert found == pytest.approx(fisher_p((a, before), (b, after)), abs=1e-12)


def test_it_is_exact_over_all_ways_that_hits_can_fall() -> None:
    """Three versions, two pairs hit once and twice: every placement counted by hand."""
    hits, trials = table([[0, 0, 1], [0, 1, 1]]), np.ones((2, 3), dtype=np.int64)
    # Of 3 * 3 placements, behind the second split: 1 + 1 in 1/3 * 2/3, 0 + 0 in 2/3 * 1/3, else one.
    assert change_p(hits, trials, 2) == pytest.approx(2 / 9 + 2 / 9)
    # Behind the first: one of three misses for the first pair, none of the second ever: 1 + 2 in 2/3 * 1/3.
    assert change_p(hits, trials, 1) == pytest.approx(2 / 9 + 2 / 9)


@given(st.integers(1, 7), st.integers(0, 30))
def test_what_never_differs_is_no_change(split: int, hit: int) -> None:
    hits = np.repeat((np.arange(30) < hit).astype(np.int64)[:, None], 8, axis=1)
    assert change_p(hits, np.ones_like(hits), split) == 1.0


def test_the_false_alarms_of_the_best_split_are_kept_in_check() -> None:
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(200):
        hits = (rng.random((40, 6)) < 0.2).astype(np.int64)
        split = best_split(hits, np.ones_like(hits))
        alarms += split is not None and split.p < 0.05
    assert alarms <= 18  # 5 % of 200, and three standard deviations


def test_changes_are_found_where_they_are() -> None:
    hits = np.zeros((40, 9), dtype=np.int64)
    hits[:20, 3:6] = 1
    trials = np.ones_like(hits)
    first = best_split(hits, trials)
    assert first is not None and first.p < 1e-4
    both = {first.at, *(split.at for split in further_splits(hits, trials, first.at, 1, 0.05))}
    assert both == {3, 6}
    second = further_splits(hits, trials, first.at, 1, 0.05)[0].p
    assert further_splits(hits, trials, first.at, 10, 1.0)[0].p == pytest.approx(10 * second)
    assert further_splits(hits, trials, first.at, int(0.05 / second) + 1, 0.05) == []


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Four versions: noise fails from the third on, fog is no relation of the first."""
    place = tmp_path_factory.mktemp("versions")
    asked: list[Any] = [([], None), ([], []), (range(3, 15), []), (range(2, 16), [4])]
    made = []
    for at, (noise, fog) in enumerate(asked):
        rows = [*verdicts("noise", noise), *([] if fog is None else verdicts("fog", fog))]
        made.append(made_run(place / f"v{at}", rows, NOISE, *([] if fog is None else [FOG])))
    return made


def found(*paths: Path) -> dict[str, Any]:
    return trend([Version.load(path, path.name) for path in paths])


def row(told: dict[str, Any], name: str) -> dict[str, Any]:
    return next(r for r in told["relations"] if r["relation"] == name)


def test_what_became_of_relations_over_versions(runs: list[Path]) -> None:
    told = found(*runs)
    noise, fog = row(told, "noise"), row(told, "fog")
    assert [point["violated"] for point in noise["points"]] == [0, 0, 12, 14]
    assert noise["turns"] == [{"version": "v2", "change": "newly failing"}]
    assert noise["failing_since"] == "v2" and noise["change"] == "still failing"
    assert [change["version"] for change in noise["changes"]] == ["v2"]
    # Pair by pair: twelve are hit in both later versions of four, two in one of these, all behind the best of 3 splits.
    assert noise["test"].startswith("exact") and noise["p"] == pytest.approx(3 * 2 * (1 / 6) ** 12 * (1 / 2) ** 2)
    assert noise["changes"][0]["rate_before"] == 0.0
    assert noise["changes"][0]["rate_after"] == pytest.approx(26 / 60)
    assert fog["points"][0] is None and fog["failing_since"] == "v3" and fog["changes"] == []
    # Three splits; Holm over two relations.
    assert noise["p_adjusted"] == pytest.approx(min(1.0, 2 * noise["p"]))
    assert told["exit_code"] == 1 and told["exit_why"] == "newly failing in v3: fog"


def test_rates_are_those_between_neighbouring_changes(tmp_path: Path) -> None:
    counts = (1, 2, 0, 15, 18, 15, 3)
    runs = [made_run(tmp_path / f"v{at}", verdicts("noise", range(n)), NOISE) for at, n in enumerate(counts)]
    changes = row(found(*runs), "noise")["changes"]
    assert [change["version"] for change in changes] == ["v3", "v6"]
    assert [change["rate_before"] for change in changes] == pytest.approx([3 / 90, 48 / 90])
    assert [change["rate_after"] for change in changes] == pytest.approx([48 / 90, 3 / 30])


def test_only_what_fails_newly_in_the_last_version_counts(runs: list[Path]) -> None:
    assert found(*runs[:3])["exit_code"] == 1
    assert found(runs[0], runs[2], runs[2])["exit_code"] == 0
    lost = found(*reversed(runs))
    assert (lost["exit_code"], lost["exit_why"]) == (3, "no longer decided in v0: fog (PASS before, missing after)")
    assert found(*reversed(runs), runs[0])["exit_code"] == 0  # it was missing before


def test_what_cannot_be_said_of_the_last_version_is_not_green(runs: list[Path], tmp_path: Path) -> None:
    short = made_run(tmp_path / "short", verdicts("noise", [], 3), NOISE)
    assert found(*runs[:2], short)["exit_why"].startswith("no longer decided in short: noise (PASS before, INCONC")
    assert found(short, short, short)["exit_code"] == 3
    broken = made_run(tmp_path / "broken", verdicts("noise"), NOISE, infrastructure="the stack died")
    told = found(runs[0], broken)
    assert told["exit_code"] == 3 and "is incomplete: infrastructure: the stack died" in told["exit_why"]


def test_other_instants_are_tested_as_other_pairs(runs: list[Path], tmp_path: Path) -> None:
    other = made_run(tmp_path / "other", verdicts("noise", range(12), stamp_ns=10**18), NOISE)
    noise = row(found(*runs[:2], other), "noise")
    assert noise["test"].startswith("Fisher") and [c["version"] for c in noise["changes"]] == ["other"]
    assert noise["p"] == pytest.approx(min(1.0, 2 * fisher_p((0, 60), (12, 30))))


def test_runs_come_in_the_order_of_their_dates(runs: list[Path], tmp_path: Path) -> None:
    versions = [Version(str(day), tmp_path, f"2026-01-0{day}", {}) for day in (3, 1, 2)]
    assert [v.label for v in by_date(versions)] == ["1", "2", "3"]
    assert main(["compare", *map(str, runs), "--by", "date"]) == 2  # made by hand, without run.json


def test_cells_of_campaigns_are_compared_by_their_names(tmp_path: Path) -> None:
    for version, noise in (("one", []), ("two", [5])):
        for cell, rows in (("a-seed0", verdicts("noise", noise)), ("b-seed0", verdicts("noise"))):
            made_run(tmp_path / version / "cells" / cell, rows, NOISE)
    told = found(tmp_path / "one", tmp_path / "two")
    assert [(r["cell"], r["change"]) for r in told["relations"]] == [
        ("a-seed0", "newly failing"),
        ("b-seed0", "as before"),
    ]
    assert main(["compare", str(tmp_path / "one"), str(tmp_path / "two")]) == 1


class Words(HTMLParser):
    """Texts of a page, and what it would load."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.images: list[str] = []
        self.tags: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.images += [str(value) for name, value in attrs if name == "src"]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_command_line_json_and_page_say_the_same(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    label = "<b>main</b>"
    words = ["compare", *map(str, runs), "--label", f"{label}={runs[0]}", "--html", str(tmp_path / "trend.html")]
    assert main([*words, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [v["label"] for v in told["versions"]] == [label, *map(str, runs[1:])]
    page = Words((tmp_path / "trend.html").read_text())
    assert label in page.texts and not page.tags & {"b", "script", "link"}
    assert len(page.images) == 2 and all(uri.startswith("data:image/svg+xml") for uri in page.images)
    assert main(words) == 1
    out = capsys.readouterr().out
    assert "12/30 FAIL" in out and f"noise: failing since {runs[2]}" in out and f"changed at {runs[2]}" in out
    assert f"exit code 1: newly failing in {runs[3]}: fog" in out


def test_the_page_begins_with_what_fails_in_the_last_version_new_or_not() -> None:
    def found(last: str, code: int = 0, change: str = "as before") -> Headline:
        row = {"name": "noise", "change": change, "points": [{"outcome": "PASS"}, {"outcome": last}], "changes": []}
        versions = [{"label": "one"}, {"label": "two"}]
        return front({"versions": versions, "relations": [row], "exit_code": code, "exit_why": "why"})

    assert (found("PASS").verdict, found("PASS").sentence) == ("PASS", "The one relation passes in two.")
    new, old = found("FAIL", 1, NEWLY_FAILING), found("FAIL")
    assert new.sentence == "1 of 1 relation fails in two (newly: noise)." and new.verdict == "FAIL"
    assert old.sentence == "1 of 1 relation fails in two (none of them newly)." and old.verdict == "FAIL"
    assert [found(*how).verdict for how in (("PASS", 3), ("INCONCLUSIVE",), ("UNSTABLE",))] == ["INCONCLUSIVE"] * 3


def test_the_page_leads_to_the_reports_of_the_versions(runs: list[Path], tmp_path: Path) -> None:
    (tmp_path / "far" / "away").mkdir(parents=True)
    page = tmp_path / "elsewhere" / "trend.html"
    page.parent.symlink_to(tmp_path / "far" / "away")
    (tmp_path / "there").symlink_to(runs[0])
    assert main(["compare", str(tmp_path / "there"), *map(str, runs[1:]), "--html", str(page)]) == 1
    links = re.findall(r'<td><a href="([^"#]+)"', page.read_text())
    # As a browser does, which knows of no links between directories.
    assert [os.path.normpath(page.parent / link) for link in links] == [str(run / "report.html") for run in runs]
    assert not any(Path(link).is_absolute() for link in links)


def test_a_version_is_not_compared_with_itself(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for cell in ("a-seed0", "b-seed0"):
        made_run(tmp_path / "night" / "cells" / cell, verdicts("noise"), NOISE)
    (tmp_path / "again").symlink_to(tmp_path / "night")
    night, again = str(tmp_path / "night"), str(tmp_path / "again")
    assert main(["compare", night, again]) == 2
    assert f"got {again} twice ({night} is the same), expected another directory" in capsys.readouterr().err
    assert main(["compare", *map(str, (runs[0], runs[1], runs[0]))]) == 2
    assert f"got {runs[0]} twice, expected" in capsys.readouterr().err


@pytest.mark.parametrize("label", ["nameless", "=v0", "name=nowhere"])
def test_a_label_names_a_directory_that_is_compared(
    runs: list[Path], label: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *map(str, runs), "--label", label]) == 2
    assert "expected NAME=DIR" in capsys.readouterr().err


def test_names_are_needed_and_one_is_no_trend(runs: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(runs[0])]) == 2
    same = [str(runs[0]), str(runs[1]), str(runs[2])]
    assert main(["compare", *same, "--label", f"x={runs[0]}", "--label", f"x={runs[1]}"]) == 2
    assert "two versions are called 'x'" in capsys.readouterr().err


def test_waived_in_the_last_version_does_not_fail_the_build(runs: list[Path], tmp_path: Path) -> None:
    file = tmp_path / "waivers.yaml"
    file.write_text("- {relation: fog, reason: ticket 7, expires: 2999-01-01}\n")
    assert main(["compare", *map(str, runs), "--waivers", str(file)]) == 0
