# SPDX-License-Identifier: Apache-2.0
"""Whether two trees of the package behave alike: for changes that are to change nothing but places and names.

    python test/same_behaviour.py record TREE FILE [--bag BAG]
    python test/same_behaviour.py compare FILE FILE

Runs the same commands with the package of each tree: lists, a replay in process and one over topics, scenarios, the
moral experiment, a campaign, and live input in a time of its own. Kept are exit codes, verdict lines and ledgers
without what differs from run to run: times, and sums of lines that hold them; of a name in the package its last part.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

KINDS = (
    *("mutations", "conditions", "checks", "scenario_changes", "relations", "adapters", "stacks", "faults", "regions"),
    *("experiments", "manipulations", "principles", "expectations", "scenarios"),
)
#: What differs between two runs of one tree, by key of a line: times, sizes that go by them, names of places.
VOLATILE = {
    *("crc32", "answer_ms", "ms", "made_ms", "wall_s", "took_s", "seconds", "bags"),
    *("came_ns", "sent_ns", "written", "module"),
}


def commands(place: Path, bag: str) -> dict[str, list[str]]:
    """Return the command lines by name; each that runs writes into a directory of its name."""
    campaign = place / "campaign.yaml"
    told = {"bags": [bag], "stacks": ["reference_detector"], "relations": ["noise_outside_roi_100", "cloud_mirrored"]}
    campaign.write_text(json.dumps({**told, "seeds": [0, 1], "transport": "inprocess", "workers": 1}))
    limited = ["--limit", "6", "--seed", "3"]
    relations = ["--relations", "noise_outside_roi_10,noise_outside_roi_1000,fog_monotone,beams_lost_4"]
    crossing = ["pedestrian_crosses", "--relations", "far_crowd_collisions,world_moved_same_trace", "--repeat", "2"]
    moral = ["--principles", "humans_before_animals", "--cases", "2", "--search", "2", "--runs", "40", "--workers", "1"]
    runs = {
        "replay": ["replay", bag, "--transport", "inprocess", "--fault", "point_buffer_cap", *relations, *limited],
        "topics": ["replay", bag, "--transport", "ros", "--relations", "noise_outside_roi_100", "--limit", "4"],
        "scenario": ["scenario", *crossing, "--fault", "looks_ahead_by_count"],
        "moral": ["experiment", "moral", *moral],
        "campaign": ["campaign", str(campaign), "--limit", "4"],
    }
    return {name: [*words, "--out", str(place / name)] for name, words in runs.items()}


def run(tree: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    """Run ``mt`` of a tree."""
    code = "import sys; from mt_nodes.cli.main import main; sys.exit(main(sys.argv[1:]))"
    env = {**os.environ, "PYTHONPATH": str(tree)}
    return subprocess.run(
        [sys.executable, "-c", code, *words], env=env, cwd=tree, capture_output=True, text=True, check=False
    )


def settled(value: Any, place: str) -> Any:
    """Return a value without what differs from run to run."""
    if isinstance(value, dict):
        return {key: settled(part, place) for key, part in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        return [settled(part, place) for part in value]
    if not isinstance(value, str):
        return value
    words = " ".join(value.replace(place, "OUT").split())
    return re.sub(r"\bmt_nodes(?:\.\w+)*\.(\w+)", r"\1", words)


def lines(place: Path, name: str) -> Iterator[tuple[str, str]]:
    """Yield the file and the text of each verdict and of each line of a ledger that a run left."""
    for path in sorted((place / name).rglob("*.jsonl")):
        if path.name in ("result.jsonl", "ledger.jsonl", "runs.jsonl"):
            for text in path.read_text(encoding="utf-8").splitlines():
                line = json.loads(text)
                if line.get("type") != "condition":
                    yield path.name, json.dumps(settled(line, str(place)), sort_keys=True)


def live(tree: Path) -> list[str]:
    """Return the verdict lines of live input in a time of its own."""
    done = subprocess.run(
        [sys.executable, str(tree / "test" / "live_lines.py")],
        env={**os.environ, "PYTHONPATH": f"{tree}:{tree / 'test'}"},
        cwd=tree,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def record(tree: Path, bag: str) -> dict[str, Any]:
    """Run everything, and return what came of it."""
    lists = {kind: json.loads(run(tree, ["list", kind, "--json"]).stdout) for kind in KINDS}
    kept: dict[str, Any] = {f"list {kind}": settled(rows, str(tree)) for kind, rows in lists.items()}
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        if not bag:
            run(tree, ["demo", "--out", str(place / "demo")])
            bag = str(next((place / "demo").rglob("metadata.yaml")).parent)
        for name, words in commands(place, bag).items():
            done = run(tree, words)
            rows = sorted(lines(place, name))
            if not rows:
                raise SystemExit(f"{name}: nothing was judged (exit code {done.returncode}):\n{done.stderr[-2000:]}")
            kept[name] = {"exit": done.returncode, "lines": [f"{file} {text}" for file, text in rows]}
    kept["live"] = live(tree)
    return kept


def compare(one: dict[str, Any], other: dict[str, Any]) -> int:
    """Print what differs, and return how many parts do."""
    differing = 0
    for name in {**one, **other}:
        a, b = (json.dumps(kept.get(name), sort_keys=True).encode() for kept in (one, other))
        same = a == b
        differing += not same
        print(f"{'same' if same else 'DIFFERENT'}  {name}  {hashlib.sha256(a).hexdigest()[:16]}")
    return differing


def main() -> int:
    """Record or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "compare"))
    parser.add_argument("one", type=Path)
    parser.add_argument("other", type=Path)
    parser.add_argument("--bag", default="")
    given = parser.parse_args()
    if given.what == "record":
        given.other.write_text(json.dumps(record(given.one.resolve(), given.bag), indent=1) + "\n")
        return 0
    return compare(*(json.loads(path.read_text()) for path in (given.one, given.other)))


if __name__ == "__main__":
    sys.exit(main())
