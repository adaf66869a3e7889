# SPDX-License-Identifier: Apache-2.0
"""Makes docs/depth.md: how far off the depth of a picture is where no beam measures it, on real and generated drives.

Beams are held out, and what they measured is compared with what is said to be there without them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

import mt_nodes as mt
from mt_nodes.data.images.codecs import decode
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import move
from mt_nodes.world.camera import depth
from mt_nodes.world.camera.depth_completion import nearest as nearest_return
from mt_nodes.world.camera.model import CameraModel
from mt_nodes.world.scene import meshes
from mt_nodes.world.scene.beams import beams_of
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import PERIOD_NS, generate_drive
from mt_nodes.world.scene.raycast import cast
from mt_nodes.world.scene.street import EGO_SPEED_MPS, Street

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Method = Callable[[Bundle], Floats]
PAGE = Path(__file__).resolve().parents[1] / "docs" / "depth.md"
#: Ranges in metres between which errors are listed, and an error that is one.
RANGES_M, WRONG = (0.0, 10.0, 20.0, 40.0, 80.0), 0.1
#: Fog in which errors of transmission are listed, and such an error.
VISIBILITY_M, OFF = 60.0, 0.1
HELD_OUT = ("every fourth beam", "the upper fifth of the beams", "the four topmost beams")
TOPMOST = 4
#: Earlier frames that one method adds.
EARLIER = 5
SIZES = ((1242, 375), (1920, 1280))
HEAD = """# Depth of pictures

This page shows how far off the depth of a picture is where no beam of the LiDAR measures it, since fog, rain, blur and
added objects follow that depth. `scripts/depth_error.py BAG` makes it.

Between two returns of a column that lie on one surface, the inverse range is linear in the row; at an edge between
them, a cell takes the range of the return whose colour it has. Gaps of less than 0.8 m in near objects are windows, and
are closed; corners without returns belong to the object if the picture joins them to it, and so do roofs and windows of
vehicles up to some 8 m away, within their convex hull; there, the bounds below hold both. A LiDAR sees past a roof that
the camera sees, and through glass; paint that it grazes mirrors what is far behind. So the upper outline of a near
vehicle lies where the picture has an edge, the beams that pass the vehicle begin, and few pass below it
(`free_space.py`). What is above the topmost beam is flooded from what it joins in the picture without a
strong edge, or is sky. A near thing that the topmost beam hits, and of which the picture shows both sides, ends where
the colours change from its own to those beside it (`upper_edges.py`): what is above is as far as what is beside.
Finer than a cell, edges are those of the picture (guided filter).
`mt_nodes/world/camera/depth.py` and the modules beside it name the sources.

Every cell has bounds of its range, too. Where they leave open more than a fifth of the light that arrives through fog,
rain or snow, nothing is judged by it: a box of which that is more than a quarter is not demanded, and a picture of
which it is more than a third gets no follow-up (`NOT_APPLICABLE`). The verdict says so.

A network of your own replaces what the picture's colours say above the beams: `MT_DEPTH_NETWORK=net.onnx`, from a
picture to inverse depth of any scale and offset, which are fitted to the LiDAR (extra `onnx`). None is shipped.
"""
HELD = """
## Beams held out

Relative error of the range where a beam measured something, without that beam: median, and share that is off by more
than 10 %, in all and by the true range. {frames} frames of a recorded drive (KITTI, HDL-64E, traffic in town). Returns
that a nearer return hides from the camera do not count. Those that the LiDAR measures past the roof of a near car or
through its windows do, where the camera sees the car and the package says so: they are four of five of the errors from
40 to 80 m. "Windows open" is its depth before windows are closed. IP-Basic is written from its paper (J. Ku, A. Harakeh
and S. Waslander, "In Defense of Classical Image Processing", CRV 2018), without its optional bilateral blur.

"""
TRUTH = """
## Generated streets

The true range of each cell, by ray tracing: share of cells whose transmission in fog of {visibility:g} m visibility is
off by more than {off:g}, above the topmost beam and below it; sky taken for something, and something for sky. Bounds:
share of cells whose true range they hold, and share of cells whose transmission they leave open by more than a fifth.

"""
TIME = """
## Time

Processor time of one core for the depth of a picture with a cloud of {points:,} returns, which all mutations of that
picture share. Beside it fog of 60 m visibility is drawn in it, with the picture's edges and without.

"""
FOOT = """
## What falls short

- If the upper fifth of the beams is missing, the plain nearest return is better between 20 and 40 m: what stands
  there begins above what is measured. With all beams this is what is above 2 degrees.
- Where the topmost beam hits the inside of an open load bed, its frame above counts as being as far as that: most of
  the errors below 10 m without the four topmost beams. The upper edge of a thing may be one cell too high, so that a
  rim of some pixels of the trees behind it stands out in fog. A thing that the picture cuts off at its side has no
  upper edge but the sky.
- Above the topmost beam, the range of what stands neither on a surface that was hit nor against the sky is that of the
  farthest returns: the bounds are wide there.
- White walls as bright as the sky count as sky above the sensor's view; their bounds are those of the wall, too, where
  the sensor's topmost beams hit one.
- Where a LiDAR sees through the glass of a near car whose frame gives it no return, the car's outline may be wrong by
  some tenths of a metre, as where the picture has no edge. The bounds hold both sides of it.
- Earlier frames are not used: depth depends on one instant alone. In traffic they make it worse, as the table shows:
  what moves is where it was.
"""


def camera_of(bundle: Bundle) -> CameraModel:
    """Return the camera of the first picture."""
    return CameraModel.of(bundle.camera_infos[0], decode(bundle.images[0]).size)


def fresh(bundle: Bundle) -> Bundle:
    """Return a bundle whose picture's depth is not known yet: it is cached by picture."""
    return replace(bundle, images=(replace(bundle.images[0]),))


def depth_of(bundle: Bundle) -> depth.DepthMap:
    """Return the depth by the package."""
    return depth.depth_of(bundle, bundle.images[0], camera_of(bundle))


def ours(bundle: Bundle) -> Floats:
    """Return the range (H, W) of each pixel by the package."""
    found = depth_of(bundle)
    return np.asarray(found.in_picture(found.range_m, decode(bundle.images[0]).size, smooth=False), np.float64)


def through_windows(bundle: Bundle) -> Floats:
    """Return the range (H, W) of each pixel by the package, without the gaps that it closes in near objects."""
    found = depth_of(bundle)
    return np.asarray(found.in_picture(found.through_m, decode(bundle.images[0]).size, smooth=False), np.float64)


def projected(bundle: Bundle, cloud: Cloud) -> tuple[Floats, Floats]:
    """Return pixels (n, 2), x and y, and ranges (n,) from the camera, of a cloud's points in the picture."""
    to_camera = np.asarray(bundle.transforms.lookup(bundle.images[0].frame_id, cloud.frame_id))
    xyz = move(to_camera, np.asarray(cloud.xyz, np.float64))
    xyz = xyz[xyz[:, 2] > 0.5]
    camera = camera_of(bundle)
    pixels = camera.project(xyz)
    inside = ((pixels >= 0) & (pixels < (camera.width - 1, camera.height - 1))).all(axis=1)
    return pixels[inside], np.linalg.norm(xyz[inside], axis=1)


def sparse(bundle: Bundle) -> Floats:
    """Return the nearest return's range (H, W) of each pixel, infinite without one."""
    pixels, range_m = projected(bundle, bundle.clouds[0])
    image = np.full(decode(bundle.images[0]).size, np.inf)
    column, row = np.rint(pixels).astype(int).T
    np.minimum.at(image, (row, column), range_m)
    return image


def nearest(bundle: Bundle) -> Floats:
    """Return the range (H, W) of the nearest pixel with a return."""
    image = sparse(bundle)
    return np.asarray(nearest_return(image.astype(np.float32), np.isfinite(image)), np.float64)


def ip_basic(bundle: Bundle) -> Floats:
    """Return the range (H, W) of each pixel by IP-Basic."""
    far_m, known = 100.0, np.isfinite(sparse(bundle))
    image = np.where(known, far_m - np.minimum(sparse(bundle), far_m), 0.0).astype(np.float32)
    diamond = cv2.getStructuringElement(cv2.MORPH_CROSS, (5, 5))
    diamond[1:4, 1:4] = 1
    image = cv2.morphologyEx(cv2.dilate(image, diamond), cv2.MORPH_CLOSE, np.ones((5, 5), np.uint8))
    image = _where_empty(image, cv2.dilate(image, np.ones((7, 7), np.uint8)))
    top = np.take_along_axis(image, (image > 0.1).argmax(axis=0)[None], axis=0)
    rows = np.arange(len(image))[:, None]
    image = np.where(rows < (image > 0.1).argmax(axis=0), top, image)
    image = _where_empty(image, cv2.dilate(image, np.ones((31, 31), np.uint8)))
    image = cv2.medianBlur(image, 5)
    image = np.where(image > 0.1, cv2.GaussianBlur(image, (5, 5), 0), image)
    return np.where(image > 0.1, far_m - image, np.inf).astype(np.float64)


def _where_empty(image: npt.NDArray[np.float32], other: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return np.where(image < 0.1, other, image)


def with_earlier(bundle: Bundle) -> Floats:
    """Return the range (H, W) by the package from a cloud to which the earlier ones' returns are added.

    They are moved by the ego's motion, and count where no return of the present is within two pixels.
    """
    cloud, image = bundle.clouds[0], bundle.images[0]
    to_ego = np.asarray(bundle.transforms.lookup("base_link", cloud.frame_id))
    now, parts = sparse(bundle).astype(np.float32), [cloud.points]
    free = np.isinf(cv2.erode(now, np.ones((5, 5), np.uint8)))
    for former in bundle.earlier:
        step = np.linalg.inv(_pose(bundle) @ to_ego) @ _pose(former) @ to_ego
        points, xyz = former.clouds[0].points.copy(), move(step, former.clouds[0].xyz.astype(np.float64))
        for axis, name in enumerate("xyz"):
            points[name] = xyz[:, axis]
        pixels = camera_of(bundle).project(
            move(np.asarray(bundle.transforms.lookup(image.frame_id, cloud.frame_id)), xyz)
        )
        with np.errstate(invalid="ignore"):
            inside = np.flatnonzero(((pixels >= 0) & (pixels < np.array(now.shape[::-1]) - 1)).all(axis=1))
        column, row = np.rint(pixels[inside]).astype(int).T
        parts.append(points[inside[free[row, column]]])
    return ours(fresh(replace(bundle, clouds=(replace(cloud, points=np.concatenate(parts)),))))


def _pose(bundle: Bundle) -> Floats:
    if bundle.motion is None or bundle.motion.pose is None:
        raise SystemExit(f"frame {bundle.index}: the ego's motion is not known; expected a bag that tells it")
    return bundle.motion.pose


def with_past(frames: Sequence[Bundle], every: int) -> list[Bundle]:
    """Return one frame in so many that have enough earlier ones, with those and their motion."""
    moving = [replace(b, motion=b.track.at(b) if b.track is not None else None) for b in frames]
    return [replace(moving[i], earlier=tuple(moving[i - EARLIER : i])) for i in range(EARLIER, len(moving), every)]


METHODS: dict[str, Method] = {
    "ours": ours,
    "ours, windows open": through_windows,
    f"ours, {EARLIER} earlier frames added": with_earlier,
    "nearest": nearest,
    "IP-Basic": ip_basic,
}


def held_out(cloud: Cloud, which: str) -> Mask:
    """Return the points (N,) of the beams that are held out."""
    beams = beams_of(cloud)
    order = np.argsort(np.argsort(beams.elevations_rad))[beams.place]
    first = {HELD_OUT[1]: 0.8 * len(beams.rings), HELD_OUT[2]: len(beams.rings) - TOPMOST}
    chosen = order % 4 == 2 if which == HELD_OUT[0] else order >= first[which]
    return np.asarray(chosen & (beams.ring >= 0))


def in_sight(bundle: Bundle, pixels: Floats, range_m: Floats) -> Mask:
    """Return which points (n,) no nearer return hides from the camera, which is not where the LiDAR is."""
    nearest_m = cv2.erode(sparse(bundle).astype(np.float32), np.ones((7, 7), np.uint8))
    column, row = np.rint(pixels).astype(int).T
    return np.asarray(range_m < 1.15 * nearest_m[row, column] + 0.2)


def errors(bundle: Bundle, which: str, methods: dict[str, Method]) -> Iterator[tuple[str, Floats, Floats]]:
    """Yield for each method the true ranges (n,) and its relative errors (n,) where beams are held out."""
    cloud = bundle.clouds[0]
    out = held_out(cloud, which)
    pixels, range_m = projected(bundle, cloud.with_raw(cloud.raw[out]))
    seen = in_sight(bundle, pixels, range_m)
    pixels, range_m = pixels[seen], range_m[seen]
    earlier = tuple(_without(former, which) for former in bundle.earlier)
    reduced = fresh(replace(_without(bundle, which), earlier=earlier))
    column, row = np.rint(pixels).astype(int).T
    for name, method in methods.items():
        found = method(reduced)[row, column]
        yield name, range_m, np.where(np.isfinite(found), np.abs(found - range_m) / range_m, np.inf)


def _without(bundle: Bundle, which: str) -> Bundle:
    cloud = bundle.clouds[0]
    return replace(bundle, clouds=(cloud.with_raw(cloud.raw[~held_out(cloud, which)]),))


def held_out_table(frames: Sequence[Bundle]) -> str:
    """Return the errors of each method where beams are held out."""
    bins = [f"{low:.0f} to {high:.0f} m" for low, high in pairwise(RANGES_M)]
    rows = []
    for which in HELD_OUT:
        found: dict[str, list[tuple[Floats, Floats]]] = {name: [] for name in METHODS}
        for bundle in frames:
            for name, range_m, error in errors(bundle, which, METHODS):
                found[name].append((range_m, error))
        for name, parts in found.items():
            range_m, error = (np.concatenate(column) for column in zip(*parts, strict=True))
            within = [error[(range_m >= low) & (range_m < high)] for low, high in pairwise(RANGES_M)]
            rows.append([which, name, *(_cell(part) for part in (error, *within))])
    return table(["without", "method", "all", *bins], rows)


def _cell(error: Floats) -> str:
    return f"{100 * np.median(error):.1f} %, {100 * np.mean(error > WRONG):.0f} %" if len(error) >= 50 else "few"


def truth_of(street: Street, bundle: Bundle) -> Floats:
    """Return the true range (h, w) of each cell of a generated picture, infinite for the sky."""
    time_s = bundle.index * PERIOD_NS * 1e-9
    ego_m = EGO_SPEED_MPS * time_s
    mesh = street.road.on_road(meshes.merged(piece.mesh for piece in street.pieces(time_s)), ego_m)
    camera, pose = camera_of(bundle), np.asarray(bundle.transforms.lookup("base_link", bundle.images[0].frame_id))
    rays = camera.grid(depth.cell_px(camera.width)) @ pose[:3, :3].T
    origin = pose[:3, 3] + (ego_m, 0.0, 0.0)
    return np.asarray(cast(mesh, tuple(origin), rays.reshape(-1, 3))[0], np.float64).reshape(rays.shape[:2])


def passing(range_m: npt.ArrayLike) -> Floats:
    """Return the share of light that arrives through the fog."""
    return np.asarray(np.exp(-np.log(20.0) / VISIBILITY_M * np.asarray(range_m, np.float64)))


def truth_row(seed: int, frames: int) -> list[str]:
    """Return the errors of a generated street."""
    street, found = Street(seed, frames * PERIOD_NS * 1e-9, 0.0), []
    for bundle in generate_drive(frames, seed, camera=CameraSensor(), only=range(0, frames, 8)):
        true_m, own = truth_of(street, bundle), depth_of(bundle)
        top = np.where(own.measured.any(axis=0), own.measured.argmax(axis=0), len(true_m))
        above = np.arange(len(true_m))[:, None] < top
        off = np.abs(passing(true_m) - passing(own.range_m)) > OFF
        sky, is_sky = np.isinf(own.range_m), np.isinf(true_m)
        least_m, most_m = own.bounds_m
        held = (true_m >= 0.99 * least_m) & (true_m <= 1.01 * most_m)
        wide = passing(least_m) - passing(most_m) > 0.2
        shares = [off[above], off[~above], ~sky[is_sky], sky[~is_sky], held[above], held[~above], wide]
        found.append([float(part.mean()) for part in shares])
    return [f"{seed}", *(f"{100 * share:.1f} %" for share in np.mean(found, axis=0))]


def truth_table(seeds: Iterable[int], frames: int) -> str:
    """Return the errors on generated streets."""
    columns = ["street", "off above", "off below", "sky missed", "not sky", "held above", "held below", "left open"]
    return table(columns, [truth_row(seed, frames) for seed in seeds])


def resized(bundle: Bundle, size: tuple[int, int]) -> Bundle:
    """Return a bundle with its picture in another size (width, height)."""
    (width, height), info = size, bundle.camera_infos[0]
    k = info.k.copy()
    k[0] *= width / info.width
    k[1] *= height / info.height
    image = replace(bundle.images[0], pixels=cv2.resize(bundle.images[0].pixels, size))
    return replace(bundle, images=(image,), camera_infos=(replace(info, k=k, width=width, height=height),))


def times(bundle: Bundle) -> Iterator[list[str]]:
    """Yield size and milliseconds of depth, and of a veil with and without the picture's edges."""
    from mt_nodes.world.camera.relight import blended

    cv2.setNumThreads(1)
    air = np.full(3, 0.6, np.float32)
    for size in SIZES:
        of_size, taken = resized(bundle, size), []
        for _ in range(9):
            new = fresh(of_size)
            picture = decode(new.images[0])
            began = [time.thread_time()]
            own = depth_of(new)
            share = passing(own.range_m).astype(np.float32)
            for step in (None, 0.04):
                began.append(time.thread_time())
                blended(picture, share, air, own.step_px, step)
            taken.append(np.diff([*began, time.thread_time()]))
        whole, plain, edges = 1e3 * np.min(taken, axis=0)
        yield [f"{size[0]} x {size[1]}", f"{whole:.1f} ms", f"{edges:.1f} ms", f"{plain:.1f} ms"]


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    cells = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in cells) + "\n"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bag", type=Path, help="a drive with a LiDAR and a camera")
    parser.add_argument("--every", type=int, default=5, help="use one frame in so many")
    args = parser.parse_args()
    frames = with_past([frame.bundle for frame in mt.frames(args.bag, sensors=("lidar", "camera"))], args.every)
    parts = [HEAD, HELD.format(frames=len(frames)), held_out_table(frames)]
    parts += [TRUTH.format(visibility=VISIBILITY_M, off=OFF), truth_table((1, 2, 3), 26)]
    columns = ["picture", "depth", "fog", "fog, edges of cells"]
    parts += [TIME.format(points=len(frames[0].clouds[0])), table(columns, times(frames[0])), FOOT]
    PAGE.write_text("".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
