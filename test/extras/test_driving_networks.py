# SPDX-License-Identifier: Apache-2.0
"""One command makes driving networks, another finds what they have not learned: all of it at a tiny scale."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra 'models'")

import driving_networks  # noqa: E402
import network_laps  # noqa: E402
import planted_weaknesses  # noqa: E402

from mt_nodes.runs.models.weights_file import load_weights  # noqa: E402

TINY = ("--drives", "1", "--seconds", "5", "--epochs", "1", "--light", "noon")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two networks, and PilotNet without night and without rain, after one epoch: they have learned nothing."""
    work = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(network_laps.LIGHTS, "noon", {"duration": "1"})
        for more in (["--network", "cnn3d"], ["--without", "night"], ["--without", "rain"]):
            words = [str(work), *TINY, "--network", "pilotnet", *more]
            assert driving_networks.main(words) == 1, "a lap of a second goes around no town"
    return work


def frames_of(weights: Path) -> int:
    return int(load_weights(weights).about.made["frames"])


def test_each_network_learns_from_expert_and_pilot_and_variants_from_less(made: Path) -> None:
    folders = {path.name for path in (made / "frames").iterdir()}
    assert folders == {f"{weather}_{who}" for weather in ("day", "night", "rain") for who in ("expert", "driven")}
    assert frames_of(made / "first" / "weights.pt") == 150
    assert frames_of(made / "pilotnet" / "weights.pt") == frames_of(made / "cnn3d" / "weights.pt") == 300
    for variant in ("pilotnet_no_night", "pilotnet_no_rain"):
        assert frames_of(made / variant / "weights.pt") == 200
    rows = json.loads((made / "laps.json").read_text())
    assert [(row["stack"], row["light"], row["in_lane"], row["lap_s"]) for row in rows] == [
        ("pilotnet", "noon", 0, None),
        ("cnn3d", "noon", 0, None),
    ]


def test_who_is_dark_drives_slower_by_the_expert(made: Path) -> None:
    fastest = {
        weather: max(
            float(line.split(",")[1])
            for line in (made / "frames" / f"{weather}_expert" / "samples.csv").read_text().splitlines()[1:]
        )
        for weather in ("day", "night", "rain")
    }
    assert fastest["day"] > 7.0 > 5.6 > max(fastest["night"], fastest["rain"])


@pytest.mark.timeout(600)
def test_networks_that_have_learned_nothing_are_told_apart_by_nothing(made: Path, capsys: Any) -> None:
    assert planted_weaknesses.main([str(made), "--drives", "2", "--seconds", "1"]) == 1
    out = capsys.readouterr().out
    assert "not found: that a network has learned nothing of night" in out and "of rain" in out
    rows = json.loads((made / "weaknesses.json").read_text())
    networks = ("pilotnet", "pilotnet_no_night", "pilotnet_no_rain")
    relations = (*planted_weaknesses.RULES, *planted_weaknesses.WAYS)
    assert [(row["network"], row["relation"]) for row in rows] == [(n, r) for n in networks for r in relations]
    assert any(row["decided"] for row in rows)
