# SPDX-License-Identifier: Apache-2.0
"""The paper's experiment: its relations, its table, its figure, and the whole of it on a small drive in process."""

from __future__ import annotations

import dataclasses
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from mt_nodes.base import resources
from mt_nodes.base.errors import UsageError
from mt_nodes.cli.main import main
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.engine.summary.summary import RelationInfo, summarise
from mt_nodes.relations.relation import load_relation
from mt_nodes.report.categories import write_figure
from mt_nodes.report.html import write_report
from mt_nodes.report.published_tables import PUBLISHED, categories, describe, draws_needed, tabulate, write_relations
from mt_nodes.world.scene.drive import generate_drive

BUNDLES = 3


@pytest.mark.parametrize(
    ("pairs", "frames", "draws"), [(1000, 26, 39), (300, 26, 12), (26, 26, 1), (27, 26, 2), (1, 9, 1)]
)
def test_frames_are_used_often_enough_and_not_once_more(pairs: int, frames: int, draws: int) -> None:
    assert draws_needed(pairs, frames) == draws
    assert draws * frames >= pairs > (draws - 1) * frames


def test_no_frame_is_refused() -> None:
    with pytest.raises(UsageError, match="no frame"):
        draws_needed(10, 0)


@pytest.mark.parametrize("config", sorted(resources.shipped("experiments")))
def test_every_shipped_configuration_makes_relations(config: str, tmp_path: Path) -> None:
    relations = [load_relation(f) for f in write_relations(config, (10, 2000), tmp_path / "relations")]
    assert [r.mutate[0].points for r in relations] == [10, 2000]  # type: ignore[attr-defined]
    assert [r.id.rpartition("_")[2] for r in relations] == ["10", "2000"]
    assert all("CACM" in r.because and str(n) in r.because for r, n in zip(relations, (10, 2000), strict=True))


def test_the_default_is_the_shipped_relation(tmp_path: Path) -> None:
    for n, file in zip(PUBLISHED, write_relations("default", tuple(PUBLISHED), tmp_path), strict=True):
        shipped, made = load_relation(f"noise_outside_roi_{n}"), load_relation(file)
        ours, theirs = (dataclasses.replace(r, path=None, because="") for r in (made, shipped))
        assert ours == theirs


def test_the_replication_has_none_of_our_zones(tmp_path: Path) -> None:
    (file,) = write_relations("zhou_sun_2019", (100,), tmp_path)
    check: Any = load_relation(file).check
    mutation: Any = load_relation(file).mutate[0]
    assert type(check).__name__ == "ObstacleCountNotLess"
    assert (check.keep_inset_m, check.score_high, check.score_low) == (0.0, 0.0, 0.0)
    assert (mutation.mode, mutation.margin_m) == ("paper", 0.0)


@pytest.mark.parametrize("points", [(), (10, 10), (0,), (2_000_000,)])
def test_numbers_that_are_none_are_refused(points: tuple[int, ...], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--n: got"):
        write_relations("default", points, tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_configuration_without_a_place_for_n_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("id: x\n")
    with pytest.raises(UsageError, match=r"mine\.yaml: got no \{n\}"):
        write_relations(str(tmp_path / "mine.yaml"), (10,), tmp_path)


def made_summary(counts: list[tuple[int, int]], bags: tuple[str, ...] = ("drive",)) -> dict[str, Any]:
    """A run of one relation, three draws of each frame; (|O|, |O'|) of each pair in turn."""
    lines: list[dict[str, Any]] = [{"type": "condition", "bags": list(bags)}]
    for i, (before, after) in enumerate(counts):
        found = {"counts": {"all": [before, after], "car": [before, after], "tram": [1, 1]}}
        for relation, draw, detail in (("noise", f"{i % 3}", found), ("identity", f"{i % 3}@noise", {})):
            outcome = "VIOLATED" if detail and after < before else "HOLDS"
            pair = f"0/{i // 3}/{relation}/{draw}"
            lines.append(
                {"type": "verdict", "pair": pair, "outcome": outcome, "lost": 0, "gained": 0, "detail": detail}
            )
    return summarise(lines, [RelationInfo("noise", "necessary")])


def test_the_table_has_the_run_and_the_paper() -> None:
    asked = describe("default", 6, 3, {1000: "noise"})
    table = tabulate(asked, made_summary([(5, 4)] * 3 + [(5, 5)] * 2 + [(5, 7)]))
    (row,) = table["rows"]
    assert row["counts"]["all"] == {">": 3, "=": 2, "<": 1}
    assert (row["decided"], row["frames"], row["drives"], row["violated"]) == (6, 2, 1, 3)
    assert row["published"]["counts"]["all"] == {">": 335, "=": 533, "<": 132}
    assert row["published"]["ci95"] == pytest.approx((0.306, 0.365), abs=1e-3)
    assert (row["control"]["decided"], row["sham"]["decided"]) == (6, 0)
    assert categories([row]) == ["all", "car", "tram"]
    assert tabulate(table, made_summary([(5, 4)] * 3))["rows"][0]["decided"] == 3
    json.dumps(table, allow_nan=False)


def test_numbers_the_paper_does_not_have_stand_alone() -> None:
    table = tabulate(describe("default", 3, 1, {50: "noise"}), made_summary([(1, 1)] * 3))
    assert table["rows"][0]["published"] is None


def test_the_figure_is_the_same_each_time_and_svg(tmp_path: Path) -> None:
    rows = tabulate(describe("default", 6, 3, {10: "noise"}), made_summary([(5, 4), (5, 5), (5, 6)]))["rows"]
    first = [p.read_bytes() for p in write_figure(rows, tmp_path)]
    assert first == [p.read_bytes() for p in write_figure(rows, tmp_path)]
    assert first[0].startswith(b"\x89PNG") and ET.fromstring(first[1]).tag.endswith("svg")


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("experiment") / "drive"
    write_bundles(path, generate_drive(BUNDLES, seed=1))
    return path


def experiment(drive: Path, out: Path, *words: str) -> int:
    return main(["experiment", "noise-outside-roi", str(drive), "--transport", "inprocess", "--out", str(out), *words])


def test_a_whole_experiment(drive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    fault = ("--fault", "point_buffer_cap")
    assert experiment(drive, out, "--n", "10,1000", "--pairs", "5", *fault) == 1
    printed = capsys.readouterr().out
    assert "335" in printed and "2 times, with different draws" in printed and "cluster-robust over 3 frames" in printed
    table, summary = (json.loads((out / name).read_text()) for name in ("experiment.json", "summary.json"))
    assert [row["n"] for row in table["rows"]] == [10, 1000]
    for row in table["rows"]:
        relation = summary["relations"][row["relation"]]
        assert (row["decided"], row["frames"], row["drives"]) == (6, 3, 1)
        assert row["counts"] == relation["counts"]
        assert row["control"]["violated"] == row["sham"]["violated"] == 0
    assert table["rows"][1]["violated"] > 0
    violated = sum(row["violated"] for row in table["rows"])
    assert len(list((out / "evidence").glob("*.mcap"))) == len(list((out / "evidence").glob("*.npz"))) == violated
    page = (out / "report.html").read_text()
    assert "The experiment: noise-outside-roi (default)" in page and ">335</td>" in page
    assert write_report(out).read_text() == page


def test_what_cannot_run_leaves_nothing(drive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert experiment(drive, tmp_path / "a", "--config", "zhou") == 2
    assert experiment(tmp_path / "no_bag", tmp_path / "b") == 2
    assert experiment(drive, tmp_path / "c", "--stack", "nobody") == 2
    assert not list(tmp_path.iterdir())
    assert "experiment" in capsys.readouterr().err
