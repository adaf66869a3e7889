#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our weather in a recorded cloud with LISA and LiDAR_fog_sim: losses by range and reflectivity, echo ranges.

Their code is read from clones of their repositories, and is no part of this one. Writes docs/weather_distributions.md.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy.integrate

import mt_nodes as mt
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.joint.fog_dust_smoke import Fog
from mt_nodes.relations.mutations.joint.rain_snow_hail import Rain, Snow
from mt_nodes.relations.mutations.joint.receiver_models import RECEIVER_MODELS
from mt_nodes.relations.mutations.joint.weather import Weather

Floats = npt.NDArray[np.float64]

PAGE = Path(__file__).resolve().parent.parent / "docs" / "weather_distributions.md"
BINS_M = (0.0, 10.0, 20.0, 40.0, 80.0)
DARK, BRIGHT = 0.05, 0.25
#: LISA takes a tenth of a millisecond a point in Python loops: some points are enough.
LISA_POINTS = 20_000
HEAD, TAIL = "<!-- tables: begin -->", "<!-- tables: end -->"


@dataclass(frozen=True)
class Shares:
    """What happened to the returns (n,) of a cloud: 0 lost, 1 replaced by an echo, 2 there; and echo ranges (k,)."""

    fate: npt.NDArray[np.int64]
    echo_m: Floats


def ours(bundle: Bundle, weather: Weather) -> Shares:
    """Return ours, of the first cloud."""
    (cloud,), seeds = bundle.clouds, np.random.default_rng(0)
    fate = weather.fate(cloud, weather.draw_cloud(seeds, bundle, cloud, weather.begin(seeds, bundle)))
    return Shares(np.where(fate.lost, 0, np.where(fate.scattered, 1, 2)), fate.new_m[fate.scattered].astype(np.float64))


def lisa(clone: Path, points: Floats, model: str, rate: float) -> Shares:
    """Return LISA's hybrid Monte Carlo, of a sensor of 120 m."""
    if not hasattr(scipy.integrate, "trapz"):
        scipy.integrate.trapz = scipy.integrate.trapezoid  # removed in SciPy 1.14
    sys.path.insert(0, str(clone))
    made = importlib.import_module("pylisa.lisa").Lisa(atm_model=model, rmax=120)
    np.random.seed(0)
    changed = made.augment(points, rate)
    fate = changed[:, 4].astype(int)
    return Shares(fate, np.linalg.norm(changed[fate == 1, :3], axis=1))


def fog_sim(clone: Path, points: Floats, visibility_m: float) -> Shares:
    """Return LiDAR_fog_sim's, which loses nothing: what is left of a return, or the fog, is reported however weak."""
    sys.path.insert(0, str(clone))
    module = importlib.import_module("fog_simulation")
    scaled = points * np.array([1.0, 1.0, 1.0, 255.0])
    changed, echoes, _ = module.simulate_fog(module.ParameterSet(alpha=np.log(20.0) / visibility_m), scaled, 10)
    moved = np.abs(np.linalg.norm(changed[:, :3], axis=1) - np.linalg.norm(points[:, :3], axis=1)) > 1e-3
    echo_m = np.empty(0) if echoes is None else np.linalg.norm(echoes[:, :3], axis=1)
    return Shares(np.where(moved, 1, 2), echo_m)


def row(title: str, shares: Shares, range_m: Floats, bright: Floats) -> str:
    """Return one line of a table."""
    gone = shares.fate != 2
    cells = [f"{100 * np.mean(shares.fate == 0):.1f}", f"{100 * np.mean(shares.fate == 1):.1f}"]
    cells += [f"{100 * np.mean(gone[(range_m >= a) & (range_m < b)]):.1f}" for a, b in pairwise(BINS_M)]
    far = (range_m >= 20.0) & (range_m < 40.0)
    cells += [f"{100 * np.mean(gone[far & some]):.1f}" for some in (bright <= DARK, bright >= BRIGHT)]
    told = np.percentile(shares.echo_m, [5, 50, 95]) if len(shares.echo_m) > 10 else None
    cells.append("-" if told is None else " / ".join(f"{m:.1f}" for m in told))
    return f"| {title} | {' | '.join(cells)} |"


def tables(frame: mt.Frame, lisa_clone: Path, fog_clone: Path) -> list[str]:
    """Return the lines of all tables."""
    points = np.asarray(frame.points[:, :4], np.float64)
    some = np.random.default_rng(0).choice(len(points), LISA_POINTS, replace=False)
    range_m = np.linalg.norm(points[:, :3], axis=1)
    head = (
        "| weather | lost | replaced | gone 0-10 m | 10-20 m | 20-40 m | 40-80 m | dark, 20-40 m | bright, 20-40 m | "
        "echo range 5 / 50 / 95 %, m |\n|---|---|---|---|---|---|---|---|---|---|"
    )
    makers: list[tuple[str, Callable[[], Shares], bool]] = []
    bundle = replace(frame.bundle, images=(), camera_infos=())
    for v in (30.0, 50.0, 100.0, 150.0, 300.0):
        makers.append((f"fog {v:g} m, ours", lambda v=v: ours(bundle, Fog(visibility_m=v)), False))
        generic = Fog(visibility_m=v, sensor="generic")
        makers.append((f"fog {v:g} m, ours, focus 5 m", lambda w=generic: ours(bundle, w), False))
        makers.append((f"fog {v:g} m, LiDAR_fog_sim", lambda v=v: fog_sim(fog_clone, points, v), False))
    for rate in (0.1, 10.0, 50.0):
        makers.append((f"rain {rate:g} mm/h, ours", lambda r=rate: ours(bundle, Rain(rain_mm_per_h=r)), False))
        makers.append((f"rain {rate:g} mm/h, LISA", lambda r=rate: lisa(lisa_clone, points[some], "rain", r), True))
    for rate in (0.5, 2.0):
        makers.append((f"snow {rate:g} mm/h, ours", lambda r=rate: ours(bundle, Snow(snow_mm_per_h=r)), False))
        makers.append((f"snow {rate:g} mm/h, LISA", lambda r=rate: lisa(lisa_clone, points[some], "snow", r), True))
    lines = [head]
    for title, make, sampled in makers:
        at = some if sampled else slice(None)
        lines.append(row(title, make(), range_m[at], points[at][:, 3]))
        print(lines[-1], flush=True)
    return lines


def receivers() -> list[str]:
    """Return the lines of the table of sensor families."""
    lines = [
        "| `sensor` | 90 % seen at, m | wavelength, nm | divergence, mrad | focus, m | source | assumed |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, model in RECEIVER_MODELS.items():
        figures = f"{model.max_range_m:.0f} | {model.wavelength_nm:g} | {model.divergence_mrad:g} | {model.focus_m:g}"
        lines.append(f"| `{name}` | {figures} | {model.source} | {model.assumed.split('; pulse')[0]} |")
    return lines


def main() -> None:
    """Write the tables into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bag", type=Path, help="recorded drive of an HDL-64E")
    parser.add_argument("--lisa", type=Path, required=True, help="clone of velatkilic/LISA")
    parser.add_argument("--fog-sim", type=Path, required=True, help="clone of MartinHahner/LiDAR_fog_sim")
    given = parser.parse_args()
    frame = next(iter(mt.frames(given.bag, limit=1)))
    lines = tables(frame, given.lisa, given.fog_sim)
    text = PAGE.read_text()
    before, after = text.split(HEAD)[0], text.split(TAIL)[1]
    PAGE.write_text("\n".join([before + HEAD, "", *lines, "", *receivers(), "", TAIL]) + after)


if __name__ == "__main__":
    main()
