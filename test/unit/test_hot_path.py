# SPDX-License-Identifier: Apache-2.0
"""What was made faster says what the plain way says: bytes, points, places, and in which order things happen."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from made_bundles import LAYOUTS, made_bundle, made_cloud
from shapely import box

from mt_nodes.base.environment import MALLOC_SETTINGS
from mt_nodes.data.association import covered
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.outgoing import unwritten_pixels
from mt_nodes.data.cdr.point_fields import fields_of, pixel_layout
from mt_nodes.data.messages import Bundle, Cloud, Image
from mt_nodes.data.outputs import Detections
from mt_nodes.data.transforms import Transform, TransformTree, move, pose_matrix
from mt_nodes.relations.mutations.camera.image_tones import BrightnessChanged
from mt_nodes.relations.mutations.lidar.added_points import with_added
from mt_nodes.relations.mutations.lidar.each_cloud import without
from mt_nodes.relations.mutations.lidar.noise_outside_roi import NoiseOutsideRoi
from mt_nodes.relations.mutations.lidar.placement import empty_returns, write_points
from mt_nodes.relations.mutations.lidar.rays import returns
from mt_nodes.relations.mutations.lidar.scatter_ahead import ScatterAhead
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.stacks.callable_host import as_points
from mt_nodes.world.camera.light import byte_translation


def plainly_encoded(cloud: Cloud) -> bytes:
    types, step = codec.typestore().types, cloud.points.dtype.itemsize
    fields, big_endian = fields_of(cloud.points.dtype, cloud.topic)
    message = types[codec.POINT_CLOUD](
        header=codec.header_of(cloud.frame_id, cloud.stamp_ns),
        height=cloud.height,
        width=cloud.width,
        fields=[types["sensor_msgs/msg/PointField"](**vars(f)) for f in fields],
        is_bigendian=big_endian,
        point_step=step,
        row_step=cloud.width * step,
        data=np.frombuffer(cloud.points.tobytes(), np.uint8),
        is_dense=cloud.is_dense,
    )
    return codec.encode(codec.POINT_CLOUD, message)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("count", "height", "holes"), [(0, 1, 0.0), (1, 1, 0.0), (37, 1, 0.0), (40, 8, 0.3)])
def test_a_cloud_is_encoded_as_ever(layout: str, count: int, height: int, holes: float) -> None:
    cloud = made_cloud(layout, count, height=height, holes=holes)
    assert codec.encode_cloud(cloud) == plainly_encoded(cloud)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("quaternion", [(0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.6, 0.8)])
def test_points_for_callables_are_the_same(layout: str, quaternion: tuple[float, ...]) -> None:
    cloud = made_cloud(layout, 500)
    matrix = pose_matrix([0.3, -0.2, 1.73], quaternion)
    tree = TransformTree([Transform("base_link", "velodyne", matrix)])
    expected = cloud.xyz.astype(np.float32)
    turned = quaternion[2] != 0.0
    expected = move(matrix, expected).astype(np.float32) if turned else expected + matrix[:3, 3].astype(np.float32)
    points = as_points(cloud, "base_link", tree)
    assert points.dtype == np.float32 and points[:, :3].tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("count", [0, 1, 2, 300])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_inserted_points_copy_the_point_before(layout: str, count: int) -> None:
    """Row by row, as the docstring of the mutation tells it."""
    bundle, mutation = made_bundle(made_cloud(layout, 60)), NoiseOutsideRoi(points=count)
    draw = mutation.draw(np.random.default_rng(5), bundle, None)
    new, old = mutation.apply(bundle, draw).first.cloud(), bundle.cloud()
    rows = draw[f"{old.topic}|rows"].tolist()
    order: list[int] = []
    for row in range(len(old) + 1):
        order += [max(row - 1, 0)] * rows.count(row) + ([row] if row < len(old) else [])
    kept = [name for name in old.fields if name not in ("x", "y", "z", "range", *old.echo_names)]
    for name in kept:
        assert new.points[name].tobytes() == old.points[name][order].tobytes(), name
    assert mutation.guarantee(bundle, mutation.apply(bundle, draw), draw) is None


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_cloud_is_written_into_its_message(layout: str) -> None:
    """Once: whoever has the message keeps it, whatever is encoded later."""
    cloud = made_cloud(layout, 60)
    at = np.array([0, 7, 60])
    new = with_added(cloud, at, np.ones((3, 3)), None)
    first = codec.encode_cloud(new)
    again = codec.encode_cloud(replace(new, stamp_ns=new.stamp_ns + 1, is_dense=not new.is_dense))
    part = codec.encode_cloud(replace(new, points=new.points[:-1]))
    assert first == plainly_encoded(new) and again != first
    for message, data in ((first, new.points), (again, new.points), (part, new.points[:-1])):
        head = len(message) - 1 - data.nbytes
        assert message[head:-1] == data.tobytes()
        shared = np.shares_memory(np.frombuffer(message, np.uint8), new.points)
        assert shared == (message is first), "the first one alone was written in place"


@pytest.mark.parametrize("frame_id", ["", "a", "abc", "abcd", "sensör"])
def test_the_room_for_a_head_is_right_for_any_name(frame_id: str) -> None:
    cloud = replace(made_cloud(count=60), frame_id=frame_id)
    assert is_in_place(codec.encode_cloud(new := without(cloud, np.array([1]))), new.points)
    image = Image("/camera", 5, frame_id, np.zeros((20, 20), np.uint8), "mono8")
    image = replace(image, pixels=unwritten_pixels(image))
    assert is_in_place(codec.encode_image(image), image.pixels)


def is_in_place(message: bytes, data: np.ndarray[Any, Any]) -> bool:
    return np.shares_memory(np.frombuffer(message, np.uint8), data)


@pytest.mark.parametrize("encoding", ["bgr8", "rgb8", "mono8", "bgra8", "mono16"])
def test_a_picture_is_written_into_its_message(encoding: str) -> None:
    """Where bytes are mapped by a table; the same bytes as where they are copied."""
    sample, channels = pixel_layout(encoding, "")
    shape = (40, 60) if channels == 1 else (40, 60, channels)
    pixels = np.random.default_rng(1).integers(0, np.iinfo(sample).max, shape).astype(sample)
    image = Image("/camera", 5, "camera", pixels, encoding)
    [(_, sent)] = BrightnessChanged(offset=0.1).apply(Bundle(0, 0, 5, images=(image,)), {}).bundles
    [new] = sent.images
    plain = replace(new, pixels=new.pixels.copy())
    first, again = codec.encode_image(new), codec.encode_image(replace(new, stamp_ns=9))
    assert first == codec.encode_image(plain) and again == codec.encode_image(replace(plain, stamp_ns=9))
    in_place = np.shares_memory(np.frombuffer(first, np.uint8), new.pixels)
    assert in_place == (encoding in ("bgr8", "rgb8", "mono8") and byte_translation() is not None)


def test_part_of_a_cloud_does_not_take_its_message() -> None:
    new = with_added(made_cloud(count=60), np.array([3]), np.ones((1, 3)), None)
    turned = replace(new, points=new.points[::-1])
    assert codec.encode_cloud(turned) == plainly_encoded(turned)
    assert codec.encode_cloud(new) == plainly_encoded(new)


@given(
    size=st.integers(1, 3000), count=st.integers(1, 1500), seed=st.integers(0, 99), layout=st.sampled_from([*LAYOUTS])
)
def test_points_that_were_drawn_ahead_are_the_same(size: int, count: int, seed: int, layout: str) -> None:
    """Of another cloud than that which they were drawn for, with other heights and as many points as it likes."""
    mutation, last = NoiseOutsideRoi(points=count), made_bundle(made_cloud(layout, 40))
    bundle = made_bundle(made_cloud(layout, size))
    plain, ahead = (MutationPipeline([mutation], seed, "r") for _ in range(2))
    ahead.foresee(bundle.episode, bundle.index, last)
    [foreseen] = ahead._foreseen.values()
    assert foreseen.ahead is not None
    [expected], [found] = (p.derive(bundle).draws for p in (plain, ahead))
    assert foreseen.ahead is None, "it was used, or found not to fit"
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        assert value.tobytes() == found[name].tobytes() and value.dtype == found[name].dtype, name


def test_rows_that_numpy_would_draw_again_are_drawn_by_numpy() -> None:
    """Of words at the brink of Lemire's rule, and of one place alone, which takes no word."""
    ahead = ScatterAhead(np.random.default_rng(0), None, None, np.array([0, 5, 2**31], np.uint64), *[np.empty(0)] * 3)  # type: ignore[arg-type]
    assert ahead.rows(3) is None and ahead.rows(1) is None
    assert ahead.rows(2**16).tolist() == [0, 0, 2**15]  # type: ignore[union-attr]


@given(size=st.integers(1, 80), rows=st.lists(st.integers(0, 80), max_size=20), layout=st.sampled_from(list(LAYOUTS)))
def test_points_are_inserted_as_numpy_inserts_them(size: int, rows: list[int], layout: str) -> None:
    """Few and many, before the first, behind the last, several in one place: in stretches or point by point."""
    cloud, at = made_cloud(layout, size), np.sort(np.minimum(np.array(rows, np.int64), size))
    xyz = np.random.default_rng(1).uniform(-9, 9, (len(at), 3))
    added = cloud.raw.take(np.maximum(at - 1, 0))
    write_points(added.view(cloud.points.dtype), slice(None), xyz, None, cloud)
    assert with_added(cloud, at, xyz, None).points.tobytes() == np.insert(cloud.raw, at, added).tobytes()


SHAPES = {
    "box": [[0, -10], [40, -10], [40, 10], [0, 10]],
    "bent": [[0, -5], [30, -5], [30, 20], [20, 20], [20, 5], [0, 5]],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_proof_measures_as_shapely_does(shape: str) -> None:
    region = {"name": shape, "frame_id": "base_link", "polygon_m": SHAPES[shape]}
    mutation, bundle = NoiseOutsideRoi(region=region), made_bundle()
    xyz = np.random.default_rng(1).uniform(-60, 60, (3000, 3))
    moved = move(bundle.transforms.lookup("base_link", "velodyne"), xyz)
    expected = shapely.distance(shapely.Polygon(SHAPES[shape]), shapely.points(moved[:, :2]))
    assert (expected == 0).any() and (expected > 0).any()
    np.testing.assert_allclose(mutation._away_m(bundle, bundle.cloud(), xyz), expected, atol=1e-9)


def test_nothing_is_covered_of_nobody() -> None:
    some = Detections.make("base_link", 0, [[1, 1, 0]], [[2, 2, 2]])
    assert covered(Detections.none("base_link", 0), some, same_class=False).shape == (0,)
    assert covered(some, Detections.none("base_link", 0), same_class=False).tolist() == [0.0]
    assert box(0, 0, 1, 1).area == 1.0 and covered(some, some, same_class=True).tolist() == [1.0]


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="needs glibc")
def test_freed_memory_stays_in_the_process() -> None:
    """A large block that was freed is not given back: no fresh pages, so no page faults, the next time."""
    code = """
import resource, numpy as np
from mt_nodes.base.environment import keep_freed_memory
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(4_000_000, np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
before = faults(); keep_freed_memory(); faults(); print(before, faults())
"""
    env = {name: value for name, value in os.environ.items() if name not in MALLOC_SETTINGS}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert before < 100 or after * 5 < before


def test_a_followup_is_recorded_after_it_was_sent() -> None:
    """So that hash and ledger cost no latency, in lockstep and in real time alike."""
    from mt_nodes.engine.followups import FollowupPlan
    from mt_nodes.engine.judging import Offer
    from mt_nodes.engine.lockstep import Lockstep
    from mt_nodes.engine.play_settings import PlaySettings
    from mt_nodes.engine.realtime import Outstanding, Pace, Realtime
    from mt_nodes.relations.relation import load_suite

    happened: list[str] = []

    class Arm:
        name = "any"

        def send(self, bundle: Bundle, changed: frozenset[str], *instant: int) -> Any:
            happened.append("sent")

    class Recorder:
        def followup(self, *args: Any) -> None:
            happened.append("recorded")

    suite, bundle = load_suite(("noise_outside_roi_10",)), made_bundle()
    for relation in (suite.relations[0], suite.control):
        prepared = FollowupPlan(
            Offer(relation, (relation,)), MutationPipeline(relation.mutate, 0, relation.id).derive(bundle)
        )
        settings = PlaySettings(suite, 0, stateless=True, publishes_when_empty=True)
        happened.clear()
        Lockstep(settings, Recorder())._send(Arm(), prepared, bundle)  # type: ignore[arg-type]
        assert happened == ["sent", "recorded"]
        happened.clear()
        live = Realtime(settings, Recorder())  # type: ignore[arg-type]
        live._send(deque([Outstanding(bundle, prepared)]), (Arm(), Arm()), Pace(0.0, 0, 1.0))  # type: ignore[arg-type]
        assert happened == ["sent", "sent", "recorded"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("odd", [None, 0.0, np.nan, np.inf, -np.inf, 1e30])
def test_returns_are_those_that_are_not_empty(layout: str, odd: float | None) -> None:
    """Where all of them are, that is known from the reach of the cloud; else each is looked at."""
    cloud = made_cloud(layout, 50)
    if odd is not None:
        points = cloud.points.copy()
        for name in "xyz":
            if points.dtype[name].kind == "f":
                points[name][7] = odd
            else:
                points[name][7] = 0
        cloud = replace(cloud, points=points)
    with np.errstate(all="ignore"):
        assert returns(cloud).tolist() == np.flatnonzero(~empty_returns(cloud)).tolist()
    assert np.isnan(cloud.reach_m).any() == bool(sum(np.isnan(cloud.points[name]).any() for name in "xyz"))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_points_are_left_out_as_numpy_leaves_them_out(layout: str) -> None:
    cloud, rows = made_cloud(layout, 60), np.array([0, 3, 4, 59])
    assert without(cloud, rows).points.tobytes() == np.delete(cloud.raw, rows).tobytes()
    assert codec.encode_cloud(without(cloud, rows)) == plainly_encoded(without(cloud, rows))
