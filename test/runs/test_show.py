# SPDX-License-Identifier: Apache-2.0
"""``mt show NAME --bag``: what became of each return, which frame is looked at, what the picture holds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drives import KITTI
from hypothesis import given, settings
from hypothesis import strategies as st
from made_bundles import made_bundle, made_cloud
from test_removal_in_pictures import CHANGES

from mt_nodes.base import plugins
from mt_nodes.base.errors import InfrastructureError, NotApplicable, UsageError
from mt_nodes.cli.main import main
from mt_nodes.data.bags.bundles import BagSource, write_bundles
from mt_nodes.data.effects import Effects, Volume
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import pose_matrix
from mt_nodes.engine.bag_mutation import RELATION, mutate_bag
from mt_nodes.relations.mutations.base import Followup
from mt_nodes.relations.mutations.stream.identity import Identity
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.relations.relation import load_relation
from mt_nodes.report.mutation_picture import draw, title, write_picture
from mt_nodes.report.pictures.before_after import RANGE_M, before_after
from mt_nodes.report.pictures.cloud_diff import compare
from mt_nodes.report.pictures.frame_inspection import AFTER, BEFORE, MutatedFrame, inspect, inspect_bag
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import hdl_64e
from mt_nodes.world.scene.radar_model import front_radar

#: What needs an extra is looked at where that is installed: `make test-extras`. Navigation has no picture.
MUTATIONS: dict[str, Any] = {
    n: cls
    for n, cls in plugins.catalogue("mutations").items()
    if not getattr(cls, "extra", "") and {"lidar", "camera", "radar"} & {*cls.sensors}
}
LIDAR = replace(hdl_64e(), azimuths=600)
#: What they uncover in a picture is to be filled with what other instants show, which takes a longer drive and a larger
#: picture: test_removal_in_pictures.py has them. Here they are looked at in clouds.
FILLED = ("object_moved", "object_removed", "object_replaced")
LONG = [made_bundle(replace(made_cloud(seed=i), stamp_ns=i * 10**8), index=i) for i in range(20)]
LONG = [replace(b, stamp_ns=b.cloud().stamp_ns) for b in LONG]


@cache
def pictured() -> list[Bundle]:
    return list(generate_drive(4, lidar=LIDAR, camera=CameraSensor(160, 120)))


@cache
def with_radar() -> list[Bundle]:
    return list(generate_drive(4, lidar=LIDAR, radar=front_radar()))


def seen(
    bundles: list[Bundle], *mutations: Any, frame: int = 1, name: str = "it", relation: str = RELATION
) -> MutatedFrame:
    return inspect(bundles, mutations, name, relation, frame, 0)


def moved(cloud: Cloud, factors: np.ndarray) -> Cloud:
    """Move every return along its ray."""
    raw = cloud.raw.copy()
    for name in "xyz":
        raw.view(cloud.points.dtype)[name] *= factors.astype(np.float32)
    return cloud.with_raw(raw)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 400), st.integers(0, 400), st.booleans())
def test_what_came_and_went_is_found(seed: int, fewer: int, more: int, shuffled: bool) -> None:
    rng, old = np.random.default_rng(seed), made_cloud(count=600)
    gone = np.sort(rng.choice(len(old), fewer, replace=False))
    kept = np.delete(np.arange(len(old)), gone)
    stranger = made_cloud(count=more, seed=5)
    raw = np.concatenate([old.raw[kept], stranger.raw])
    order = rng.permutation(len(raw)) if shuffled else np.arange(len(raw))
    change = compare(old, old.with_raw(raw[order]), stranger.xyz)
    np.testing.assert_array_equal(change.removed, gone)
    np.testing.assert_array_equal(np.sort(order[change.added]), np.arange(len(kept), len(raw)))
    assert not change.moved_m.any() and not change.brightened.any()
    assert change.reordered == ((np.diff(np.argsort(order)[: len(kept)]) < 0).sum() > 0.01 * len(kept))


def test_a_return_that_is_there_twice_was_added_once() -> None:
    old = made_cloud(count=50)
    change = compare(old, old.with_raw(np.concatenate([old.raw, old.raw[:7], old.raw[:7]])))
    assert len(change.added) == 14 and not len(change.removed)


@pytest.mark.parametrize("lost", [0, 30])
def test_returns_that_moved_are_found_by_row_or_beam(lost: int) -> None:
    rng, old = np.random.default_rng(2), made_cloud(count=900)
    new = moved(old, rng.uniform(1.05, 1.1, len(old)))
    rows = np.arange(lost, len(old))
    change = compare(old, new.with_raw(new.raw[rows]))
    wanted = np.linalg.norm(new.xyz[rows].astype(float) - old.xyz[rows], axis=1)
    same = change.old_rows == change.new_rows + lost
    assert same.mean() > 0.99  # two returns of one direction may be taken for each other
    np.testing.assert_allclose(change.moved_m[same], wanted[change.new_rows[same]], atol=1e-5)
    assert abs(len(change.removed) - lost) < 5


def test_a_whole_scene_that_turned_is_found_by_its_transform() -> None:
    old = made_cloud(count=900)
    turn = pose_matrix([0, 0, 0], [0, 0, np.sin(0.7), np.cos(0.7)])
    raw = old.raw.copy()
    for i, name in enumerate("xyz"):
        raw.view(old.points.dtype)[name] = (old.xyz @ turn[:3, :3].T)[:, i]
    new = old.with_raw(raw[20:])
    assert (compare(old, new, transform=turn).old_rows == np.arange(20, 900)).all()
    assert not (compare(old, new).old_rows[: 900 - 20] == np.arange(20, 900)[: len(compare(old, new).old_rows)]).all()


def test_a_few_that_are_far_from_where_they_were_are_others() -> None:
    old = made_cloud(count=300)
    factors = np.ones(300)
    factors[:5] = 0.5
    change = compare(old, moved(old, factors))
    assert change.removed.tolist() == change.added.tolist() == [0, 1, 2, 3, 4]
    assert not change.moved_m.any()


def test_empty_returns_are_nobody() -> None:
    old = made_cloud("ouster", 1024, height=16, holes=0.4)
    returns = int(np.isfinite(old.xyz).all(axis=1).sum())
    change = compare(old, old)
    assert len(change.old_rows) == returns and not len(change.removed) and not len(change.added)


def of_radars(name: str) -> bool:
    return set(MUTATIONS[name].sensors) == {"radar"}


def drive_for(name: str) -> list[Bundle]:
    """A drive with what a mutation changes."""
    if of_radars(name):
        return with_radar()
    return [replace(b, images=(), camera_infos=()) for b in pictured()] if name in FILLED else pictured()


def test_what_is_not_looked_at_in_pictures_here_is_proven_there() -> None:
    assert {plugins.name_of(type(change)) for change in CHANGES.values()} == set(FILLED)


@pytest.mark.parametrize("name", MUTATIONS)
def test_every_mutation_can_be_looked_at(name: str) -> None:
    found = seen(drive_for(name), MUTATIONS[name](), name=name)
    told = title(found)
    assert told.startswith(name) and "frame 1" in told and "seed 0" in told
    if found.change is None or found.of_times:
        assert "sent in its place" in told
        return
    assert ("nothing changed" in told) == (MUTATIONS[name].role == "control" or "stream" in MUTATIONS[name].__module__)
    shown = before_after(found, found.change)
    assert shown.frame_id == "base_link" and np.isfinite(shown.window).all()
    assert len(shown.before) == len(found.source.radars[0] if of_radars(name) else found.source.cloud()) and len(
        shown.added
    ) == len(found.change.added)
    for values, points in ((shown.colours.before, shown.before), (shown.colours.after, shown.after)):
        assert values is None or len(values) == len(points)


@pytest.mark.parametrize("name", ["object_added", "sector_dropped"])
def test_the_frame_is_that_of_a_mutated_bag(name: str, tmp_path: Path) -> None:
    write_bundles(tmp_path / "drive", pictured())
    mutate_bag(tmp_path / "drive", [MUTATIONS[name]()], tmp_path / "changed", seed=3)
    asked: dict[str, Any] = {"name": name, "relation": RELATION, "frame": 2, "seed": 3}
    found = inspect_bag(tmp_path / "drive", {}, None, [MUTATIONS[name]()], **asked)
    with BagSource(tmp_path / "changed") as source:
        wanted = list(source)[2]
    assert found.derived.followup.first.cloud().raw.tobytes() == wanted.cloud().raw.tobytes()


def test_a_relation_is_drawn_as_in_its_run() -> None:
    relation = load_relation("noise_outside_roi_100")
    found = seen(pictured(), *relation.mutate, frame=3, relation=relation.id)
    wanted = MutationPipeline(relation.mutate, 0, relation.id).derive(pictured()[3], "0")
    assert found.derived.followup.first.cloud().raw.tobytes() == wanted.followup.first.cloud().raw.tobytes()


@pytest.mark.parametrize("name", ["fog_monotone", "snow_monotone", "range_reduced_monotone"])
def test_a_relation_with_a_baseline_is_compared_with_that(name: str) -> None:
    relation = load_relation(name)
    asked: dict[str, Any] = {"name": name, "relation": name, "frame": 2, "seed": 0, "baseline": relation.baseline}
    found = inspect(pictured(), relation.mutate, **asked)
    run = MutationPipeline(relation.mutate, 0, name, relation.baseline)
    wanted = [run.derive(bundle) for bundle in pictured()[:3]][2]
    assert wanted.baseline is not None and found.change is not None
    assert found.derived.followup.first.cloud().raw.tobytes() == wanted.followup.first.cloud().raw.tobytes()
    assert found.change.old.raw.tobytes() == wanted.baseline.followup.first.cloud().raw.tobytes()
    assert found.change.old.raw.tobytes() != found.source.cloud().raw.tobytes()
    shown = before_after(found, found.change)
    assert len(shown.before) == len(found.change.old) and len(shown.after) == len(found.change.new)
    told = title(found).replace("\u00a0", " ")
    milder, more = (plugins.name_of(type(m)) for m in (*relation.baseline, *relation.mutate))
    assert f"before: the relation's baseline, {milder}: " in told and f"\n{more}: " in told
    plain = inspect(pictured(), relation.mutate, **{**asked, "baseline": ()})
    assert "baseline" not in title(plain) and len(plain.change.removed) > len(found.change.removed)


@dataclass(frozen=True)
class Remembers(Identity):
    """Draws the number of the bundle that it began with, and how many it looks back on."""

    needs_history = 2

    def begin(self, rng: Any, bundle: Bundle) -> int:
        return bundle.index

    def draw(self, rng: Any, bundle: Bundle, state: Any) -> Any:
        return {"began": state, "earlier": len(bundle.earlier)}


@pytest.mark.parametrize("frame", [BEFORE, 12])
def test_frames_far_from_the_beginning_keep_what_began_there(frame: int) -> None:
    found = seen(LONG, Remembers(), frame=frame)
    assert found.derived.draws == [{"began": 0, "earlier": 2}]
    assert [s.frame for s in found.sources] == list(range(frame - BEFORE, frame + AFTER + 1))
    beside = inspect(LONG, [Remembers()], "it", RELATION, frame, 0, [Remembers()]).derived.baseline
    assert beside is not None and beside.draws == found.derived.draws


@dataclass(frozen=True)
class Never(Identity):
    """Is not applicable."""

    def draw(self, *_: Any) -> Any:
        raise NotApplicable("no wall in sight")


@dataclass(frozen=True)
class BrokenPromise(Identity):
    """Promises what is not so."""

    def guarantee(self, *_: Any) -> str:
        return "nothing is as promised"


def test_what_cannot_be_looked_at_says_why() -> None:
    with pytest.raises(UsageError, match="it cannot be applied to frame 1: no wall in sight"):
        seen(pictured(), Never())
    with pytest.raises(InfrastructureError, match="guarantee broken: broken_promise: nothing is as promised"):
        seen(pictured(), BrokenPromise())
    with pytest.raises(UsageError, match="no frame 4: there are 4, expected 0 to 3"):
        seen(pictured(), Identity(), frame=4)


def test_damage_matters_before_the_frame_only() -> None:
    def torn() -> Iterator[Bundle]:
        yield from pictured()[:2]
        raise InfrastructureError("torn here")

    assert inspect(torn(), [Identity()], "it", RELATION, 1, 0).source is pictured()[1]
    with pytest.raises(InfrastructureError, match="torn here"):
        inspect(torn(), [Identity()], "it", RELATION, 2, 0)


def test_times_are_looked_at_where_nothing_else_differs() -> None:
    assert not seen(LONG, Identity()).of_times
    assert not seen(LONG, MUTATIONS["points_dropped"]()).of_times
    shifted = seen(LONG, MUTATIONS["time_shifted"](offset_s=0.03))
    assert shifted.of_times and {s.stamp_ns - s.sent_ns for s in shifted.sent} == {30_000_000}
    halved = seen(LONG, MUTATIONS["rate_reduced"](one_of=2.0), frame=6)
    assert halved.of_times and {s.content for s in halved.sent} == {0, 2, 4, 6, 8, 10, 12}
    texts = [t.get_text() for t in draw(halved).axes[0].texts]
    assert texts.count("not sent") == 6 and "12" in texts


def picture(effects: Effects, change: Any = None, range_m: float | None = None) -> Any:
    source = pictured()[0]
    derived = MutationPipeline([Identity()], 0, "it").derive(source)
    derived = replace(derived, followup=Followup(((0, source),), effects))
    found = MutatedFrame("it", (Identity(),), 0, source, derived, None, (), ())
    return before_after(found, change or compare(source.cloud(), source.cloud()), range_m)


def test_volumes_are_outlined_where_they_are() -> None:
    volume = Volume("velodyne", (10.0, 2.0, -0.73), (4.0, 2.0, 1.0), np.pi / 2, "car")
    (outline,) = picture(Effects(added=(volume,))).outlines
    np.testing.assert_allclose(np.sort(outline.above, axis=0)[[0, -1]], [[9.0, 0.0], [11.0, 4.0]], atol=1e-9)
    np.testing.assert_allclose(outline.side_x + outline.side_z, (9.0, 11.0, 0.5, 1.5), atol=1e-9)
    assert (outline.what, outline.label) == ("added", "car")


def test_the_window_shows_the_change() -> None:
    volume = Volume("base_link", (15.0, 3.0, 1.0), (1.0, 1.0, 2.0))
    x0, x1, y0, y1, _, z1 = picture(Effects(added=(volume,))).window
    assert (x0 + x1) / 2 == pytest.approx(15.0) and (y0 + y1) / 2 == pytest.approx(3.0) and x1 - x0 < 20 and z1 > 2
    sky = replace(volume, center_m=(15.0, 3.0, 0.0), size_m=(1.0, 1.0, 200.0))
    assert picture(Effects(added=(sky,))).window[5] < 10.0
    assert picture(Effects()).window[:2] == (-RANGE_M, RANGE_M)
    assert picture(Effects(added=(volume,)), range_m=25.0).window[:2] == (-25.0, 25.0)


def test_the_picture_tells_what_happened(tmp_path: Path) -> None:
    blind = [replace(bundle, images=(), camera_infos=()) for bundle in pictured()]
    found = seen(blind, MUTATIONS["object_added"](), name="object_added")
    figure = draw(found)
    (legend,) = figure.legends
    told = " ".join(t.get_text() for t in legend.get_texts())
    added, removed = len(found.change.added), len(found.change.removed)
    assert f"added ({added:,})" in told and f"removed ({removed:,})" in told and "volume added: pedestrian" in told
    assert len(figure.axes) == 4 and all(a.get_aspect() == 1.0 for a in figure.axes)
    assert re.search(r"range_sigma_m = 0.02 m", figure.get_suptitle().replace("\u00a0", " "))
    write_picture(found, tmp_path / "a.png", dpi=50)
    write_picture(found, tmp_path / "b.png", dpi=50)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_a_control_says_that_nothing_changed() -> None:
    figure = draw(seen(pictured(), Identity(), name="identity"))
    assert "nothing changed" in [t.get_text() for a in figure.axes for t in a.texts]


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("show") / "drive"
    write_bundles(path, [replace(b, clouds=(b.cloud(),)) for b in pictured()[:2]])
    return path


def test_the_command_draws_and_says_where(
    bag: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["show", "noise_outside_roi", "--bag", str(bag), "--set", "points=12", "--frame", "1"]) == 0
    told = capsys.readouterr().out
    assert "12 added" in told and "points = 12" in told.replace("\u00a0", " ")
    assert "picture: noise_outside_roi_frame_1.png" in told
    assert (tmp_path / "noise_outside_roi_frame_1.png").read_bytes().startswith(b"\x89PNG")
    assert main(["show", "noise_outside_roi_10", "--bag", str(bag), "--out", "x.png", "--json", "--range-m", "20"]) == 0
    assert {"added": 10, "removed": 0, "picture": "x.png"}.items() <= json.loads(capsys.readouterr().out).items()
    assert (tmp_path / "x.png").stat().st_size
    assert main(["show", "range_reduced_monotone", "--bag", str(bag), "--range-m", "20"]) == 0
    assert "before: the relation's baseline, range_reduced: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["noise_outside_roi", "--bag", "BAG", "--frame", "2"], "no frame 2: there are 2, expected 0 to 1"),
        (["noise_outside_roi", "--bag", "BAG", "--frame", "-1"], "no frame -1"),
        (["noise_outside_roi", "--bag", "BAG", "--out", "/nowhere/x.png"], "/nowhere/x.png: cannot be written"),
        (["noise_outside_roi", "--bag", "BAG", "--out", "x.docx"], "x.docx: cannot be written"),
        (["noise_outside_roi", "--bag", "BAG", "--set", "point=3"], "did you mean 'points'"),
        (["noise_outside_roi", "--bag", "BAG", "--range-m", "0"], "expected 1 to 1000 m"),
        (["noise_outside_roi_10", "--bag", "BAG", "--set", "points=3"], "is a relation"),
        (["red_light", "--bag", "BAG", "--set", "kind=green"], "is a manipulation"),
        (["front_40m", "--bag", "BAG"], "expected a mutation, a manipulation or a relation"),
        (["object_added", "--bag", "BAG", "--set", "range_m=[95, 99]"], "object_added cannot be applied to frame 0:"),
        (["noise_outside_roi", "--out", "x.png"], "--out needs a bag; give --bag, too"),
        (["noise_outside_roi", "--bag", "/nowhere"], "/nowhere"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(
    words: list[str], said: str, bag: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", *(w.replace("BAG", str(bag)) for w in words)]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_a_recorded_frame_is_looked_at() -> None:
    if not KITTI.is_dir():
        pytest.skip(f"no recorded drive at {KITTI}")
    asked: dict[str, Any] = {"name": "it", "relation": RELATION, "frame": 5, "seed": 0}
    found = inspect_bag(KITTI, {}, None, [MUTATIONS["points_dropped"]()], **asked)
    assert len(found.change.removed) == found.derived.effects.numbers["points_removed"] > 10_000
    assert not len(found.change.added)
