# SPDX-License-Identifier: Apache-2.0
"""Measures the depth between and above a LiDAR's beams: some are held out and compared with what is there then.

The methods are ours (``mt_nodes.world.camera.depth``), the nearest measured cell, and IP-Basic (J. Ku, A. Harakeh and
S. Waslander, "In Defense of Classical Image Processing: Fast Depth Completion on the CPU", CRV 2018), written from its
description.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

import mt_nodes as mt
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import move
from mt_nodes.world.camera import depth
from mt_nodes.world.camera.model import CameraModel
from mt_nodes.world.scene.beams import beams_of

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Method = Callable[[Bundle], Floats]
#: Ranges in metres at which errors are listed.
RANGES_M = (0.0, 10.0, 20.0, 40.0, 80.0)


def camera_of(bundle: Bundle) -> CameraModel:
    """Return the camera of the first picture."""
    image = bundle.images[0]
    return CameraModel.of(bundle.camera_infos[0], image.pixels.shape[:2])


def ours(bundle: Bundle) -> Floats:
    """Return the range (h, w) of each pixel by the package."""
    found = depth.depth_of(bundle, bundle.images[0], camera_of(bundle))
    return np.asarray(found.in_picture(found.range_m, bundle.images[0].pixels.shape[:2], smooth=False), np.float64)


def projected(bundle: Bundle, cloud: Cloud) -> tuple[Floats, Floats]:
    """Return pixels (n, 2), x and y, and ranges (n,) from the camera, of a cloud's points in the picture."""
    to_camera = np.asarray(bundle.transforms.lookup(bundle.images[0].frame_id, cloud.frame_id))
    xyz = move(to_camera, np.asarray(cloud.xyz, np.float64))
    xyz = xyz[xyz[:, 2] > 0.5]
    camera = camera_of(bundle)
    pixels = camera.project(xyz)
    height, width = bundle.images[0].pixels.shape[:2]
    inside = ((pixels >= 0) & (pixels < (width - 1, height - 1))).all(axis=1)
    return pixels[inside], np.linalg.norm(xyz[inside], axis=1)


def sparse(bundle: Bundle) -> Floats:
    """Return the nearest return's range (h, w) of each pixel, 0 without one."""
    pixels, range_m = projected(bundle, bundle.clouds[0])
    image = np.full(bundle.images[0].pixels.shape[:2], np.inf)
    column, row = np.rint(pixels).astype(int).T
    np.minimum.at(image, (row, column), range_m)
    return np.where(np.isinf(image), 0.0, image)


def nearest(bundle: Bundle) -> Floats:
    """Return the range (h, w) of the nearest pixel with a return."""
    image = sparse(bundle)
    empty = (image == 0).astype(np.uint8)
    _, label = cv2.distanceTransformWithLabels(empty, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)
    values = np.zeros(label.max() + 1)
    values[label[image > 0]] = image[image > 0]
    return values[label]


def ip_basic(bundle: Bundle) -> Floats:
    """Return the range (h, w) of each pixel by IP-Basic with a diamond kernel and a bilateral blur's place left out."""
    far_m = 100.0
    image = sparse(bundle).astype(np.float32)
    known = image > 0.1
    image[known] = far_m - image[known]
    diamond = cv2.getStructuringElement(cv2.MORPH_CROSS, (5, 5))
    diamond[1:4, 1:4] = 1
    image = cv2.dilate(image, diamond)
    image = cv2.morphologyEx(image, cv2.MORPH_CLOSE, np.ones((5, 5), np.uint8))
    empty = image < 0.1
    image[empty] = cv2.dilate(image, np.ones((7, 7), np.uint8))[empty]
    top = np.argmax(image > 0.1, axis=0)
    for x in range(image.shape[1]):
        image[: top[x], x] = image[top[x], x]
    empty = image < 0.1
    image[empty] = cv2.dilate(image, np.ones((31, 31), np.uint8))[empty]
    image = cv2.medianBlur(image, 5)
    blurred = cv2.GaussianBlur(image, (5, 5), 0)
    image = np.where(image > 0.1, blurred, image)
    return np.where(image > 0.1, far_m - image, np.inf).astype(np.float64)


def held_out(cloud: Cloud, which: str) -> Mask:
    """Return the points (N,) of the beams that are held out: every fourth, or the upper fifth of those in use."""
    beams = beams_of(cloud)
    order = np.argsort(np.argsort(beams.elevations_rad))[beams.place]
    if which == "every fourth":
        return (order % 4 == 2) & (beams.ring >= 0)
    return (order >= 0.8 * len(beams.rings)) & (beams.ring >= 0)


def in_sight(bundle: Bundle, pixels: Floats, range_m: Floats) -> Mask:
    """Return which points (n,) no nearer return hides from the camera, which is not where the LiDAR is."""
    full = sparse(bundle)
    nearest_m = cv2.erode(np.where(full == 0, np.inf, full).astype(np.float32), np.ones((7, 7), np.uint8))
    column, row = np.rint(pixels).astype(int).T
    return np.asarray(range_m < 1.15 * nearest_m[row, column] + 0.2)


def errors(bundle: Bundle, which: str, methods: dict[str, Method]) -> Iterator[tuple[str, Floats, Floats]]:
    """Yield for each method the true ranges (n,) and its relative errors (n,) where beams are held out."""
    cloud = bundle.clouds[0]
    out = held_out(cloud, which)
    pixels, range_m = projected(bundle, cloud.with_raw(cloud.raw[out]))
    seen = in_sight(bundle, pixels, range_m)
    pixels, range_m = pixels[seen], range_m[seen]
    image = replace(bundle.images[0], stamp_ns=bundle.images[0].stamp_ns)  # a copy: depth is cached by picture
    reduced = replace(bundle, clouds=(cloud.with_raw(cloud.raw[~out]),), images=(image,))
    column, row = np.rint(pixels).astype(int).T
    for name, method in methods.items():
        found = method(reduced)[row, column]
        yield name, range_m, np.where(np.isfinite(found), np.abs(found - range_m) / range_m, 9.0)


def main() -> None:
    """Print the errors of each method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bag", type=Path)
    parser.add_argument("--every", type=int, default=5, help="use one frame in so many")
    args = parser.parse_args()
    methods = {"ours": ours, "nearest": nearest, "IP-Basic": ip_basic}
    frames = list(mt.frames(args.bag, sensors=("lidar", "camera")))[:: args.every]
    for which in ("every fourth", "upper fifth"):
        found: dict[str, list[tuple[Floats, Floats]]] = {name: [] for name in methods}
        for frame in frames:
            for name, range_m, error in errors(frame.bundle, which, methods):
                found[name].append((range_m, error))
        print(which)
        for name, parts in found.items():
            range_m, error = (np.concatenate(column) for column in zip(*parts, strict=True))
            row = []
            for low, high in zip(RANGES_M[:-1], RANGES_M[1:], strict=True):
                part = error[(range_m >= low) & (range_m < high)]
                row.append(f"{100 * np.median(part):5.1f} {100 * np.mean(part > 0.1):5.1f}" if len(part) > 50 else "    -     -")
            print(f"  {name:10s} median {100*np.median(error):5.2f} %  >10 % {100*np.mean(error > 0.1):5.1f} %   by range: {' | '.join(row)}  n {len(error)}")
    began = time.perf_counter()
    for frame in frames:
        image = replace(frame.bundle.images[0], stamp_ns=1)
        depth.depth_of(replace(frame.bundle, images=(image,)), image, camera_of(frame.bundle))
    print(f"ours: {1e3 * (time.perf_counter() - began) / len(frames):.1f} ms a picture")


if __name__ == "__main__":
    main()
