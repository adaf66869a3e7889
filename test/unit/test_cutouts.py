# SPDX-License-Identifier: Apache-2.0
"""Objects cut out of labelled frames, and added elsewhere; the frames are made here."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest
import yaml

from mt_nodes.base.errors import InfrastructureError, NotApplicable, UsageError
from mt_nodes.base.seeds import generator
from mt_nodes.cli.main import main
from mt_nodes.data.detections import Detections
from mt_nodes.data.ground_truth import GroundTruth
from mt_nodes.data.images.codecs import decode
from mt_nodes.data.messages import Bundle
from mt_nodes.data.transforms import inverse
from mt_nodes.relations.mutations.base import Draw, Followup
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.objects.in_pictures import camera_from
from mt_nodes.relations.mutations.objects.object_added import ObjectAdded
from mt_nodes.relations.mutations.objects.post_added import SignAdded
from mt_nodes.runs.models.cutout_labels import LabelledObject, _lengths, read_labels
from mt_nodes.runs.models.cutout_making import cut_out
from mt_nodes.runs.models.labelled_boxes import objects_of_boxes
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.cutout_library import CutoutLibrary, HostCamera, refusal, write
from mt_nodes.world.scene.cutout_objects import Cutout
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.figures import figure_of
from mt_nodes.world.scene.object_rendering import render

Flags = npt.NDArray[np.bool_]
AHEAD: dict[str, Any] = {"where": "bearing", "bearing_rad": (-0.5, 0.5)}


@lru_cache
def street() -> Bundle:
    return next(iter(generate_drive(1, camera=CameraSensor(width=640, height=480))))


def derive(mutation: ObjectAdded, bundle: Bundle, seed: int = 4) -> tuple[Followup, Draw]:
    state = mutation.begin(generator(seed, "t", 0, None, 0), bundle)
    draw = mutation.draw(generator(seed, "t", 0, 0, 0), bundle, state)
    return mutation.apply(bundle, draw), draw


@lru_cache
def recorded(kind: str) -> tuple[Bundle, Flags, float, np.ndarray]:
    """A frame with an object, its mask, from where it is seen in degrees, and its pose in the camera's frame."""
    seed, away = {"adult": (6, (7.0, 9.0)), "car": (8, (9.0, 14.0))}[kind]
    followup, draw = derive(ObjectAdded(kind=kind, range_m=away, variant=2, **AHEAD), street(), seed)
    assert followup.effects.image_boxes[0].visible > 0.99, "it has to be in full view"
    view = View.of(street(), street().images[0])
    pose = camera_from(view, "base_link") @ next(v for k, v in draw.items() if k.endswith("|pose"))
    rendering = render(figure_of(kind, variant=2), pose, view.camera())
    assert rendering is not None
    mask = np.zeros(view.picture.size, bool)
    mask[rendering.window] = rendering.cover > 0.5
    x, y, _ = inverse(pose)[:3, 3]
    return followup.first, mask, float(np.degrees(np.arctan2(y, x))), pose


def labelled(kind: str) -> tuple[View, LabelledObject, np.ndarray]:
    bundle, mask, view_deg, pose = recorded(kind)
    return View.of(bundle, bundle.images[0]), LabelledObject(kind, mask, view_deg), pose


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("cutouts")
    for kind in ("adult", "car"):
        view, thing, _ = labelled(kind)
        write(cut_out(view, thing, f"{kind}_0001"), out, {"topic": view.image.topic})
    return out


@pytest.mark.parametrize("kind", ["adult", pytest.param("car", marks=pytest.mark.long)])
def test_a_cut_out_stands_where_and_as_the_object_did(kind: str) -> None:
    view, thing, pose = labelled(kind)
    cutout = cut_out(view, thing, "it")
    truth = figure_of(kind, variant=2)
    high = float(cutout.body.high_m[2])
    assert abs(high - truth.top_m) < 0.08 * truth.top_m
    assert abs(np.linalg.norm(cutout.eye_m) - np.linalg.norm(pose[:3, 3])) < 0.8
    assert abs(np.degrees(cutout.side_rad) - (thing.view_deg or 0.0)) % 360.0 < 1.0
    assert cutout.opacity(cutout.body.vertices_m, 2).min() > 0.2  # nowhere beside its mask


def test_it_is_added_to_cloud_and_picture_and_proved(folder: Path) -> None:
    for kind in ("adult", "car"):
        mutation = ObjectAdded(kind=kind, range_m=(9.0, 22.0), cutouts=str(folder), **AHEAD)
        followup, draw = derive(mutation, street(), 7)
        assert mutation.guarantee(street(), followup, draw) is None
        (box,) = followup.effects.image_boxes
        assert box.visible > 0.5 and followup.effects.numbers["points_on_object"] >= 10
        x0, y0, x1, y1 = (round(v) for v in box.box_px)
        before, after = (decode(b.images[0]).rgb8() for b in (street(), followup.first))
        assert (before[y0:y1, x0:x1] != after[y0:y1, x0:x1]).any(axis=2).mean() > 0.3


def test_a_cut_out_in_the_same_light_keeps_its_colours(folder: Path) -> None:
    bundle, mask, _, _ = recorded("car")
    own = decode(bundle.images[0]).rgb8()[mask].mean(axis=0)
    mutation = ObjectAdded(kind="car", range_m=(9.0, 16.0), cutouts=str(folder), clearance_m=0.2, **AHEAD)
    followup, draw = derive(mutation, street(), 7)
    view = View.of(street(), street().images[0])
    pose = camera_from(view, "base_link") @ next(v for k, v in draw.items() if k.endswith("|pose"))
    made = render(mutation.figure_in({"cutout": next(v for k, v in draw.items() if k.endswith("|cutout"))}), pose,
                  view.camera())  # fmt: skip
    assert made is not None
    shown = decode(followup.first.images[0]).rgb8()[made.window][made.cover > 0.9].mean(axis=0)
    assert np.abs(shown - own).max() < 25.0


def test_returns_beside_the_outline_break_the_guarantee(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation = ObjectAdded(kind="adult", range_m=(9.0, 16.0), cutouts=str(folder), **AHEAD)
    followup, draw = derive(mutation, street(), 7)
    monkeypatch.setattr(Cutout, "opacity", lambda self, xyz, reach: np.full(len(xyz), xyz[:, 2] > 0.5, np.float32))
    assert "within the outline of its cut-out" in str(mutation.guarantee(street(), followup, draw))


def test_a_picture_that_stays_breaks_the_guarantee(folder: Path) -> None:
    mutation = ObjectAdded(kind="adult", range_m=(9.0, 16.0), cutouts=str(folder), **AHEAD)
    followup, draw = derive(mutation, street(), 7)
    same = replace(followup.first, images=street().images)
    assert mutation.guarantee(street(), replace(followup, bundles=((0, same),)), draw) is not None


def test_only_the_recorded_side_is_shown_and_never_much_larger(folder: Path) -> None:
    library = CutoutLibrary.at(str(folder))
    (car,) = library.of("car")
    eye, focal = car.eye_m, float(car.focal_px[0])
    turn = np.array([[np.cos(0.4), -np.sin(0.4), 0.0], [np.sin(0.4), np.cos(0.4), 0.0], [0.0, 0.0, 1.0]])
    assert refusal(car, eye, focal) is None
    assert "aside of" in str(refusal(car, turn @ eye, focal))
    assert "times as large" in str(refusal(car, eye * (0.7, 0.7, 0.7), focal))
    behind = [(20.0, 0.0, car.side_rad)]  # the camera would see the other side
    with pytest.raises(NotApplicable, match="none of the 1 cut-outs of 'car' fits"):
        library.choose("car", behind, False, HostCamera((0.0, 0.0, 1.6), focal), None)
    chosen, places = library.choose("car", behind, True, HostCamera((0.0, 0.0, 1.6), focal), None)
    assert chosen is car and len(places) == 1


def test_what_cannot_be_added_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"has none of 'dog'; it has adult, car"):
        ObjectAdded(kind="dog", cutouts=str(folder))
    with pytest.raises(UsageError, match="has none of 'stop'"):
        SignAdded(cutouts=str(folder))
    with pytest.raises(UsageError, match="cannot move"):
        ObjectAdded(kind="adult", cutouts=str(folder), moves="across", speed_mps=1.0)
    with pytest.raises(UsageError, match="expected a folder of cut-outs"):
        ObjectAdded(kind="adult", cutouts=str(folder / "none"))


def test_changed_files_are_not_taken_for_the_drawn_ones(folder: Path, tmp_path: Path) -> None:
    digest = CutoutLibrary.at(str(folder)).of("adult")[0].digest
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    rgba = cv2.imread(str(tmp_path / "adult_0001.png"), cv2.IMREAD_UNCHANGED)
    cv2.imwrite(str(tmp_path / "adult_0001.png"), 255 - rgba)
    with pytest.raises(UsageError, match="files were changed"):
        CutoutLibrary.at(str(tmp_path)).named(digest)
    (tmp_path / "adult_0001_depth.png").unlink()
    (tmp_path / "adult_0001.json").touch()
    with pytest.raises(InfrastructureError, match="is no cut-out"):
        CutoutLibrary.at(str(tmp_path))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"whole": False}, "labelled as occluded"),
        ({"view_deg": None}, "heading unknown"),
        ({"mask": np.ones((480, 640), bool)}, "cut off by the picture's border"),
        ({"mask": np.pad(np.ones((20, 20), bool), ((230, 230), (310, 310)))}, "smaller than 40 pixels"),
    ],
)
def test_parts_are_not_cut_out(change: dict[str, Any], reason: str) -> None:
    view, thing, _ = labelled("car")
    with pytest.raises(NotApplicable, match=reason):
        cut_out(view, replace(thing, **change), "it")


def boxed(kind: str) -> Bundle:
    """The frame of an object with the data set's label of it, and one of an object that is not there."""
    bundle, _, _, pose = recorded(kind)
    to_ego = inverse(camera_from(View.of(bundle, bundle.images[0]), "base_link")) @ pose
    size = np.ptp(figure_of(kind, variant=2).mesh.vertices_m, axis=0)
    centers = [to_ego[:3, 3] + (0.0, 0.0, size[2] / 2.0), to_ego[:3, 3] * (3.0, 1.0, 1.0)]
    yaw = float(np.arctan2(to_ego[1, 0], to_ego[0, 0]))
    objects = Detections.make("base_link", None, centers, [size, size], [yaw, yaw], ["Car", "Car"])
    return replace(bundle, truth=GroundTruth(objects, frozenset({"Car"}), np.array([-1, -1])))


def test_boxes_of_a_data_set_become_masks_and_the_others_are_counted() -> None:
    _, mask, view_deg, _ = recorded("car")
    bundle, refused = boxed("car"), Counter[str]()
    (thing,) = objects_of_boxes(View.of(bundle, bundle.images[0]), refused)
    assert thing.kind == "car" and abs(thing.view_deg - view_deg) < 2.0
    assert (thing.mask & mask).sum() > 0.82 * (thing.mask | mask).sum()
    assert refused.total() == 1


def coco(mask: Flags, segmentation: Any, **more: Any) -> dict[str, Any]:
    row = {"id": 1, "image_id": 1, "category_id": 1, "segmentation": segmentation, **more}
    return {
        "images": [{"id": 1, "file_name": "front/frame_0000.png"}],
        "categories": [{"id": 1, "name": "Car"}],
        "annotations": [row],
    }


def run_lengths(mask: Flags) -> list[int]:
    """Run lengths by columns, the first of background, written down here once more."""
    lengths, last, count = [], False, 0
    for value in mask.T.ravel().tolist():
        if value != last:
            lengths.append(count)
            last, count = value, 0
        count += 1
    return [*lengths, count]


def compressed(lengths: list[int]) -> str:
    """The same as text, as ``rleToString`` of the development kit writes it."""
    text = ""
    for i, length in enumerate(lengths):
        x = length - lengths[i - 2] if i > 2 else length
        more = True
        while more:
            code, x = x & 0x1F, x >> 5
            more = x != -1 if code & 0x10 else x != 0
            text += chr((code | 0x20 if more else code) + 48)
    return text


def test_masks_of_every_format_are_the_same(tmp_path: Path) -> None:
    mask = recorded("car")[1]
    lengths = run_lengths(mask)
    assert _lengths(compressed(lengths)) == lengths
    (outline,), _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    size = {"size": list(mask.shape)}
    ways = {
        "polygon": [outline.ravel().tolist()],
        "lengths": {**size, "counts": lengths},
        "text": {**size, "counts": compressed(lengths)},
    }
    for name, way in ways.items():
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(coco(mask, way, attributes={"view_deg": 90})), encoding="utf-8")
        (thing,) = read_labels(path).of(0, 17, mask.shape)
        assert (thing.kind, thing.view_deg, thing.whole) == ("car", 90.0, True)
        assert (thing.mask != mask).sum() < 0.01 * mask.sum(), name
        assert read_labels(path).of(1, 17, mask.shape) == []
    for value in (26_001, 26 * 256 + 1):
        (pictures := tmp_path / str(value)).mkdir()
        cv2.imwrite(str(pictures / "town_000000_000000_gtFine_instanceIds.png"), (mask * value).astype(np.uint16))
        (thing,) = read_labels(pictures).of(0, 17, mask.shape)
        assert thing.kind == "car" and np.array_equal(thing.mask, mask)


def test_the_command_writes_cut_outs_and_says_what_it_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle, mask, view_deg, _ = recorded("car")
    data, labels = folder_of(bundle, tmp_path / "drive"), tmp_path / "coco.json"
    table = coco(mask, {"size": list(mask.shape), "counts": run_lengths(mask)}, attributes={"view_deg": view_deg})
    table["annotations"].append({**table["annotations"][0], "id": 2, "attributes": {}})
    labels.write_text(json.dumps(table), encoding="utf-8")
    given = ["models", "cutouts", f"folder:{data}", "--labels", str(labels), "--out", str(tmp_path / "out")]
    assert main([*given, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["made"] == {"car": 1} and result["frames"] == 1
    assert result["refused"] == {"heading unknown: the label has no view_deg": 1}
    assert CutoutLibrary.at(str(tmp_path / "out")).of("car")[0].kind == "car"
    assert main(given) == 2  # never over what is there
    assert "not empty" in capsys.readouterr().err


def folder_of(bundle: Bundle, home: Path) -> Path:
    """Write a bundle as a folder of clouds and pictures."""
    (home / "clouds").mkdir(parents=True)
    (home / "images" / "front").mkdir(parents=True)
    cloud, image, info = bundle.cloud(), bundle.images[0], bundle.camera_infos[0]
    np.save(home / "clouds" / "000000.npy", np.column_stack([cloud.points[n] for n in (*"xyz", "intensity")]))
    cv2.imwrite(str(home / "images" / "front" / "000000.png"), decode(image).rgb8()[..., ::-1])
    transforms = [
        {"parent": "base_link", "child": child, "translation_m": matrix[:3, 3].tolist(), "rpy_rad": rpy(matrix)}
        for child, frame in (("lidar", cloud.frame_id), ("front", image.frame_id))
        for matrix in [bundle.transforms.lookup("base_link", frame)]
    ]
    calibration = {"transforms": transforms, "cameras": {"front": {"k": np.asarray(info.k).reshape(3, 3).tolist()}}}
    (home / "calib.yaml").write_text(yaml.safe_dump(calibration), encoding="utf-8")
    return home


def rpy(matrix: np.ndarray) -> list[float]:
    """Roll, pitch and yaw of a rotation that is not straight up or down."""
    roll, yaw = np.arctan2(matrix[2, 1], matrix[2, 2]), np.arctan2(matrix[1, 0], matrix[0, 0])
    return [float(roll), float(np.arcsin(-np.clip(matrix[2, 0], -1.0, 1.0))), float(yaw)]
