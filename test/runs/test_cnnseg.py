# SPDX-License-Identifier: Apache-2.0
"""The learned detector: what it finds, what is nothing to it, and that it is told apart from one with a fault."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from drives import Points, equal, generated, lost, recorded
from made_caffe import made_cnnseg

from mt_nodes.base import resources
from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build
from mt_nodes.cli.main import main
from mt_nodes.runs.models.detector_evaluation import detector_score
from mt_nodes.runs.models.labelled_clouds import LabelledCloud, labelled_cloud
from mt_nodes.stacks.callable_host import CallableHost
from mt_nodes.stacks.callables import with_faults
from mt_nodes.stacks.reference.cnnseg import CnnSeg, CnnSegTracker
from mt_nodes.stacks.stack import load_stack

#: Streets that the shipped weights were not trained on: those have the seed 1.
UNSEEN = 1_000_003


@pytest.fixture(scope="module")
def detector() -> CnnSeg:
    return CnnSeg()


@pytest.fixture(scope="module")
def unseen() -> list[LabelledCloud]:
    return [labelled_cloud(UNSEEN, index) for index in range(12)]


def test_the_weights_that_ship_are_small() -> None:
    assert 100_000 < resources.find("weights", "cnnseg_streets", (".onnx",)).stat().st_size <= 2_000_000


def test_most_of_what_stands_in_unseen_streets_is_found(unseen: list[LabelledCloud]) -> None:
    score = detector_score(CallableHost.make(load_stack("reference_cnnseg")), unseen)
    assert sum(row.objects for row in score.classes) >= 40
    assert score.recall >= 0.7 and score.precision >= 0.6, score
    people = score.classes[4]
    assert people.label == "pedestrian" and people.objects >= 5 and people.named >= 0.6 * people.objects


def test_a_detector_that_says_everything_everywhere_has_no_precision(unseen: list[LabelledCloud]) -> None:
    """The measure can fail: all over the place is not found, and nothing said is nothing found."""
    from mt_nodes.data.outputs import Detections

    class Said:
        stack = load_stack("reference_cnnseg")

        def __init__(self, *places: tuple[float, float]) -> None:
            self.places = places

        def __call__(self, message: object, transforms: object) -> object:
            at = [(x, y, 1.0) for x, y in self.places]
            found = Detections.make("base_link", 0, at, [(1.0, 1.0, 1.0)] * len(at), [0.0] * len(at))
            return type("Said", (), {"detections": found})()

    grid = [(float(x), float(y)) for x in range(4, 39, 2) for y in range(-9, 10, 2)]
    everything = detector_score(Said(*grid), unseen)  # type: ignore[arg-type]
    assert everything.recall > 0.8 and everything.precision < 0.2
    nothing = detector_score(Said(), unseen)  # type: ignore[arg-type]
    assert nothing.recall == 0.0 and nothing.said == 0 and np.isnan(nothing.precision)


def test_the_order_of_points_is_nothing_to_it(detector: CnnSeg) -> None:
    for number, points in enumerate(generated(2)):
        shuffled = np.random.default_rng(number).permutation(points)
        assert equal(detector(points), detector(shuffled))
        assert len(detector(points)) >= 5


def test_it_is_blind_to_what_is_no_number(detector: CnnSeg) -> None:
    points = generated(2)[0]
    lacking = np.concatenate([points, np.full((50, 4), np.nan, np.float32)])
    assert equal(detector(points), detector(lacking))
    assert len(detector(np.zeros((0, 4), np.float32))) == 0


def noise(rng: np.random.Generator, count: int) -> Points:
    """Points behind the vehicle, where nothing is reported."""
    x, y, z = rng.uniform(-40, -5, count), rng.uniform(-20, 20, count), rng.uniform(0.0, 3.0, count)
    return np.column_stack([x, y, z, rng.uniform(0, 255, count)]).astype(np.float32)


def test_only_the_network_lets_what_is_outside_its_region_matter() -> None:
    """It sees the whole cloud, as Apollo's does; told to see what is watched alone, it cannot change its mind."""
    rng = np.random.default_rng(0)
    alone = CnnSeg(use_full_cloud=False)
    points = generated(2)[0]
    near = noise(rng, 20_000)
    assert equal(alone(points), alone(np.concatenate([points, near])))


def test_a_smaller_region_reports_less_and_no_region_more(detector: CnnSeg) -> None:
    points = generated(2)[0]
    inside, everywhere = detector(points), CnnSeg(use_region=False)(points)
    assert len(everywhere) > len(inside)
    x, y = inside.center_m[:, 0], inside.center_m[:, 1]
    assert (x > -1).all() and (x < 41).all() and (np.abs(y) < 11).all()


def test_obstacles_of_a_real_drive_are_cars_and_people() -> None:
    clouds = recorded(9)
    detector = CnnSeg(intensity_full_scale=1.0)
    found = [detector(points) for points in clouds[:3]]
    assert all(len(one) >= 4 for one in found)
    assert all((one.label == "car").sum() >= 2 for one in found)


def test_tracks_are_those_of_the_learned_detector() -> None:
    tracker = CnnSegTracker(confirm_hits=2)
    points = generated(2)[0]
    assert len(tracker(points, stamp_ns=0)) == 0
    seen = tracker(points, stamp_ns=100_000_000)
    assert len(seen) >= 5 and set(seen.track_id) == {str(n + 1) for n in range(len(seen))} | set(seen.track_id)


def test_apollos_files_are_a_stack(tmp_path: Path) -> None:
    path = made_cnnseg(64).write(tmp_path)
    found = CnnSeg(weights=str(path), cells=64, objectness=0.4)(generated(2)[0])
    assert found is not None and np.isfinite(found.center_m).all()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"weights": "nowhere"}, "no weight 'nowhere'"),
        ({"weights": "gone.onnx"}, "no file gone.onnx"),
        ({"objectness": 2.0}, "objectness"),
        ({"cell": 640}, "unknown parameter 'cell'; did you mean 'cells'"),
    ],
)
def test_what_is_wrong_is_said_when_it_starts(given: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        build(CnnSeg, given, "params")


def test_a_fault_can_be_planted_and_loses_obstacles() -> None:
    stack = load_stack("reference_cnnseg")
    honest, faulty = (CallableHost.make(s).function for s in (stack, with_faults(stack, ("point_buffer_cap",))))
    points = generated(2)[0]
    many = np.concatenate([noise(np.random.default_rng(1), 60_000), points])
    assert len(lost(honest(points), honest(many))) < len(lost(faulty(points), faulty(many)))


def test_evaluations_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "evaluate-detector", "reference_cnnseg", "--clouds", "2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["clouds"] == 2 and 0.0 <= told["recall"] <= 1.0 and told["least_score"] == 0.7
    assert main(["models", "evaluate-detector", "reference_detector", "--clouds", "1"]) == 0
    assert "recall" in capsys.readouterr().out
    assert main(["models", "evaluate-detector", "reference_camera"]) == 2
    assert "from a point cloud alone" in capsys.readouterr().err
