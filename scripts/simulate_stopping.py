# SPDX-License-Identifier: Apache-2.0
"""How often early stop errs, and how soon it is clear: the tables of docs/scale.md.

Campaigns are simulated, their bets are not: drives are drawn whose pairs are alike (beta-binomial), each arm by itself,
and a campaign is looked at after every drive. An error is that it was ever clear, at whatever drive.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mt_nodes.base.stats.betting import Bet
from mt_nodes.base.stats.e_values import exact_interval
from mt_nodes.base.stats.intervals import ALPHA

Floats = npt.NDArray[np.float64]

RATES, ALIKE = (0.01, 0.05, 0.3), (0.02, 0.3, 0.9)
#: Rate, background, correlation within a drive.
WORSE = ((0.9, 0.02, 0.3), (0.3, 0.02, 0.3), (0.1, 0.02, 0.02), (0.1, 0.02, 0.3), (0.1, 0.0, 0.3), (0.05, 0.02, 0.3))
#: Relations times cells that share alpha.
SHARED = (1, 20)
#: Pairs that a drive gives, from and to.
FEW_OR_MANY, TWENTY = (1, 40), (20, 20)
#: What is not clear by then counts as later.
MOST_DRIVES = 2000


def shares(rng: np.random.Generator, rate: float, alike: float, count: int, pairs: tuple[int, int]) -> Floats:
    """Return (count,) shares violated in drives of so many pairs (from, to), ``alike`` being their correlation."""
    if rate == 0.0:
        return np.zeros(count)
    rest = (1.0 - alike) / alike
    trials = rng.integers(pairs[0], pairs[1] + 1, count)
    found: Floats = rng.binomial(trials, rng.beta(rate * rest, (1.0 - rate) * rest, count)) / trials
    return found


def against_equals(
    rng: np.random.Generator, rate: float, alike: float, campaigns: int, drives: int
) -> tuple[Floats, Floats]:
    """Return the largest e-values, (campaigns,), of a relation that is as its background: on control, on both."""
    control, sham = (Bet(0.0, -1.0, (campaigns,)) for _ in range(2))
    alone, both = np.zeros(campaigns), np.zeros(campaigns)
    for _ in range(drives):
        own, first, second = (shares(rng, rate, alike, campaigns, FEW_OR_MANY) for _ in range(3))
        control.add(own - first)
        sham.add(own - second)
        alone = np.maximum(alone, control.e_value)
        both = np.maximum(both, np.minimum(control.e_value, sham.e_value))
    return alone, both


def below_itself(rng: np.random.Generator, rate: float, alike: float, campaigns: int, drives: int) -> Floats:
    """Return the largest e-values, (campaigns,), for passing a relation whose rate is the tolerated one."""
    below, most = Bet(-rate, -1.0, (campaigns,)), np.zeros(campaigns)
    for _ in range(drives):
        below.add(-shares(rng, rate, alike, campaigns, FEW_OR_MANY))
        most = np.maximum(most, below.e_value)
    return most


def drives_until(
    rng: np.random.Generator, rate: float, background: float, alike: float, campaigns: int, needed: Sequence[float]
) -> Floats:
    """Return (needed, campaigns) drives until the bets on control and sham have both won so much; infinite: later."""
    bets = [Bet(0.0, -1.0, (campaigns,)) for _ in range(2)]
    clear = np.full((len(needed), campaigns), np.inf)
    for drive in range(1, MOST_DRIVES + 1):
        own = shares(rng, rate, alike, campaigns, TWENTY)
        for bet in bets:
            bet.add(own - shares(rng, background, alike, campaigns, TWENTY))
        won = np.minimum(*(bet.e_value for bet in bets)) > np.asarray(needed)[:, None]
        clear[won] = np.minimum(clear[won], drive)
        if np.isfinite(clear).all():
            break
    return clear


def print_errors(rng: np.random.Generator, campaigns: int, drives: int) -> None:
    """Print how many campaigns of a hundred err."""
    print(f"{campaigns} campaigns of {drives} drives with {FEW_OR_MANY[0]} to {FEW_OR_MANY[1]} pairs each, in %\n")
    print("| rate | correlation within a drive | failed wrongly | against control alone | passed wrongly |")
    print("| --- | --- | ---: | ---: | ---: |")
    most = 0
    for rate in RATES:
        rows = []
        for alike in ALIKE:
            of_equals = against_equals(rng, rate, alike, campaigns, drives)
            found = (*reversed(of_equals), below_itself(rng, rate, alike, campaigns, drives))
            rows.append([int((e >= 1.0 / ALPHA).sum()) for e in found])
        told = (", ".join(f"{100 * count / campaigns:.3g}" for count in column) for column in zip(*rows, strict=True))
        print(f"| {rate:g} | {', '.join(f'{a:g}' for a in ALIKE)} | {' | '.join(told)} |", flush=True)
        most = max(most, *(count for row in rows for count in row))
    low, high = exact_interval(most, campaigns)
    print(f"\nthe largest: {100 * most / campaigns:.3g} %, 95 % interval {100 * low:.2g} to {100 * high:.2g} %\n")


def print_drives(rng: np.random.Generator, campaigns: int) -> None:
    """Print after how many drives a relation that is worse is clear."""
    print(f"drives until clear fail, median (and 90 %) of {campaigns} campaigns, {TWENTY[0]} pairs a drive\n")
    print(f"| rate, background | correlation | {' | '.join(f'relations and cells: {n}' for n in SHARED)} |")
    print("| --- | --- | ---: | ---: |")
    for rate, background, alike in WORSE:
        found = drives_until(rng, rate, background, alike, campaigns, [n / ALPHA for n in SHARED])
        told = (f"{np.median(row):.0f} ({np.quantile(row, 0.9, method='higher'):.0f})" for row in found)
        print(f"| {rate:g}, {background:g} | {alike:g} | {' | '.join(told)} |", flush=True)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--campaigns", type=int, default=2000, help="for each row of the first table")
    parser.add_argument("--drives", type=int, default=300, help="of each of these")
    parser.add_argument("--clear", type=int, default=400, help="campaigns for each row of the second table")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    print_errors(rng, given.campaigns, given.drives)
    print_drives(rng, given.clear)


if __name__ == "__main__":
    main()
