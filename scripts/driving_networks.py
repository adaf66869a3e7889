# SPDX-License-Identifier: Apache-2.0
"""Makes the six driving networks of AutoMT: records, trains, lets each drive laps, and prints the table of the laps.

    python scripts/driving_networks.py WORK                                # all six; hours on a processor, so:
    python scripts/driving_networks.py WORK --device cuda --height-px 160 --width-px 320
    python scripts/driving_networks.py WORK --network cnn3d --network pilotnet --epochs 8

An expert drives by day, at night and in rain, slower in the last two, in towns of several sizes, and relations change
some of the pictures (exposure, colours, dead pixels). PilotNet learns from that and drives while the expert labels what
it sees; all networks learn from both. ``--without night`` leaves the night out and makes ``pilotnet_no_night``, in
which relations have something to find: see planted_weaknesses.py. A run that was stopped goes on where it was. WORK
then holds ``frames``, a directory with ``weights.pt`` for each network, and ``laps.json``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from network_laps import DAYLIGHT, LIGHTS, LapPlan, driven, show

#: Options of `mt models record` by weather: the expert's speed on a straight road, and what is drawn.
WEATHER = {
    "day": (),
    "night": ("--cruise", "5.5", "--set", "from_hour=20", "--set", "to_hour=24"),
    "rain": ("--cruise", "5.5", "--set", "from_rain=0.3", "--set", "to_rain=0.7"),
}
EDITS = (
    *("exposure_half_stop_up_keeps_speed", "exposure_one_stop_down_steering", "saturation_raised_steering"),
    "pixels_dead_steering",
)
#: Options of `mt models train` by network: few windows need small batches, deep networks low rates.
RECIPES = {
    "pilotnet": ("--batch", "64", "--epochs", "24"),
    "epoch": ("--batch", "32", "--epochs", "12", "--rate", "0.0003"),
    "cnn_lstm": ("--batch", "32", "--epochs", "12"),
    "cnn3d": ("--batch", "32", "--epochs", "12"),
    "resnet101": ("--batch", "16", "--epochs", "12", "--rate", "0.0001"),
    "vgg16": ("--batch", "16", "--epochs", "12", "--rate", "0.00001"),
}
_ALL = ("--ahead", "0", "--crop-top", "0.41", "--brightness", "0.3", "--balance", "1", "--half")
_FIRST_SEED, _DRIVEN_SEED = 1, 1001


def main(words: Sequence[str] | None = None) -> int:
    """Make what is asked for, print the laps, return the exit code: 1 where a network does not drive by day."""
    args = _parser().parse_args(words)
    frames = {name: [_recorded(args, name, "expert", _FIRST_SEED)] for name in WEATHER}
    if args.pilot:
        first = _trained(args, "pilotnet", "first", [path for paths in frames.values() for path in paths])
        for name, paths in frames.items():
            paths.append(_recorded(args, name, "driven", _DRIVEN_SEED, ("--driver", str(first))))
    weather = [name for name in WEATHER if name not in args.without]
    learned, lacking = [path for name in weather for path in frames[name]], "".join(f"_no_{w}" for w in args.without)
    weights = {name: _trained(args, name, name + lacking, learned) for name in args.network or RECIPES}
    lights = args.light or tuple(LIGHTS)
    plan = LapPlan(lights, (*DAYLIGHT, *(w for w in weather if w in LIGHTS)), args.laps)
    rows = [row for name, path in weights.items() for row in driven(name, str(path), plan)]
    (args.work / f"laps{lacking}.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    show(rows)
    return int(any(row["in_lane"] < row["laps"] for row in rows if row["light"] in DAYLIGHT))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("work", type=Path, metavar="WORK", help="directory for everything")
    add("--network", action="append", choices=RECIPES, help="only this; may be given again")
    add("--without", action="append", choices=("night", "rain"), default=[], help="learn nothing of this weather")
    add("--drives", type=int, default=3, help="drives by day; at night and in rain two thirds as many (default 3)")
    add("--seconds", type=float, default=60.0, help="length of a drive, s (default 60)")
    add("--epochs", type=int, help="epochs of every network (default: of its recipe)")
    add("--height-px", type=int, default=66, help="height of the networks' input (default 66)")
    add("--width-px", type=int, default=200, help="width of the networks' input (default 200)")
    add("--device", default="cpu", help="cpu, cuda or cuda:N (default cpu)")
    add("--no-pilot", dest="pilot", action="store_false", help="learn from the expert's drives alone")
    add("--light", action="append", choices=LIGHTS, help="drive laps only in this; may be given again")
    add("--laps", type=int, default=1, help="laps a light (default 1)")
    return parser


def _recorded(args: argparse.Namespace, weather: str, who: str, seed: int, more: Sequence[str] = ()) -> Path:
    """Return the folder of the drives in a weather, after recording those that are not there."""
    out: Path = args.work / "frames" / f"{weather}_{who}"
    edits = [word for name in EDITS for word in ("--edit", name)]
    count = args.drives if weather == "day" else -(-2 * args.drives // 3)
    drives = ("--drives", str(count), "--seed", str(seed + 100 * list(WEATHER).index(weather)))
    length = ("--set", f"duration={args.seconds:g}", "--push", "1.5")
    _mt("record", "town_lap_any_town", *drives, *length, *WEATHER[weather], *edits, *more, "--out", str(out))
    return out


def _trained(args: argparse.Namespace, network: str, name: str, frames: Sequence[Path]) -> Path:
    """Return the weights of a network, after training for the epochs that it has not had."""
    out: Path = args.work / name
    epochs = ("--epochs", str(args.epochs)) if args.epochs else ()
    if (out / "checkpoint.pt").exists():
        _mt("train", "--resume", str(out), *epochs)
    else:
        size = ("--height-px", str(args.height_px), "--width-px", str(args.width_px), "--device", args.device)
        recipe = (*_ALL, *RECIPES[network], *size, *epochs)
        _mt("train", *map(str, frames), "--network", network, *recipe, "--out", str(out))
    return out / "weights.pt"


def _mt(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "mt_nodes.cli.main", "models", *words], check=True)


if __name__ == "__main__":
    raise SystemExit(main())
