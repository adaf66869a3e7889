# SPDX-License-Identifier: Apache-2.0
"""Pages of which mutation works with which lens, rig and LiDAR: each is tried with each."""

from __future__ import annotations

from pathlib import Path

import camera_layouts
import lidar_layouts
import pytest
from lidar_layouts import APPLIES, outcome

ROOT = Path(__file__).resolve().parents[2]
#: What must work with every lens and every number of cameras.
EVERYWHERE = (
    *("brightness_changed", "dust", "fog", "hail", "image_motion_blurred", "image_pixelated", "jpeg_compressed"),
    *("lens_dirt", "lens_drifted", "lens_film", "lens_frost", "light_pulsed", "night", "object_added", "rain"),
    *("road_covered", "rolling_shutter", "sensor_noise", "smoke", "snow", "spray", "sun_glare", "vignetting_drifted"),
)
#: What no sensor must refuse for want of rings.
WITHOUT_RINGS = ("density_decreased", "vertical_resolution_reduced", "object_moved", "object_removed")


def test_every_mutation_has_its_turn_on_a_rig_or_another_lens() -> None:
    """And those that work everywhere work there."""
    layouts, found = list(camera_layouts.LAYOUTS), {}
    for turn, (name, mutation) in enumerate(sorted(camera_layouts.camera_mutations().items())):
        found[name] = outcome(mutation, list(camera_layouts.bundles_of(layouts[turn % len(layouts)])))
    assert not [(name, text) for name, text in found.items() if text.startswith("BROKEN")]
    assert {name: found[name] for name in EVERYWHERE} == dict.fromkeys(EVERYWHERE, APPLIES)
    assert len(found) > 55, "every mutation of pictures is tried"


@pytest.mark.long
def test_the_page_of_cameras_says_what_comes_out() -> None:
    """But for the numbers in reasons, which change with every object that is drawn otherwise."""
    page = (ROOT / "docs" / camera_layouts.PAGE).read_text(encoding="utf-8")
    written, made = (text.partition("## Why not") for text in (page, camera_layouts.page()))
    assert written[0] == made[0], "run scripts/camera_layouts.py --docs docs"
    refused = [
        [line.split("|")[1:3] for line in reasons.splitlines() if "|" in line] for *_, reasons in (written, made)
    ]
    assert refused[0] == refused[1], "run scripts/camera_layouts.py --docs docs"


@pytest.mark.long
def test_no_proof_is_broken_by_cameras_and_what_is_no_matter_of_the_scene_works_everywhere() -> None:
    found = camera_layouts.outcomes()
    assert not [(n, c, text) for n, row in found.items() for c, text in row.items() if text.startswith("BROKEN")]
    assert {name: set(found[name].values()) for name in EVERYWHERE} == {name: {APPLIES} for name in EVERYWHERE}
    assert len(found) > 55, "every mutation of pictures is tried"


def test_the_page_of_lidars_says_what_comes_out() -> None:
    page = (ROOT / "docs" / lidar_layouts.PAGE).read_text(encoding="utf-8")
    assert page == lidar_layouts.page(), "run scripts/lidar_layouts.py --docs docs"


def test_no_proof_is_broken_by_lidars_and_no_ring_is_missed() -> None:
    found = lidar_layouts.outcomes()
    assert not [text for row in found.values() for text in row.values() if text.startswith("BROKEN")]
    assert {name: set(found[name].values()) for name in WITHOUT_RINGS} == {name: {APPLIES} for name in WITHOUT_RINGS}
    for name in ("density_increased", "object_replaced"):
        assert [found[name][layout] for layout in ("Livox Mid-40", "Livox Avia")] == [APPLIES, APPLIES], name
    assert len(found) > 55, "every LiDAR mutation is tried"
