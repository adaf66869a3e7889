# SPDX-License-Identifier: Apache-2.0
"""What is said where a transform is missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from mt_nodes.data.transforms import Transform, TransformTree, UnknownTransform, load_transforms


def tree(*edges: tuple[str, str]) -> TransformTree:
    return TransformTree([Transform(parent, child, np.eye(4)) for parent, child in edges])


def test_a_bag_that_knows_the_place_below_the_vehicle_gets_the_line_to_write(tmp_path: Path) -> None:
    known = tree(("map", "base_footprint"), ("base_footprint", "velodyne"))
    with pytest.raises(UnknownTransform) as refusal:
        known.lookup("base_link", "velodyne")
    line = str(refusal.value).partition("such as ")[2].partition(" if the two")[0]
    (tmp_path / "transforms.yaml").write_text(line)
    more = known.extended(load_transforms(tmp_path / "transforms.yaml").transforms)
    assert np.array_equal(more.lookup("base_link", "velodyne"), np.eye(4))
    assert yaml.safe_load(line)[0]["parent"] == "base_footprint"


@pytest.mark.parametrize(
    ("known", "target"),
    [
        (tree(("map", "velodyne")), "base_link"),
        (tree(("base_footprint", "base_link"), ("map", "velodyne")), "base_link"),
        (tree(("base_footprint", "other"), ("map", "velodyne")), "camera"),
    ],
)
def test_nobody_else_gets_it(known: TransformTree, target: str) -> None:
    with pytest.raises(UnknownTransform) as refusal:
        known.lookup(target, "velodyne")
    assert "such as" not in str(refusal.value)
