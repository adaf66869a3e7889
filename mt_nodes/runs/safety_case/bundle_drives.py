# SPDX-License-Identifier: Apache-2.0
"""Where the drive of a pair of a bundle is: in the bundle, or where the verifier says; proved by its SHA-256."""

from __future__ import annotations

from pathlib import Path

from mt_nodes.base.errors import UsageError
from mt_nodes.base.jsonl import read_result
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.ledger import read_ledger
from mt_nodes.engine.run_record import read_record
from mt_nodes.runs.again.verification import JOURNAL
from mt_nodes.runs.safety_case.assessment import RUNS, places
from mt_nodes.runs.safety_case.bundle import BAGS
from mt_nodes.runs.safety_case.preregistration import COMMITMENT, sha256_of_bags


def reproducible_pairs(bundle: Path) -> list[tuple[str, str]]:
    """Return run and name of each pair whose follow-up is in a ledger, undecided ones too, but control and sham."""
    found = []
    for place in places(bundle / RUNS):
        made = {line["pair"] for line in read_ledger(place)}
        lines = (line["pair"] for line in read_journal(place / JOURNAL) if line["type"] == "verdict")
        found += [(place.name, name) for name in lines if name in made]
    return found


def drive_of_pair(bundle: Path, run: str, pair: str, given: str) -> str:
    """Return the path of the drive that a pair of a run is of.

    ``run``: name of its directory. ``given``: the drive by whoever verifies, empty: that in the bundle.
    Raises UsageError: there is no such run or pair, the drive is not there, or is not the one that was played.
    """
    place = bundle / RUNS / run
    if place not in places(bundle / RUNS):
        known = ", ".join(one.name for one in places(bundle / RUNS)) or "none"
        raise UsageError(f"--run: got '{run}', expected a run of the bundle: {known}")
    committed = read_result(place / COMMITMENT)["drives"]
    first, episode = read_record(place)["request"].get("first_episode", 0), Pair.parse(pair).episode
    if not 0 <= episode - first < len(committed):
        raise UsageError(
            f"--reproduce: pair '{pair}' is of episode {episode}, the run has {len(committed)} from {first}"
        )
    sha256 = committed[episode - first]
    inside = sorted((bundle / BAGS / sha256).glob("*"))
    if not given and not inside:
        raise UsageError(
            f"--reproduce: the bundle does not hold the drive with SHA-256 {sha256}; say where it is with --bag"
        )
    drive = given or str(inside[0])
    if (got := sha256_of_bags([drive])) != [sha256]:
        raise UsageError(f"--bag {drive}: has SHA-256 {got[0]}, expected {sha256}, that of the drive that was played")
    return drive
