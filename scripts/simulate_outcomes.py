# SPDX-License-Identifier: Apache-2.0
"""How often relations are blamed wrongly, and how often losses are missed: the tables of docs/verdicts.md.

Runs are simulated, their summaries are not: violated pairs are drawn, written as verdict lines and summed up as those
of a real run. Pairs of one drive (of one round, live) are alike (beta-binomial). A stack flickers *by scene* where some
scenes make it flicker whatever arm sees them, and *by run* where each arm has drives of its own in which it does: the
worst case for few drives.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.data.verdict import Pair
from mt_nodes.engine.summary.summary import RelationInfo, summarise
from mt_nodes.runs.campaign.early_stop import SequentialStopper, StopEarly, sequential_evidence
from mt_nodes.runs.campaign.item import ItemTally, PartResult

ARMS = ("relation", "identity", "points_permuted")
OUTCOMES = ("PASS", "FAIL", "INCONCLUSIVE", "UNSTABLE")
ALIKE = 0.3


@dataclass(frozen=True)
class Size:
    """How much input a run has."""

    name: str
    clusters: int
    frames: int
    relations: int = 1
    live: bool = False


@dataclass(frozen=True)
class Truth:
    """Shares of violated pairs: what the stack does by itself in every arm, and what the change adds."""

    name: str
    flickers: float
    loses: float
    by_run: bool = False


SIZES = (
    Size("1 drive of 26 frames", 1, 26),
    Size("1 drive of 26 frames", 1, 26, relations=17),
    Size("1 drive of 300 frames", 1, 300),
    Size("4 drives of 30 frames", 4, 30),
    Size("10 drives of 30 frames", 10, 30),
    Size("10 drives of 30 frames", 10, 30, relations=40),
    Size("40 drives of 30 frames", 40, 30),
    Size("3 live rounds of 12 frames", 3, 12, live=True),
    Size("12 live rounds of 12 frames", 12, 12, live=True),
)
TRUTHS = (
    Truth("honest, without flicker", 0.0, 0.0),
    Truth("honest, flickers in 3 % by scene", 0.03, 0.0),
    Truth("honest, flickers in 3 % by run", 0.03, 0.0, by_run=True),
    Truth("loses in 10 %, no flicker", 0.0, 0.1),
    Truth("loses in 50 %, no flicker", 0.0, 0.5),
    Truth("loses in 50 %, flickers in 3 % by scene", 0.03, 0.5),
)


def shares(rng: np.random.Generator, clusters: int, rate: float) -> np.ndarray:
    """Return (clusters, 1) probabilities with which the frames of each are violated, correlated by ``ALIKE``."""
    rest = (1.0 - ALIKE) / ALIKE
    return rng.beta(rate * rest, (1.0 - rate) * rest, (clusters, 1)) if rate else np.zeros((clusters, 1))


def arms(rng: np.random.Generator, size: Size, truth: Truth, loses: bool) -> list[np.ndarray]:
    """Return (clusters, frames) bool of relation, control and sham: the pairs that are violated."""
    shape, scene = (size.clusters, size.frames), shares(rng, size.clusters, truth.flickers)
    flickers = [shares(rng, size.clusters, truth.flickers) if truth.by_run else scene for _ in ARMS]
    found = [rng.random(shape) < share for share in flickers]
    found[0] |= loses & (rng.random(shape) < shares(rng, size.clusters, truth.loses))
    return found


def lines(rng: np.random.Generator, size: Size, truth: Truth) -> Iterator[dict[str, Any]]:
    """Yield the verdict lines of one run; the first relation alone loses."""
    for number in range(size.relations):
        name = f"relation_{number}"
        for at, (arm, wrong) in enumerate(zip(ARMS, arms(rng, size, truth, number == 0), strict=True)):
            for (cluster, frame), bad in np.ndenumerate(wrong):
                # In live input relations take turns, so no two arms share a bundle.
                bundle = (cluster * len(ARMS) + at) * size.frames + frame if size.live else frame
                drive, draw = (0 if size.live else cluster), "0" if arm == "relation" else f"0@{name}"
                pair = Pair(drive, bundle, name if arm == "relation" else arm, draw)
                turn = {"round": cluster} if size.live else {}
                outcome = "VIOLATED" if bad else "HOLDS"
                counts = {"lost": int(bad), "gained": 0, "stamp_ns": bundle}
                yield {"type": "verdict", "pair": str(pair), "outcome": outcome, **counts, **turn}


def outcomes(size: Size, truth: Truth, runs: int, seed: int = 7) -> tuple[Counter[str], int]:
    """Return how the first relation ended over so many runs, and in how many any other one failed."""
    rng, infos = np.random.default_rng(seed), [RelationInfo(f"relation_{i}", "expected") for i in range(size.relations)]
    ended, others = Counter[str](), 0
    for _ in range(runs):
        found = summarise(lines(rng, size, truth), infos)["relations"]
        ended[found["relation_0"]["outcome"]] += 1
        others += any(found[info.id]["outcome"] == "FAIL" for info in infos[1:])
    return ended, others


def early(truth: Truth, relations: int, runs: int, drives: int = 60, seed: int = 7) -> Counter[str]:
    """Return how campaigns ended that were looked at after every drive of 30 frames."""
    rng, info = np.random.default_rng(seed), RelationInfo("relation", "expected")
    policy, size, ended = StopEarly(), Size("", drives, 30), Counter[str]()
    for _ in range(runs):
        drawn = arms(rng, size, truth, True)
        parts = [
            PartResult("relation", 90, {}, *(ItemTally(30, int(arm[drive].sum())) for arm in drawn), 30)
            for drive in range(drives)
        ]
        at = SequentialStopper({"relation": info}, policy, relations).stopped_at("relation", parts) or drives
        ended[sequential_evidence(parts[:at], info, policy, relations)["outcome"]] += 1
    return ended


def row(name: str, relations: int, truth: Truth, ended: Counter[str], others: str) -> str:
    """Return a row of the table."""
    shares = " | ".join(f"{100 * ended[outcome] / ended.total():.1f}" for outcome in OUTCOMES)
    return f"| {name} | {relations} | {truth.name} | {shares} | {others} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, help="of each row (default %(default)s)")
    given = parser.parse_args()
    print(f"| input | relations | truth | {' | '.join(f'{name}, %' for name in OUTCOMES)} | another relation FAIL, % |")
    print("|---|---:|---|---:|---:|---:|---:|---:|")
    for size in SIZES:
        for truth in TRUTHS:
            ended, others = outcomes(size, truth, given.runs)
            failed = f"{100 * others / given.runs:.1f}" if size.relations > 1 else "-"
            print(row(size.name, size.relations, truth, ended, failed), flush=True)
    for relations in (1, 40):
        for truth in TRUTHS:
            ended = early(truth, relations, given.runs)
            print(row("early stop, 60 drives of 30 frames", relations, truth, ended, "-"), flush=True)


if __name__ == "__main__":
    main()
