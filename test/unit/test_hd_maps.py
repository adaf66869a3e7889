# SPDX-License-Identifier: Apache-2.0
"""Regions of high-definition maps, on files written here whose lanes are known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import shapely
from made_bundles import made_bundle

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import plain
from mt_nodes.data.messages import Bundle
from mt_nodes.data.regions import Region, RegionUnavailable, load_region
from mt_nodes.data.transforms import Transform, move, pose_matrix
from mt_nodes.relations.mutations.lidar.noise_outside_roi import NoiseOutsideRoi

pytest.importorskip("pyxodr", reason="needs the extra 'maps'")
lanelet2 = pytest.importorskip("lanelet2", reason="needs the extra 'maps'")

RADIUS_M, WIDTH_M, STRAIGHT_M = 30.0, 3.5, 50.0


def lane(number: int, kind: str, width_m: float) -> str:
    width = f'<width sOffset="0" a="{width_m}" b="0" c="0" d="0"/>'
    return f'<lane id="{number}" type="{kind}" level="false">{width}</lane>'


def geometry(station_m: float, x_m: float, length_m: float, kind: str) -> str:
    return f'<geometry s="{station_m}" x="{x_m}" y="0" hdg="0" length="{length_m}">{kind}</geometry>'


def open_drive(folder: Path) -> Path:
    """A road of 50 m along x and a quarter circle to the left: a lane on each side, a pavement on the right."""
    turn_m, bend = RADIUS_M * np.pi / 2.0, f'<arc curvature="{1 / RADIUS_M}"/>'
    plan = geometry(0.0, 0.0, STRAIGHT_M, "<line/>") + geometry(STRAIGHT_M, STRAIGHT_M, turn_m, bend)
    right = lane(-1, "driving", WIDTH_M) + lane(-2, "sidewalk", 2.0)
    sides = f"<left>{lane(1, 'driving', WIDTH_M)}</left><center>{lane(0, 'none', 0)}</center><right>{right}</right>"
    lanes = f'<lanes><laneSection s="0">{sides}</laneSection></lanes>'
    head = f'<road name="" length="{STRAIGHT_M + turn_m}" id="7" junction="-1">'
    road_xml = f"{head}<planView>{plan}</planView>{lanes}</road>"
    path = folder / "bend.xodr"
    path.write_text(f"<OpenDRIVE><header revMajor='1' revMinor='4'/>{road_xml}</OpenDRIVE>")
    return path


def lanelets(folder: Path, *, local: bool = True) -> Path:
    """Two lanelets, 3.5 m wide and 40 m long, one after the other along x, and a walkway beside the first."""
    places = {(x, y): 1 + i for i, (x, y) in enumerate([(x, y) for x in (0, 40, 80) for y in (0.0, 3.5, 5.5)])}
    nodes = "".join(
        f'<node id="{n}" lat="49.0" lon="8.4" version="1">'
        + (f'<tag k="local_x" v="{x}"/><tag k="local_y" v="{y}"/>' if local else "")
        + "</node>"
        for (x, y), n in places.items()
    )
    lanes = [(0, 0.0, 3.5, "road"), (40, 0.0, 3.5, "road"), (0, 3.5, 5.5, "walkway")]
    ways, relations = "", ""
    for number, (x, low, high, kind) in enumerate(lanes):
        members = ""
        for way, role, y in ((100 + 2 * number, "left", high), (101 + 2 * number, "right", low)):
            ends = f'<nd ref="{places[x, y]}"/><nd ref="{places[x + 40, y]}"/>'
            ways += f'<way id="{way}" version="1">{ends}<tag k="type" v="virtual"/></way>'
            members += f'<member type="way" ref="{way}" role="{role}"/>'
        tags = f'<tag k="type" v="lanelet"/><tag k="subtype" v="{kind}"/>'
        relations += f'<relation id="{1000 + number}" version="1">{members}{tags}</relation>'
    path = folder / "street.osm"
    path.write_text(f'<?xml version="1.0"?><osm version="0.6">{nodes}{ways}{relations}</osm>')
    return path


def at(x_m: float, y_m: float, yaw_rad: float = 0.0, bundle: Bundle | None = None) -> Bundle:
    """A bundle whose ego is at a place of the map."""
    turn = [0.0, 0.0, float(np.sin(yaw_rad / 2)), float(np.cos(yaw_rad / 2))]
    given = made_bundle() if bundle is None else bundle
    pose = Transform("map", "base_link", pose_matrix([x_m, y_m, 120.0], turn))
    return replace(given, transforms=given.transforms.extended([pose]))


def road(path: Path, **keys: object) -> Region:
    return load_region({"road": {"map": str(path), **keys}})


def test_lanes_of_open_drive_cover_what_the_file_describes(tmp_path: Path) -> None:
    region = road(open_drive(tmp_path), reach_m=500.0).resolve(at(0.0, 0.0))
    straight = shapely.box(0.0, -WIDTH_M, STRAIGHT_M, WIDTH_M)
    outer, inner = (
        shapely.Point(STRAIGHT_M, RADIUS_M).buffer(RADIUS_M + d, quad_segs=512) for d in (WIDTH_M, -WIDTH_M)
    )
    bend = (outer - inner) & shapely.box(STRAIGHT_M, -50.0, 200.0, RADIUS_M)
    wrong_m2 = region.geometry.symmetric_difference(straight | bend).area
    assert region.frame_id == "base_link" and wrong_m2 < 1.5  # of 680 m²: overlap, chords, and a rounded step
    assert region.geometry.geom_type == "Polygon" and not region.geometry.interiors


def test_the_region_turns_with_the_ego(tmp_path: Path) -> None:
    region = road(lanelets(tmp_path)).resolve(at(10.0, 1.0, np.pi / 2))
    assert np.allclose(region.bounds, (-1.0, -60.0, 2.5, 10.0), atol=0.01)  # left and right became ahead and behind
    points = np.array([[0.0, -60.5, 0.0], [0.0, -59.0, 0.0], [2.6, 0.0, 9.0], [2.4, 0.0, 9.0]])
    assert region.contains(points).tolist() == [False, True, False, True]


def test_kinds_route_reach_and_width_choose_lanes(tmp_path: Path) -> None:
    path, here = lanelets(tmp_path), at(0.0, 0.0)
    assert np.allclose(road(path, along=[1001], reach_m=100).resolve(here).bounds, (40, 0, 80, 3.5), atol=0.01)
    assert np.allclose(road(path, kinds=["walkway"]).resolve(here).bounds, (0, 3.5, 40, 5.5), atol=0.01)
    assert road(path, reach_m=20.0).resolve(here).bounds[2] == pytest.approx(20.0, abs=0.01)
    assert np.allclose(road(path, extend_m=1.5, reach_m=30).resolve(here).bounds[1::2], (-1.5, 5.0), atol=0.01)
    whole = road(open_drive(tmp_path), along=["7"], kinds=["driving", "sidewalk"]).resolve(here)
    assert whole.contains(np.array([[10.0, -5.0, 0.0], [10.0, -6.0, 0.0]])).tolist() == [True, False]


def test_a_map_in_degrees_has_metres_from_its_origin(tmp_path: Path) -> None:
    metres = lanelet2.projection.UtmProjector(lanelet2.io.Origin(49.0, 8.4))
    path = tmp_path / "degrees.osm"
    text = lanelets(tmp_path).read_text()
    for x in (0, 40, 80):
        for y in (0.0, 3.5, 5.5):
            place = metres.reverse(lanelet2.core.BasicPoint3d(x, y, 0))
            tags = f'lat="49.0" lon="8.4" version="1"><tag k="local_x" v="{x}"/><tag k="local_y" v="{y}"/>'
            text = text.replace(tags, f'lat="{place.lat:.12f}" lon="{place.lon:.12f}" version="1">')
    path.write_text(text)
    region = road(path, origin_deg=[49.0, 8.4]).resolve(at(0.0, 0.0))
    assert np.allclose(region.bounds, (0, 0, 60, 3.5), atol=0.02)
    with pytest.raises(UsageError, match=r"no local_x and local_y in metres; give the origin"):
        road(path)


def test_without_a_pose_or_a_lane_there_is_no_region(tmp_path: Path) -> None:
    region = road(lanelets(tmp_path))
    with pytest.raises(RegionUnavailable, match="needs the ego's pose on the map"):
        region.resolve(made_bundle())
    with pytest.raises(RegionUnavailable, match=r"street.osm has no lane within 60 m of base_link at x 500.0, y 0.0 m"):
        region.resolve(at(500.0, 0.0))


def test_what_is_written_down_loads_again_unless_the_map_has_changed(tmp_path: Path) -> None:
    path = lanelets(tmp_path)
    file = tmp_path / "mine.yaml"
    file.write_text("road: {map: street.osm, along: [1000]}\n", encoding="utf-8")  # relative to the file
    region = load_region(str(file))
    record = json.loads(json.dumps(plain(region)))
    assert load_region(record) == region and region.frame_id == "map"
    path.write_text(path.read_text().replace('v="5.5"', 'v="6.5"'))
    with pytest.raises(UsageError, match=r"street.osm has changed: its SHA-256 was"):
        load_region(record)


@pytest.mark.parametrize(
    ("road_keys", "message"),
    [
        ({"map": "street.osm", "along": [7]}, r"along: got lane 7, which is not among its 2 lanes"),
        ({"map": "street.osm", "kinds": ["driving"]}, r"no lane of the kinds driving; its kinds: road, walkway"),
        ({"map": "street.osm", "reach_m": 0}, r"reach_m: got 0, expected metres above 0"),
        ({"map": "street.osm", "origin_deg": [100, 8]}, r"expected \[latitude, longitude\] in degrees"),
        ({"map": "street.osm", "roads": 1}, "roads"),
        ({"map": "other.osm"}, r"map: cannot read .*other.osm \(No such file or directory\)"),
        ({"map": "broken.xodr"}, "pyxodr cannot read this OpenDRIVE file"),
        ({"map": "empty.xodr"}, "without a lane"),
        ({"map": "broken.osm"}, "lanelet2 cannot read this map"),
        ({"map": "mine.yaml"}, r"neither Lanelet2 \(.osm\) nor OpenDRIVE \(.xodr\)"),
        ({}, r"expected a mapping with map: FILE.osm or FILE.xodr"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, road_keys: dict[str, object], message: str) -> None:
    lanelets(tmp_path)
    file = tmp_path / "mine.yaml"
    (tmp_path / "broken.xodr").write_text("<OpenDRIVE><road")
    (tmp_path / "broken.osm").write_text("<osm><node")
    (tmp_path / "empty.xodr").write_text("<OpenDRIVE><header/></OpenDRIVE>")
    file.write_text(json.dumps({"road": road_keys}), encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        load_region(str(file))


def test_a_tight_arc_leaves_no_plot_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = open_drive(tmp_path)
    path.write_text(path.read_text().replace(f'curvature="{1 / RADIUS_M}"', 'curvature="9"'))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="with curvature 9 per metre"):
        road(path)
    assert not list(tmp_path.glob("*.pdf"))


def test_noise_stays_off_the_lanes_of_the_map(tmp_path: Path) -> None:
    bundle = at(20.0, 1.75, 0.3)
    mutation = NoiseOutsideRoi(points=300, region=road(lanelets(tmp_path)), margin_m=1.0)
    draw = mutation.draw(np.random.default_rng(1), bundle, None)
    followup = mutation.apply(bundle, draw)
    cloud = followup.first.clouds[0]
    added = np.asarray(followup.effects.added_points[cloud.topic])[:, :3]
    places = move(bundle.transforms.lookup("map", cloud.frame_id), added)
    near = np.abs(places[:, 0] - 20.0) < 50.0
    lanes = shapely.box(0, 0, 80, 3.5)
    assert len(added) == 300 and near.sum() > 100
    assert shapely.distance(lanes, shapely.points(places[near, :2])).min() >= 0.99
    assert mutation.guarantee(bundle, followup, draw) is None
