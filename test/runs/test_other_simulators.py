# SPDX-License-Identifier: Apache-2.0
"""``mt scenario --simulator``: whole runs before a fake of CARLA's interface, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_carla import FakeCarla, FakeWorld
from made_runs import no_pages

from mt_nodes.base.jsonl import read_lines, read_result
from mt_nodes.cli.main import main

SCRIPT = """\
short_drive = CreateScenario {
    load("straight");
    AV(("lane_1" -> 20.0, , 8.0), ("lane_1" -> 500.0));
    {};
    {Person((("lane_1" -> 200.0), , 0.0))};
    {};
    {};
};
"""


@pytest.fixture
def typed(tmp_path: Path) -> list[str]:
    """A command line without an answer: a scenario of 20 s, a relation, CARLA's settings."""
    (tmp_path / "short.scenario").write_text(SCRIPT, encoding="utf-8")
    settings = {"town": "Town01", "step_s": 0.1, "own_lights": True, "origin": {"x_m": 5.0, "yaw_rad": 0.3}}
    (tmp_path / "carla.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    line = ["scenario", str(tmp_path / "short.scenario"), "--relations", "far_object_same_trace", "--repeat", "1"]
    simulator = ["--simulator", "carla", "--simulator-settings", str(tmp_path / "carla.yaml")]
    return [*line, *simulator, "--out", str(tmp_path / "out")]


def test_a_run_in_carla(typed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    carla = FakeCarla(FakeWorld(obeys=True))
    monkeypatch.setitem(sys.modules, "carla", carla)
    with no_pages():
        main(typed)
    summary = read_result(tmp_path / "out" / "summary.json")
    assert summary["exit_code"] == 3, "one drive decides nothing"
    verdicts = [line for line in read_lines(tmp_path / "out" / "result.jsonl") if line["type"] == "verdict"]
    assert {line["outcome"] for line in verdicts} == {"HOLDS"} and len(verdicts) >= 3
    egos = [actor for actor in carla.world.actors if actor.kind == "vehicle.tesla.model3"]
    assert len(egos) >= 3, "source, control, follow-up …"
    assert not any(actor.is_alive for actor in carla.world.actors), "nothing is left there"
    assert not carla.world.settings.synchronous_mode
    condition = next(iter(read_lines(tmp_path / "out" / "result.jsonl")))
    assert condition["simulator"] == {
        "name": "carla",
        "settings": yaml.safe_load((tmp_path / "carla.yaml").read_text()),
    }


@pytest.mark.parametrize(
    ("world", "why"),
    [
        (FakeWorld(frozen=True), "does another client tick it?"),
        (FakeWorld(stands=True), "has not moved 3 s after it should have"),
        (FakeWorld(loses=True), ", which was spawned there"),
    ],
)
def test_a_carla_that_does_nothing_ends_with_4(
    typed: list[str], world: FakeWorld, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "carla", FakeCarla(world))
    with no_pages():
        assert main(typed) == 4
    assert why in read_result(tmp_path / "out" / "summary.json")["exit_why"]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--simulator", "gazebo"], "--simulator: got 'gazebo', expected carla, awsim"),
        (["--mode", "twin"], "--mode twin: --simulator carla has one ego at a time"),
        (["--simulator", "awsim"], "simulator settings: unknown parameter 'own_lights'"),
        (["--simulator", ""], "expected --simulator, too"),
        (["--falsify", "speed=1..2"], "--falsify: --simulator is not driven in"),
    ],
)
def test_what_does_not_fit_is_refused(
    typed: list[str], more: list[str], why: str, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "carla", FakeCarla())
    assert main([*typed, *more]) == 2
    assert why in capsys.readouterr().err


def test_awsim_needs_the_stack_in_its_domain(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "awsim.yaml").write_text("map_path: /maps/town.osm\n", encoding="utf-8")
    line = ["scenario", "pedestrian_crosses", "--simulator", "awsim", "--out", str(tmp_path / "out")]
    line += ["--simulator-settings", str(tmp_path / "awsim.yaml")]
    assert main(line) == 2
    assert "its vehicle takes its commands from /control/command/control_cmd (autoware" in capsys.readouterr().err
    (tmp_path / "auto.yaml").write_text(
        "name: auto\ncallable: mt_nodes.stacks.reference.planner:Planner\nstateless: false\n"
        "params: {tells: ackermann}\n"
        "inputs:\n"
        "  objects: {topic: /objects, type: visualization_msgs/msg/MarkerArray}\n"
        "  odometry: {topic: /odometry, type: nav_msgs/msg/Odometry}\n"
        "  route: {topic: /route, type: nav_msgs/msg/Path}\n"
        "outputs: {control: {topic: /control/command/control_cmd, type: autoware_control_msgs/msg/Control}}\n",
        encoding="utf-8",
    )
    assert main([*line, "--stack", str(tmp_path / "auto.yaml")]) == 2
    assert "expected --transport ros and a stack with domain: {source: N}" in capsys.readouterr().err


def test_without_the_package_it_says_what_to_install(
    typed: list[str], capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "carla", None)
    assert main(typed) == 2
    assert "pip install 'mt_nodes[carla]'" in capsys.readouterr().err
