# SPDX-License-Identifier: Apache-2.0
"""How often ``mt bisect`` names the right commit, and how many plays it takes: histories with a planted fault.

``python scripts/bisect_study.py OUT [--histories 20] [--share 0.3]`` makes git repositories of 16 to 48 commits, of
which one in ten cannot be imported, bisects each in process, and prints a line for each. Beside the plays of the tests
stands what tests of a fixed size take: as many plays in each tested version as an exact binomial test needs for the
same two rates and the same error.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from planted_histories import few_points, history
from scipy import stats

from mt_nodes.cli.main import main as mt
from mt_nodes.runs.bisect.bisect_request import BisectRequest
from mt_nodes.runs.bisect.bisect_run import BisectRun, carry_out


def fixed_plays(good: float, bad: float, error: float) -> int:
    """Return the least number of plays for which some threshold bounds both errors (exact binomial)."""
    for plays in range(1, 5000):
        threshold = int(stats.binom.isf(error, plays, good)) + 1
        if stats.binom.cdf(threshold - 1, plays, bad) <= error:
            return plays
    raise ValueError(f"no fixed size up to 5,000 plays tells {good} from {bad}")


def study(place: Path, number: int, share: float, failed: Path, limit: int) -> dict[str, Any]:
    """Bisect one history; return what came of it."""
    rng = np.random.default_rng(number)
    commits = int(rng.integers(16, 49))
    first = int(rng.integers(1, commits))
    broken = set(rng.choice(np.arange(1, commits - 1), commits // 10, replace=False).tolist())
    repo = place / f"repo_{number}"
    made = history(repo, commits, first, limit, share=share, broken=broken)
    request = BisectRequest(failures=str(failed), good=made[0], repo=str(repo), stack=str(repo / "stack.yaml"))
    result = carry_out(BisectRun.create(request, str(place / f"out_{number}")), lambda words, steps, tally: None)
    decided = [test for test in result["tests"] if test["state"] != "skip"]
    fixed = [fixed_plays(result["rates"]["good"], result["rates"]["bad"], test["error"]) for test in decided]
    # The smallest answer that can be had: the commit, with those before it that cannot be imported, or after it.
    low = next(at for at in range(first - 1, -1, -1) if at not in broken)
    high = next(at for at in range(first, commits) if at not in broken)
    return {
        "history": number,
        "commits": commits,
        "share": share,
        "right": result["first_bad"] == made[low + 1 : high + 1],
        "named": len(result["first_bad"]),
        "tested": len(decided),
        "plays": result["plays"],
        "test_plays": sum(test["tally"]["held"] + test["tally"]["violated"] for test in decided),
        "fixed_plays": sum(fixed),
        "why": result["why"],
    }


def main() -> None:
    """Make the failing run once, and bisect all histories."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--histories", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="seed of the first history")
    parser.add_argument("--share", type=float, default=1.0, help="share of the calls that have the fault")
    args = parser.parse_args()
    place: Path = args.out.resolve()
    place.mkdir(parents=True)
    limit = few_points(place / "drive")
    history(place / "faulty", 1, 0, limit)
    words = ["--stack", str(place / "faulty" / "stack.yaml"), "--relations", "noise_outside_roi_1000"]
    mt(["replay", str(place / "drive"), *words, "--transport", "inprocess", "--out", str(place / "failed")])
    for number in range(args.first, args.first + args.histories):
        print(json.dumps(study(place, number, args.share, place / "failed", limit)), flush=True)


if __name__ == "__main__":
    main()
