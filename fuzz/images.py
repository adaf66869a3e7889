# SPDX-License-Identifier: Apache-2.0
"""Images: raw and compressed, with their calibration, decoded, changed by mutations of cameras, encoded and decoded."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from fuzz.cases import EDGES, Case, Target, applied, edit
from fuzz.clouds import NUMBERS, parameters
from fuzz.invariant import require, told_well
from mt_nodes.base import plugins
from mt_nodes.base.errors import MtError, NotApplicable
from mt_nodes.base.params import build
from mt_nodes.data.cdr import codec
from mt_nodes.data.images.codecs import decode as pictured
from mt_nodes.data.images.codecs import encode as coded
from mt_nodes.data.messages import Bundle, CameraInfo, Cloud, Image
from mt_nodes.data.transforms import Transform, TransformTree, pose_matrix
from mt_nodes.relations.mutations.base import Followup, Mutation
from mt_nodes.relations.pipeline import MutationPipeline

TOPIC = "/camera/image"
RAW, COMPRESSED = "Image", "CompressedImage"
#: The LiDAR above ``base_link``, the camera looking ahead beside it.
TREE = TransformTree(
    [
        Transform("base_link", "lidar", pose_matrix((0.5, 0.0, 1.7), (0.0, 0.0, 0.0, 1.0))),
        Transform("base_link", "camera", pose_matrix((0.6, 0.0, 1.5), (-0.5, 0.5, -0.5, 0.5))),
    ]
)
#: Encoding -> bytes a pixel, apart from the package's own table; the last ones are none of light, or none at all.
ENCODINGS = {
    **{f"{order}8": len(order) for order in ("rgb", "bgr", "rgba", "bgra")},
    **{f"{order}16": 2 * len(order) for order in ("rgb", "bgr", "rgba", "bgra")},
    **dict.fromkeys(("mono8", "8UC1", "bayer_rggb8", "bayer_bggr8", "bayer_gbrg8", "bayer_grbg8"), 1),
    **dict.fromkeys(("mono16", "bayer_rggb16", "bayer_bggr16", "yuv422", "yuv422_yuy2", "uyvy", "yuyv", "16UC1"), 2),
    **{"8UC3": 3, "8UC4": 4, "32FC1": 4, "8UC2": 2, "64FC9": 72, "nv12": 1, "": 1, "BGR8": 3, "8UC0": 1, "8UC99999": 9},
}
SIZES = (0, 1, 2, 3, 4, 7, 8, 16, 24)
MODELS = ("plumb_bob", "rational_polynomial", "equidistant", "fisheye", "", "unheard_of")
#: So many mutations are tried on each image: all of them would take seconds.
MOST_MUTATIONS = 4
Told = dict[str, Any]


@st.composite
def messages(draw: st.DrawFn, kind: str) -> Told:
    """Draw an image that is sound, its calibration, and up to three statements of both changed."""
    told = draw(_raw() if kind == RAW else _compressed())
    told["info"] = draw(st.one_of(st.none(), _info(told)))
    for name in draw(st.lists(st.sampled_from(sorted(_CHANGES[kind])), unique=True, max_size=2)):
        told[name] = draw(_CHANGES[kind][name](told))
    return told


@st.composite
def _raw(draw: st.DrawFn) -> Told:
    encoding = draw(st.one_of(st.sampled_from(sorted(ENCODINGS)), st.sampled_from(("bgr8", "rgb8", "mono8"))))
    height, width = draw(st.sampled_from(SIZES)), draw(st.sampled_from(SIZES))
    step = width * ENCODINGS[encoding] + draw(st.sampled_from((0, 0, 0, 1, 12)))
    data = draw(_pixels(height * step))
    order = draw(st.booleans())
    sizes = {"height": height, "width": width, "step": step, "is_bigendian": order}
    return {"kind": RAW, "encoding": encoding, "data": data.hex(), **sizes}


def _pixels(size: int) -> st.SearchStrategy[bytes]:
    """Bytes that are all the same, or noise, or a slope."""
    noise = st.integers(0, 2**32 - 1).map(lambda seed: np.random.default_rng(seed).bytes(size))
    flat = st.sampled_from((0, 1, 127, 128, 255)).map(lambda value: bytes([value]) * size)
    return st.one_of(noise, flat, st.just((bytes(range(256)) * (size // 256 + 1))[:size]))


@st.composite
def _compressed(draw: st.DrawFn) -> Told:
    height, width = draw(st.sampled_from(SIZES[1:])), draw(st.sampled_from(SIZES[1:]))
    channels, deep = draw(st.sampled_from((1, 3, 3, 4))), draw(st.booleans())
    suffix = draw(st.sampled_from((".jpg", ".jpg", ".png", ".bmp")))
    kind = np.uint16 if deep and suffix == ".png" else np.uint8
    data = draw(_pixels(height * width * channels * kind().itemsize))
    pixels = np.frombuffer(data, kind).reshape(height, width, channels)
    if suffix != ".png" and channels == 4:
        pixels = pixels[..., :3]
    quality = [cv2.IMWRITE_JPEG_QUALITY, draw(st.integers(1, 100))] if suffix == ".jpg" else []
    data = cv2.imencode(suffix, np.ascontiguousarray(pixels), quality)[1].tobytes()
    form = draw(st.sampled_from(("jpeg", "png", "bgr8; jpeg compressed bgr8", "", "avif", "é")))
    return {"kind": COMPRESSED, "encoding": form, "data": data.hex(), "height": height, "width": width}


@st.composite
def _info(draw: st.DrawFn, told: Told) -> Told:
    """A calibration that fits the image, with a few numbers that do not."""
    focal, d = float(max(1, told["width"])), [0.0] * draw(st.sampled_from((0, 4, 5, 8, 12, 14)))
    k = [focal, 0.0, told["width"] / 2, 0.0, focal, told["height"] / 2, 0.0, 0.0, 1.0]
    p = [*k[:3], 0.0, *k[3:6], 0.0, *k[6:], 0.0]
    info = {"width": told["width"], "height": told["height"], "model": draw(st.sampled_from(MODELS))}
    d = [draw(st.sampled_from((0.0, 0.0, 0.1, -0.3))) for _ in d]
    made = {**info, "k": k, "d": d, "r": np.eye(3).reshape(-1).tolist(), "p": p}
    for name in draw(st.lists(st.sampled_from(("k", "p", "width", "height", "d", "frame_id")), max_size=2)):
        if name in ("width", "height"):
            made[name] = draw(st.sampled_from((0, 1, min(2 * max(1, told[name]), 2**32 - 1))))
        elif name == "frame_id":
            made[name] = draw(st.sampled_from(("nowhere", "")))
        elif made[name]:
            made[name] = list(made[name])
            made[name][draw(st.integers(0, len(made[name]) - 1))] = draw(st.sampled_from(NUMBERS))
    return made


_NUMBER = st.one_of(st.sampled_from(EDGES), st.integers(0, 40))


def _other_data(told: Told) -> st.SearchStrategy[str]:
    data = bytes.fromhex(told["data"])
    cut = st.integers(0, len(data)).map(lambda n: data[:n].hex())
    edited = st.lists(edit(len(data)), min_size=1, max_size=4).map(lambda edits: applied(data, edits).hex())
    return st.one_of(cut, edited)


_CHANGES: dict[str, dict[str, Any]] = {
    RAW: {
        **{name: lambda told: _NUMBER for name in ("height", "width", "step")},
        "encoding": lambda told: st.sampled_from(sorted(ENCODINGS)),
        "data": _other_data,
    },
    COMPRESSED: {"data": _other_data, "encoding": lambda told: st.text(max_size=8)},
}


@cache
def _mutations() -> dict[str, type[Mutation]]:
    """Those that change images, by name."""
    return {n: cls for n, cls in plugins.catalogue("mutations").items() if "camera" in cls.sensors}  # type: ignore[attr-defined]


def mutations() -> st.SearchStrategy[dict[str, Told]]:
    """Draw a few mutations of images and parameters for them."""
    names = st.lists(st.sampled_from(sorted(_mutations())), unique=True, max_size=MOST_MUTATIONS)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({n: parameters(_mutations()[n]) for n in chosen}))


def cases() -> st.SearchStrategy[Case]:
    """Draw an image and what is done to it, as JSON."""

    def of(kind: str) -> st.SearchStrategy[Case]:
        both = st.tuples(messages(kind), mutations())
        return both.map(lambda two: Case(kind, json.dumps({**two[0], "mutations": two[1]}).encode()))

    return st.sampled_from((RAW, RAW, COMPRESSED)).flatmap(of)


def sound(kind: str) -> bytes:
    """Return a small picture of a slope, as JSON."""
    pixels = np.add.outer(np.arange(16), np.arange(24))[..., None].repeat(3, axis=2).astype(np.uint8) * 6
    told = {"kind": kind, "encoding": "bgr8", "height": 16, "width": 24, "step": 72, "is_bigendian": False}
    data = pixels.tobytes() if kind == RAW else cv2.imencode(".jpg", pixels)[1].tobytes()
    return json.dumps({**told, "data": data.hex(), "info": None, "mutations": {}}).encode()


def check(case: Case, place: Path) -> str:
    """Decode, derive follow-ups, encode and decode."""
    told = json.loads(case.data)
    image = codec.image_from_msg(TOPIC, codec.decode(_type(told), encoded(told)))
    if told["kind"] == RAW:
        _as_told(image, told)
    _comes_back(image)
    infos = () if told["info"] is None else (_calibration(told["info"]),)
    bundle = Bundle(0, 0, image.stamp_ns, (_cloud(),), (image,), infos, TREE)
    ends = {_followed(bundle, name, params) for name, params in told["mutations"].items()}
    return f"read, {_shown(image)}; follow-ups " + ", ".join(sorted(ends))


def encoded(told: Told) -> bytes:
    """Return the CDR bytes of a message told as plain data, whether or not it makes sense."""
    types, header = codec.typestore().types, codec.header_of("camera", 0)
    data = np.frombuffer(bytes.fromhex(told["data"]), np.uint8)
    if told["kind"] == COMPRESSED:
        return codec.encode(codec.COMPRESSED_IMAGE, types[codec.COMPRESSED_IMAGE](header, told["encoding"], data))
    sizes = {name: told[name] for name in ("height", "width", "encoding", "step")}
    message = types[codec.IMAGE](header=header, is_bigendian=int(told["is_bigendian"]), data=data, **sizes)
    return codec.encode(codec.IMAGE, message)


def _type(told: Told) -> str:
    return codec.IMAGE if told["kind"] == RAW else codec.COMPRESSED_IMAGE


def _calibration(told: Told) -> CameraInfo:
    """Read a calibration as a bag's: encoded and decoded."""
    matrices = {name: np.array(told[name], np.float64) for name in "dkrp"}
    types, frame = codec.typestore().types, told.get("frame_id", "camera")
    no_roi = types["sensor_msgs/msg/RegionOfInterest"](x_offset=0, y_offset=0, height=0, width=0, do_rectify=False)
    message = types[codec.CAMERA_INFO](
        header=codec.header_of(frame, 0),
        height=told["height"],
        width=told["width"],
        distortion_model=told["model"],
        binning_x=0,
        binning_y=0,
        roi=no_roi,
        **matrices,
    )
    data = codec.encode(codec.CAMERA_INFO, message)
    return codec.camera_info_from_msg("/camera/camera_info", codec.decode(codec.CAMERA_INFO, data))


@cache
def _cloud() -> Cloud:
    """A few points ahead, on the ground and above, for what needs depth."""
    rng = np.random.default_rng(1)
    points = np.zeros(200, np.dtype([(name, "<f4") for name in ("x", "y", "z", "intensity")]))
    for name, low, high in (("x", 3, 40), ("y", -8, 8), ("z", -1.7, 1.0), ("intensity", 0, 1)):
        points[name] = rng.uniform(low, high, len(points))
    return Cloud("/points", 0, "lidar", points)


def _as_told(image: Image, told: Told) -> None:
    """Read the message a second time, byte by byte, and find the same in the image."""
    size = ENCODINGS.get(told["encoding"], 0)
    require(size > 0, f"encoding {told['encoding']!r} was accepted")
    height, width, step, data = told["height"], told["width"], told["step"], bytes.fromhex(told["data"])
    require(len(data) == height * step and (not height or step >= width * size), "sizes that do not fit were accepted")
    require(image.pixels.shape[:2] == (height, width), f"{image.pixels.shape} of {height} x {width}")
    raw = np.ascontiguousarray(image.pixels).reshape(-1).view(np.uint8).tobytes()
    for row in {0, height - 1} if height else ():
        here = raw[row * width * size : (row + 1) * width * size]
        require(here == data[row * step : row * step + width * size], f"row {row} is not what the message says")


def _shown(image: Image) -> str:
    """Decode an image and encode it again: a lossless one must be the same."""
    try:
        picture = pictured(image)
    except MtError as error:
        told_well(error, TOPIC)
        return "shows nothing"
    again = coded(picture, image)
    if image.compressed is None:
        require(_content(again) == _content(image), "pixels that nobody changed came back otherwise")
    require(pictured(again).pixels.shape == picture.pixels.shape, "a picture came back in another size")
    return "shown"


def _comes_back(image: Image) -> None:
    """Encode and decode: nothing may have changed."""
    back = codec.image_from_msg(TOPIC, codec.decode(codec.type_of(image), codec.encode_image(image)))
    for name in ("stamp_ns", "frame_id", "encoding", "compressed"):
        require(getattr(back, name) == getattr(image, name), f"{name} came back otherwise")
    require(back.pixels.shape == image.pixels.shape or not image.pixels.size, "the size came back otherwise")
    require(_content(back) == _content(image), "pixels came back otherwise")


def _followed(bundle: Bundle, name: str, params: Told) -> str:
    try:
        mutation: Mutation = build(plugins.find("mutations", name, TOPIC), params, f"{TOPIC}: {name}")
        pipeline = MutationPipeline([mutation], 0, "fuzz")
        derived = pipeline.derive(bundle)
    except NotApplicable as reason:
        require(bool(str(reason)), f"{name} is not applicable without a reason")
        return "none"
    except MtError as error:  # of parameters, frames or pictures; the other mutations are tried all the same
        told_well(error, "")
        return "refused"
    require(derived.broken is None, f"{name} is not what was promised: {derived.broken}")
    for _, made in derived.followup.bundles:
        for image in made.images:
            _comes_back(image)
    again = pipeline.rebuild(bundle, derived.draws)
    same = [_all(b) for _, b in again.bundles] == [_all(b) for _, b in derived.followup.bundles]
    require(same, f"{name} differs when made again")
    if not derived.followup.bundles:
        return "nothing sent"
    if bundle.images[0].topic in derived.followup.first.changed_topics(bundle) and not mutation.about_stamps:
        _finds_a_lie(mutation, bundle, derived.followup, derived.draws[0])
    return "proved"


def _finds_a_lie(mutation: Mutation, source: Bundle, followup: Followup, draw: Told) -> None:
    """A follow-up that shows what the source shows must not be proved."""
    if _all(followup.first)[1] == _all(source)[1]:
        return  # it came in another bundle, or under another stamp
    lie = replace(followup.first, images=source.images)
    told = mutation.guarantee(source, Followup(((0, lie), *followup.bundles[1:]), followup.effects), draw)
    require(told is not None, f"{type(mutation).__name__} proved an image that did not change")


def _all(bundle: Bundle) -> list[Any]:
    return [[cloud.raw.tobytes() for cloud in bundle.clouds], [_content(image) for image in bundle.images]]


def _content(image: Image) -> bytes:
    pixels: npt.NDArray[Any] = np.ascontiguousarray(image.pixels)
    return pixels.tobytes() + (image.compressed or b"")


TARGET = Target("images", (RAW, COMPRESSED), cases, sound, check, TOPIC)
