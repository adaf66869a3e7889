# SPDX-License-Identifier: Apache-2.0
"""The page about a real drive says what the results say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from made_runs import FOG, NOISE, made_run, verdicts

from mt_nodes.data.verdict import Judgement, Outcome, Pair, Verdict
from mt_nodes.stacks.stack import load_stack

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import real_data  # noqa: E402

KEPT = [f"none of {n} things ahead has 30 returns" for n in (7, 9, 8)]
NO_ROOM = [f"no free ground for 'truck': of {n} places tried {n} occupied" for n in range(12)]


def undecided(relation: str, reasons: list[str]) -> list[Verdict]:
    judgements = (Judgement(Outcome.NOT_APPLICABLE, reason=reason) for reason in reasons)
    return [Verdict(Pair(0, 100 + i, relation, "0"), 10**17 + 100 + i, j) for i, j in enumerate(judgements)]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("real")
    rows = [*verdicts("noise", [3, 12]), *verdicts("fog", count=15), *undecided("fog", KEPT + NO_ROOM)]
    made_run(place / "one", rows, NOISE, FOG)
    made_run(place / "other", verdicts("noise"), NOISE)
    return real_data.page({stack: real_data.told(place / stack) for stack in ("one", "other")})


def test_it_counts_what_was_decided_and_violated(page: str) -> None:
    assert "| `noise` | necessary | 2 of 30 | 0 of 30 |" in page
    assert "| `fog` | necessary | 0 of 15 (15) |  |" in page
    assert "on 30 frames" in page and "violated in 0 of 150 pairs" in " ".join(page.split())
    assert "| `noise` | `one` | 3, 12 |" in page and "1 of these are `necessary`" in page


def test_it_says_why_the_rest_was_not_decided(page: str) -> None:
    why = "12 times: no free ground for 'truck'; 3 times: none of the things ahead has 30 returns"
    assert f"| `fog` | `one` | 15 | 20 | {why} |" in page
    assert page.count("20 |") == 1, "what was decided often enough is not among them"


def test_drives_stand_in_columns_of_their_own(tmp_path: Path) -> None:
    made_run(tmp_path / "one", verdicts("noise", [3]), NOISE)
    told = real_data.told(tmp_path / "one")
    page = real_data.page({"one": told}, {"seer": told, "seer left bend": told})
    lidar, _, cameras = page.partition("# Cameras")
    assert "| relation | kind | `one` |" in lidar and "seer" not in lidar
    assert "| relation | kind | `seer` | `seer`, left bend |" in cameras
    assert "| `noise` | `seer`, left bend | 3 |" in cameras


def test_only_what_no_run_tells_is_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_run(tmp_path / "0", verdicts("noise"), NOISE)
    monkeypatch.setattr(real_data, "wanted", lambda stack: ("noise", "fog"))
    asked: list[tuple[str, ...]] = []

    def play(bag: Path, stack: str, names: tuple[str, ...], out: Path) -> None:
        asked.append(tuple(names))
        made_run(out, verdicts("fog"), FOG)

    monkeypatch.setattr(real_data, "play", play)
    for _ in range(2):
        assert list(real_data.played(Path("bag"), "reference_detector", tmp_path)) == ["noise", "fog"]
    assert asked == [("fog",)]


def test_a_run_that_was_cut_off_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_run(tmp_path / "0", verdicts("noise"), NOISE)
    whole = (tmp_path / "0" / "summary.json").read_bytes()
    (tmp_path / "0" / "summary.json").unlink()
    monkeypatch.setattr(real_data, "wanted", lambda stack: ("noise",))
    monkeypatch.setattr(real_data.Run, "resume", lambda out: out)
    monkeypatch.setattr(real_data, "finish", lambda out: (out / "summary.json").write_bytes(whole))
    assert list(real_data.played(Path("bag"), "reference_detector", tmp_path)) == ["noise"]


def test_both_sensors_are_judged_by_what_changes_both() -> None:
    camera, both = (real_data.wanted(load_stack(name)) for name in real_data.CAMERA_STACKS)
    assert {"object_agreed_person", "fog_camera_not_faster"} <= set(both) and "object_agreed_person" not in camera
    assert "brightness_raised_lane" in camera and not {"brightness_raised_lane", "noise_outside_roi_10"} & set(both)


def test_the_page_names_relations_that_are_there() -> None:
    shipped = {path.stem for path in (ROOT / "config" / "relations").glob("*.yaml")}
    rows = [
        line.split("`")[1] for line in real_data.PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")
    ]
    assert len(set(rows)) > 80 and set(rows) <= shipped
