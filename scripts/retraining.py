# SPDX-License-Identifier: Apache-2.0
"""Mends a hole of the learned reference detector with its own failing inputs, and measures it: docs/retraining.md.

    python scripts/retraining.py --out /tmp/retraining     # about an hour on two cores; goes on where it was stopped

Streets of four seeds, which have nothing in common: one to find failing inputs in, one to learn from beside them, one
to measure recall and false detections, and one for the violation rates of other relations. Every step is a command of
`mt`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from mt_nodes.base.resources import find
from mt_nodes.base.stats.intervals import fisher_p, wilson_interval
from mt_nodes.cli.main import main as mt
from mt_nodes.data.datasets.kitti_writer import KittiFrame, lidar_alone, write_split
from mt_nodes.data.ground_truth import LEAST_POINTS
from mt_nodes.data.outputs import Detections
from mt_nodes.runs.models.detector_evaluation import AREA_M, LEAST_RETURNS, DetectorScore, detector_score
from mt_nodes.runs.models.labelled_clouds import LabelledCloud, labelled_cloud
from mt_nodes.stacks.callable_host import CallableHost
from mt_nodes.stacks.reference.cell_objects import CLASSES
from mt_nodes.stacks.stack import load_stack

RELATION = "object_replaced_truck"
#: Seeds of the streets in which failing inputs are found, and of those for rates of other relations. The training has
#: seed 1, and the evaluation that of `mt models evaluate-detector`.
FOUND_SEED, OTHERS_SEED, UNSEEN_SEED = 5000, 7000, 1_000_003
OTHERS = (
    *("object_replaced_van", "object_replaced_child", "cloud_mirrored", "density_decreased_2", "rain_keeps_obstacles"),
    "noise_outside_roi_1000",
)
#: KITTI's reflectance is 0..1.
KITTI_SCALE = ("--set", "params.intensity_full_scale=1.0")
INPROCESS = ("--stack", "reference_cnnseg", "--transport", "inprocess")


def write_streets(home: Path, seed: int, count: int) -> None:
    """Write labelled clouds of made-up streets in KITTI's layout."""
    if (home / "ImageSets").is_dir():
        return
    with ProcessPoolExecutor() as pool:
        list(pool.map(partial(_write_street, home, seed), range(count)))
    write_split(home, [f"{i:06d}" for i in range(count)])


def _write_street(home: Path, seed: int, index: int) -> None:
    cloud = labelled_cloud(seed, index)
    centre = np.column_stack([cloud.centre_m, cloud.top_m - cloud.size_m[:, 2] / 2.0])
    labels = [CLASSES[kind] for kind in cloud.kind]
    objects = Detections.make("velodyne", None, centre, cloud.size_m, cloud.yaw_rad, labels)
    returns = np.bincount(cloud.owner[cloud.owner >= 0], minlength=len(objects))
    points = cloud.points * np.array([1.0, 1.0, 1.0, 1.0 / 255.0], dtype=np.float32)
    nothing = objects.take(np.zeros(len(objects), dtype=bool))
    frame = KittiFrame(points, objects.take(returns >= LEAST_POINTS), nothing, lidar_alone())
    frame.write(home / "training", f"{index:06d}")


def once(done: Path, *words: Any) -> None:
    """Run a command of `mt` unless what it makes is there; a half-made directory is removed."""
    if not done.exists():
        place = done.parent
        shutil.rmtree(place, ignore_errors=True)
        print("$ mt", *words, flush=True)
        code = mt([str(word) for word in words])
        assert done.exists(), f"exit code {code}, and no {done}"


def unseen(wanted: Callable[[LabelledCloud], bool], count: int) -> Iterator[LabelledCloud]:
    """Yield so many streets of the evaluation that are wanted."""
    streets = (labelled_cloud(UNSEEN_SEED, index) for index in itertools.count())
    return itertools.islice(filter(wanted, streets), count)


def has(label: str, cloud: LabelledCloud) -> bool:
    """Whether an object of a class is to be found, by what the evaluation demands."""
    near, far, aside = AREA_M
    returns = np.bincount(cloud.owner[cloud.owner >= 0], minlength=len(cloud.kind))
    x, y = cloud.centre_m.T
    inside = (x >= near) & (x <= far) & (np.abs(y) <= aside)
    return bool((inside & (returns >= LEAST_RETURNS) & (cloud.kind == CLASSES.index(label))).any())


def stack_file(place: Path, weights: Path) -> Path:
    """Write the stack with other weights."""
    content = yaml.safe_load(Path(find("stacks", "reference_cnnseg")).read_text())
    path = place / "retrained.yaml"
    path.write_text(yaml.safe_dump({**content, "params": {"weights": str(weights.resolve())}}, sort_keys=False))
    return path


def recall(stack: str, clouds: Iterable[LabelledCloud]) -> DetectorScore:
    """Measure a stack at the threshold of its file."""
    loaded = load_stack(stack)
    return detector_score(CallableHost.make(loaded), clouds, loaded.traits.thresholds("detections").high)


def shares(before: DetectorScore, after: DetectorScore, names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield what was found of each class, before and after."""
    rows = {score: {row.label: row for row in score.classes} for score in (before, after)}
    for name in names:
        was, now = rows[before][name], rows[after][name]
        pairs = [(row.found, row.objects) for row in (was, now)]
        yield {
            "what": f"{'other' if name == 'unknown' else name}: found",
            "before": pairs[0],
            "after": pairs[1],
            "p": fisher_p(*pairs),
        }


def table(rows: Iterable[dict[str, Any]]) -> str:
    """Return rows as a table in Markdown, with 95 % intervals (Wilson) and Fisher's exact test."""
    lines = ["| | before | after | p |", "| --- | --- | --- | --- |"]
    for row in rows:
        cells = [_share(*row[when]) for when in ("before", "after")]
        lines.append(f"| {row['what']} | {cells[0]} | {cells[1]} | {row['p']:.2g} |")
    return "\n".join(lines)


def _share(hits: int, trials: int) -> str:
    low, high = wilson_interval(hits, trials) or (0.0, 1.0)
    return f"{hits} of {trials}, {hits / max(trials, 1):.0%} ({low:.0%} to {high:.0%})"


def picture(path: Path, rows: list[dict[str, Any]]) -> None:
    """Draw what was found before and after."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
    for offset, when, colour in ((-0.19, "before", "#999999"), (0.19, "after", "#0072B2")):
        share = np.array([row[when][0] / max(row[when][1], 1) for row in rows])
        ends = np.array([wilson_interval(*row[when]) or (0.0, 1.0) for row in rows])
        errors = np.abs(ends.T - share)
        axis.bar(np.arange(len(rows)) + offset, share, 0.36, yerr=errors, capsize=3, color=colour, label=when)
    axis.set_xticks(range(len(rows)), [row["what"].replace(": found", "") for row in rows])
    axis.set(ylim=(0.0, 1.0), ylabel="recall on unseen streets")
    axis.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, title="retraining")
    figure.savefig(path, dpi=150)


def rates(home: Path) -> dict[str, tuple[int, int]]:
    """Return violated and decided pairs of the relations of a run."""
    rows = json.loads((home / "summary.json").read_text())["relations"]
    return {name: (row["violated"], row["decided"]) for name, row in rows.items() if name in OTHERS}


def main() -> None:
    """Run all steps that are not done, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--streets", type=int, default=473, help="in which failing inputs are found")
    parser.add_argument("--frames", type=int, default=500, help="that are exported at most")
    parser.add_argument("--replayed", type=int, default=60, help="of them that are replayed before and after")
    parser.add_argument("--clouds", type=int, default=1440, help="of the training; with fewer it forgets other things")
    parser.add_argument("--unseen", type=int, default=60, help="streets for recall, and as many with each rare class")
    parser.add_argument("--others", type=int, default=24, help="streets for other relations")
    parser.add_argument("--picture", type=Path, help="where the picture goes, too")
    args = parser.parse_args()
    out: Path = args.out
    out.mkdir(parents=True, exist_ok=True)
    database = ("--failures-file", out / "replayed.sqlite")
    write_streets(out / "streets", FOUND_SEED, args.streets)
    given = (*INPROCESS, *KITTI_SCALE, "--relations", RELATION, "--draws", 3, "--out", out / "found")
    once(out / "found/summary.json", "replay", f"kitti:{out / 'streets'}", *given)
    export = ("replay", "failures", "export", out / "found", "--format", "kitti")
    words = ("--limit", args.frames, "--out", out / "failing", "--failures-file", out / "failures.sqlite")
    once(out / "failing/manifest.json", *export, *words)
    words = ("--limit", args.replayed, "--out", out / "replayed", *database)
    once(out / "replayed/manifest.json", *export, *words)
    again = ("replay", "--failures", *database, *INPROCESS, *KITTI_SCALE, "--fresh-draws", 1)
    once(out / "before/failures.json", *again, "--out", out / "before")
    weights = out / "retrained/cnnseg.onnx"
    train = ("models", "train-detector", "--start", "cnnseg_streets", "--add", out / "failing", "--clouds", args.clouds)
    once(weights, *train, "--rate", 0.0007, "--out", out / "retrained")
    new = ("--set", f"params.weights={weights}")
    once(out / "after/failures.json", *again, *new, "--before", out / "before", "--out", out / "after")
    write_streets(out / "other_streets", OTHERS_SEED, args.others)
    others = ("replay", f"kitti:{out / 'other_streets'}", *INPROCESS, *KITTI_SCALE, "--relations", ",".join(OTHERS))
    once(out / "others_before/summary.json", *others, "--out", out / "others_before")
    once(out / "others_after/summary.json", *others, *new, "--out", out / "others_after")
    report(out, str(stack_file(out, weights)), args.unseen, args.picture)


def report(out: Path, retrained: str, count: int, place: Path | None) -> None:
    """Measure recall, and print the tables; rare classes are measured in streets that have them."""
    stacks, plain = ("reference_cnnseg", retrained), list(unseen(lambda cloud: True, count))
    before, after = (recall(stack, plain) for stack in stacks)
    rare = {}
    for name in ("truck", "unknown"):
        streets = list(unseen(partial(has, name), count))
        (rare[name],) = shares(recall(stacks[0], streets), recall(stacks[1], streets), [name])
    found = [rare["truck"], *shares(before, after, ("car", "cyclist", "pedestrian")), rare["unknown"]]
    wrong = [(score.wrong, score.said) for score in (before, after)]
    print(
        table(
            [
                *found,
                {"what": "detections that are wrong", "before": wrong[0], "after": wrong[1], "p": fisher_p(*wrong)},
            ]
        )
    )
    was, now = rates(out / "others_before"), rates(out / "others_after")
    violated = [
        {"what": f"`{name}`: violated", "before": was[name], "after": now[name], "p": fisher_p(was[name], now[name])}
        for name in OTHERS
        if name in was and name in now
    ]
    print(table(violated))
    for row in json.loads((out / "after/failures.json").read_text())["mended"]:
        print(json.dumps(row))
    for path in filter(None, (out / "recall.png", place)):
        picture(path, found)


if __name__ == "__main__":
    main()
