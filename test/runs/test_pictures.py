# SPDX-License-Identifier: Apache-2.0
"""The arrays behind a picture: what is shown is kept, how much was added is kept whole."""

from __future__ import annotations

import base64
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from made_images import HEIGHT, WIDTH, street_in

from mt_nodes.base.jsonl import write_result
from mt_nodes.data.effects import Effects, ImageBox
from mt_nodes.data.lanes import OWN, Lanes, SignalStates, Strip
from mt_nodes.data.outputs import Detections, ImageBoxes, Output
from mt_nodes.data.outputs import Path as OutputPath
from mt_nodes.data.perception import FreeSpace, PredictedObjects, PredictedPath
from mt_nodes.data.verdict import Judgement, Outcome, Pair, Verdict
from mt_nodes.engine.journal import Journal
from mt_nodes.engine.judging import Answer, AnswerStatus
from mt_nodes.engine.pair_pictures import write_view
from mt_nodes.engine.pair_view import evidence_file, load_view
from mt_nodes.engine.summary.summary import summarise
from mt_nodes.relations.mutations.camera.image_warps import ImageMirrored
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.relations.relation import load_relation
from mt_nodes.report import birdseye, camera_view
from mt_nodes.report.html import write_report
from mt_nodes.world.scene.drive import generate_drive


def test_clouds_are_cut_to_the_window_and_added_points_are_all_there(tmp_path: Path) -> None:
    bundle = next(iter(generate_drive(1)))
    relation = load_relation("noise_outside_roi_1000")
    derived = MutationPipeline(relation.mutate, 0, relation.id).derive(bundle)
    said = Output(detections=Detections.make("base_link", bundle.stamp_ns, [[10.0, 0.0, 1.0]], [[4.0, 2.0, 1.5]]))
    heard = Answer(AnswerStatus.ANSWERED, said).output
    path = tmp_path / "view.npz"
    detail = {"lost_at": [[10.0, 0.0, "car"]], "gained_at": []}
    followup = derived.followup.first
    write_view(
        path, bundle, followup, outputs=(heard, heard), effects=derived.effects, check=relation.check, detail=detail
    )
    view = load_view(path)
    x0, x1, y0, y1 = view.window
    for cloud in (view.source_xyz, view.followup_xyz):
        assert 0 < len(cloud) < len(bundle.cloud())
        assert (cloud[:, 0] >= x0).all() and (cloud[:, 0] <= x1).all()
        assert (cloud[:, 1] >= y0).all() and (cloud[:, 1] <= y1).all()
    assert len(view.added_xyz) == 1000
    assert view.source_boxes.shape == (1, 7) and view.lost_at.tolist() == [[10.0, 0.0]]


@pytest.mark.parametrize("kind", ["bgr8", "jpeg"])
def test_a_stack_of_cameras_alone_is_shown_by_its_pictures(kind: str, tmp_path: Path) -> None:
    whole = street_in(kind)
    source = replace(whole, clouds=(), extra_clouds=whole.clouds)
    darker = replace(street_in("bgr8").images[0], pixels=np.asarray(street_in("bgr8").images[0].pixels) // 2)
    followup = replace(source, images=(darker,))
    seen = Output(boxes=ImageBoxes.make("camera", 0, [[10, 20, 30, 60]], label=["pedestrian"]))
    path, detail = tmp_path / "view.npz", {"lost_px": [[10.0, 20.0, 30.0, 60.0, "pedestrian"]], "gained_px": []}
    nothing = Output(boxes=ImageBoxes.none("camera", 0))
    write_view(path, source, followup, outputs=(seen, nothing), effects=Effects(), check=None, detail=detail)
    view = load_view(path)
    assert view.source_px.tolist() == [[10, 20, 30, 60]] and view.lost_px.tolist() == [[10, 20, 30, 60]]
    assert not len(view.followup_px) and not len(view.gained_px)
    pictures = [cv2.imdecode(image, cv2.IMREAD_COLOR) for image in (view.source_image, view.followup_image)]
    assert [picture.shape for picture in pictures] == [(HEIGHT, WIDTH, 3)] * 2
    assert pictures[1].mean() < 0.6 * pictures[0].mean()
    drawn = [base64.b64decode(uri.partition(",")[2]) for uri in camera_view.draw(view)]
    marks = ["#d55e00" in ET.tostring(ET.fromstring(svg)).decode().lower() for svg in drawn]
    assert marks == [False, True], "what is lost is marked where the follow-up was to show it"
    assert camera_view.draw(view) == camera_view.draw(load_view(path))


def test_a_stack_of_both_sensors_is_shown_by_both_and_what_was_added_is_boxed(tmp_path: Path) -> None:
    source = street_in("bgr8")
    effects = Effects(image_boxes=(ImageBox(source.images[0].topic, (5.0, 6.0, 9.0, 30.0), 1.0, "pedestrian"),))
    pair = Pair(0, 0, "seen")
    path = evidence_file(tmp_path, pair)
    path.parent.mkdir()
    write_view(path, source, source, outputs=(Output(), Output()), effects=effects, check=None, detail={})
    view = load_view(path)
    assert len(view.source_xyz) and view.added_px.tolist() == [[5, 6, 9, 30]]
    with Journal(tmp_path / "result.jsonl") as journal:
        journal.verdict(Verdict(pair, 0, Judgement(Outcome.VIOLATED, 1, 0, -1, "boxes", "lost", 1, 0)))
    write_result(tmp_path / "summary.json", summarise([], []))
    assert write_report(tmp_path).read_text("utf-8").count("<img src") == 4


def test_paths_are_drawn_on_the_road_and_beside_the_expected_one(tmp_path: Path) -> None:
    whole = street_in("bgr8")
    source = replace(whole, clouds=(), extra_clouds=whole.clouds)
    path, view_file = OutputPath.make("base_link", 0, [[0.0, 1.0, 0.0], [20.0, 1.0, 0.0]]), tmp_path / "view.npz"
    wrong = OutputPath.make("base_link", 0, [[0.0, -2.0, 0.0], [20.0, -2.0, 0.0]])
    derived = MutationPipeline([ImageMirrored()], 0, "mirror").derive(source)
    both = Output(path=path), Output(path=wrong)
    write_view(view_file, source, derived.followup.first, outputs=both, effects=derived.effects, check=None, detail={})
    view = load_view(view_file)
    info = source.camera_infos[0]
    for drawn, left_m in ((view.source_lines_px, 1.0), (view.followup_lines_px, -2.0), (view.expected_lines_px, -1.0)):
        x, y, z = source.transforms.lookup("camera", "base_link") @ [12.0, left_m, 0.0, 1.0] @ np.eye(4)[:, :3]
        # The generated camera looks straight ahead from the middle: its mirror image has the same intrinsics.
        at = np.array([info.k[0, 0] * x / z + info.k[0, 2], info.k[1, 1] * y / z + info.k[1, 2]])
        assert np.nanmin(np.hypot(*(drawn - at).T)) < 1.0, left_m
    untold = replace(source, camera_infos=())
    write_view(view_file, untold, untold, outputs=both, effects=Effects(), check=None, detail={})
    assert len(load_view(view_file).source_image) and not len(load_view(view_file).source_lines_px)
    assert "#e69f00" in base64.b64decode(camera_view.draw(view)[1].partition(",")[2]).decode().lower()


def test_pictures_that_cannot_be_decoded_leave_the_view_without_them(tmp_path: Path) -> None:
    bundle = street_in("bgr8")
    depth = replace(bundle.images[0], encoding="32FC1", pixels=np.ones((20, 20), np.float32))
    odd = replace(bundle, clouds=(), images=(depth,))
    path = tmp_path / "view.npz"
    write_view(path, odd, odd, outputs=(Output(), Output()), effects=Effects(), check=None, detail={})
    assert not len(load_view(path).source_image)


def test_lanes_predicted_paths_and_what_is_occupied_are_drawn_on_the_ground(tmp_path: Path) -> None:
    source, view_file = next(iter(generate_drive(1))), tmp_path / "view.npz"
    walker = Detections.make("base_link", 0, [[10.0, 0.0, 1.0]], [[0.6, 0.6, 1.7]])
    likely, unlikely = np.array([[10.0, 0.0], [12.0, 1.0]]), np.array([[10.0, 0.0], [10.0, -3.0]])
    ways = PredictedPath(0.2, np.array([0.0, 1.0]), unlikely), PredictedPath(0.8, np.array([0.0, 1.0]), likely)
    cells = np.zeros((5, 5), dtype=np.int8)
    cells[1:4, 1:4] = 100
    cells[2, 2] = 0
    said = Output(
        lanes=Lanes.make("base_link", 0, [Strip("left", OWN, 0.0, np.array([[2.0, 2.0], [20.0, 2.0]]))]),
        predictions=PredictedObjects("base_link", 0, walker, (ways,)),
        free_space=FreeSpace("base_link", 0, 1.0, (10.0, 0.0, 0.0), cells),
    )
    # What is in a frame that does not lead to the picture's is left out of it, and ends no run.
    lost = Output(detections=replace(walker, frame_id="nowhere"), lanes=Lanes.make("nowhere", 0, said.lanes.strips))  # type: ignore[union-attr]
    write_view(view_file, source, source, outputs=(said, lost), effects=Effects(), check=None, detail={})
    view = load_view(view_file)
    assert not len(view.followup_boxes)
    down = source.transforms.lookup(source.cloud().frame_id, "base_link")[:2, 3]
    lane, gap, path = np.split(view.source_lines - down, [2, 3])
    assert lane.tolist() == [[2.0, 2.0], [20.0, 2.0]] and np.isnan(gap).all()
    assert path.tolist() == likely.tolist(), "of several paths the likeliest is drawn"
    rings = view.source_occupied - down
    between = int(np.flatnonzero(np.isnan(rings[:, 0]))[0])
    sizes = [np.ptp(ring, axis=0).round(2).tolist() for ring in (rings[:between], rings[between + 1 :])]
    assert sizes == [[3.0, 3.0], [1.0, 1.0]], "nine cells but the one in the middle: an outline and a hole"
    assert not len(view.followup_lines) and not len(view.followup_occupied)
    drawn = [base64.b64decode(uri.partition(",")[2]).decode() for uri in birdseye.draw(view)]
    assert [('class="way"' in svg, 'class="cells"' in svg) for svg in drawn] == [(True, True), (False, False)]


def test_traffic_lights_are_drawn_with_their_states(tmp_path: Path) -> None:
    whole, view_file = street_in("bgr8"), tmp_path / "view.npz"
    source = replace(whole, clouds=(), extra_clouds=whole.clouds)
    lights = SignalStates.make("camera", 0, [""], ["red<"], None, [0.9], [[40, 30, 44, 34]])
    people = ImageBoxes.make("camera", 0, [[10, 20, 30, 60]], label=["pedestrian"])
    # What is said of the ground, in no frame that leads there, leaves the picture without it.
    lost = Detections.make("nowhere", 0, [[10.0, 0.0, 1.0]], [[4.0, 2.0, 1.5]])
    said = Output(boxes=people, signals=lights, detections=lost)
    write_view(view_file, source, source, outputs=(said, Output()), effects=Effects(), check=None, detail={})
    view = load_view(view_file)
    assert view.source_px.tolist() == [[10, 20, 30, 60], [40, 30, 44, 34]]
    assert view.source_px_labels.tolist() == ["pedestrian", "red<"] and not len(view.source_boxes)
    before, after = (base64.b64decode(uri.partition(",")[2]).decode() for uri in camera_view.draw(view))
    assert ">pedestrian</text>" in before and ">red&lt;</text>" in before and "</text>" not in after
