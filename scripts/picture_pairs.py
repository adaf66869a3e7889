# SPDX-License-Identifier: Apache-2.0
"""Makes a page of forty pictures before and after a change, beside other libraries' operators: `make pictures`."""

from __future__ import annotations

import argparse
import base64
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import jinja2
import numpy as np
import numpy.typing as npt
import yaml
from picture_changes import SEEDS, changes
from picture_peers import LIBRARIES, described, installed, peers_of

import mt_nodes as mt
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive

Pixels = npt.NDArray[np.uint8]
FILE = Path(__file__).with_name("picture_pairs.yaml")
TEMPLATE = Path(__file__).with_name("picture_pairs.html")
#: Length of the generated drive.
DRIVE_FRAMES = 26


@dataclass(frozen=True)
class Operator:
    """What is shown: a mutation with its parameters, at shares of the drive, and the marks that people gave it."""

    name: str
    mutation: str
    at: tuple[float, ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    marks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Pair:
    """One picture before and after.

    Attributes:
        frame: number of the frame in its bag.
        before, after: (H, W, 3) RGB; ``after`` is None where there is no honest follow-up: see ``reason``.
        peers: name of the operator and its picture by library.
    """

    operator: Operator
    frame: int
    before: Pixels
    after: Pixels | None
    reason: str
    peers: Mapping[str, tuple[str, Pixels]]


def operators(path: Path = FILE) -> list[Operator]:
    """Return what the file lists."""
    return [
        Operator(row["name"], row["mutation"], tuple(row["at"]), row.get("with", {}), row.get("marks", {}))
        for row in yaml.safe_load(path.read_text(encoding="utf-8"))["pairs"]
    ]


def change(frame: mt.Frame, operator: Operator) -> Pixels:
    """Return the picture (H, W, 3) of a frame changed by an operator.

    A thing is added in this frame, by the first seed that puts it into full view: it has no past that would show.

    Raises:
        NotApplicable: it has no honest follow-up, with none of the seeds.
    """
    if not operator.mutation.endswith("_added"):
        return np.asarray(mt.mutate(frame, operator.mutation, **operator.parameters).image)
    for seed in range(SEEDS):
        for changed in changes([frame], operator.mutation, operator.parameters, seed):
            if changed.box is not None:
                return changed.after
    raise NotApplicable(f"none of {SEEDS} places is free and in full view")


def pairs(frames: Sequence[mt.Frame], chosen: Sequence[Operator]) -> Iterator[Pair]:
    """Yield the pairs of operators, each with what the installed libraries make of the same picture."""
    for operator in chosen:
        for at in operator.at:
            yield pair(frames, operator, round(at * (len(frames) - 1)))


def pair(frames: Sequence[mt.Frame], operator: Operator, index: int) -> Pair:
    """Return the pair of one frame, or of the next one that has a follow-up."""
    reason = ""
    for frame in (*frames[index:], *frames[:index]):
        try:
            after = change(frame, operator)
        except NotApplicable as error:
            reason = reason or str(error)
            continue
        return Pair(operator, frame.index, np.asarray(frame.image), after, "", _beside(frame, operator))
    frame = frames[index]
    return Pair(operator, frame.index, np.asarray(frame.image), None, reason, _beside(frame, operator))


def _beside(frame: mt.Frame, operator: Operator) -> dict[str, tuple[str, Pixels]]:
    rgb = np.ascontiguousarray(frame.image)
    return {library: (name, run(rgb)) for library, (name, run) in peers_of(operator.mutation).items()}


def page(made: Sequence[Pair], drive: str, width: int, quality: int) -> str:
    """Return the page: HTML with its pictures in it.

    Args:
        made: the pairs.
        drive: its name.
        width: of the pictures; those of smaller ones stay as they are.
        quality: of JPEG, 1 to 100.
    """
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters["data"] = lambda rgb: _data(rgb, width, quality)
    shown = sum(pair.after is not None for pair in made)
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        pairs=made, shown=shown, drive=drive, libraries=LIBRARIES, peers=described(installed()), version=mt.__version__
    )


def _data(rgb: Pixels, width: int, quality: int) -> str:
    if rgb.shape[1] > width:
        rgb = cv2.resize(rgb, (width, round(rgb.shape[0] * width / rgb.shape[1])), interpolation=cv2.INTER_AREA)
    _, coded = cv2.imencode(".jpg", rgb[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])
    return "data:image/jpeg;base64," + base64.b64encode(coded.tobytes()).decode()


def drive_of(bag: Path | None, scratch: Path) -> list[mt.Frame]:
    """Return the frames of a bag, or of a generated drive that is written into a folder."""
    if bag is None:
        bag = scratch / "generated_drive"
        if not bag.exists():
            write_bundles(bag, generate_drive(DRIVE_FRAMES, camera=CameraSensor(width=960, height=640)))
    return list(mt.frames(bag, sensors=("lidar", "camera")))


def main() -> int:
    """Make the page; return 1 if a pair has no picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bag", type=Path, nargs="?", help="with LiDAR and camera (default: a generated drive)")
    parser.add_argument("--out", type=Path, default=Path("pictures"), help="folder for index.html (default: pictures)")
    parser.add_argument("--names", default="", help="only operators whose name contains this")
    parser.add_argument("--width", type=int, default=1280, help="pictures are at most so many pixels wide")
    parser.add_argument("--quality", type=int, default=92, help="of the JPEG files in the page")
    parser.add_argument("--png", action="store_true", help="write each picture at full size, too")
    args = parser.parse_args()
    chosen = [operator for operator in operators() if args.names in operator.name]
    if not chosen:
        parser.error(f"--names: no operator's name contains '{args.names}'")
    args.out.mkdir(parents=True, exist_ok=True)
    print(f"peers: {described(installed())}")
    made = []
    for one in pairs(drive_of(args.bag, args.out), chosen):
        print(f"{one.operator.name}: frame {one.frame}{': ' + one.reason if one.reason else ''}", flush=True)
        made.append(one)
        if args.png:
            write_pictures(one, args.out, len(made))
    name = args.bag.resolve().name if args.bag else "generated drive"
    path = args.out / "index.html"
    path.write_text(page(made, name, args.width, args.quality), encoding="utf-8")
    missing = sum(pair.after is None for pair in made)
    print(f"{path}: {len(made) - missing} pairs" + (f", {missing} without a picture" if missing else ""))
    return int(bool(missing))


def write_pictures(one: Pair, folder: Path, number: int) -> None:
    """Write the pictures of a pair as PNG files, at full size."""
    after = {} if one.after is None else {"after": one.after}
    for what, rgb in {"before": one.before, **after, **{k: v for k, (_, v) in one.peers.items()}}.items():
        name = f"{number:02d}_{one.operator.name.replace(' ', '_')}_{what}.png"
        cv2.imwrite(str(folder / name), rgb[..., ::-1])


if __name__ == "__main__":
    sys.exit(main())
