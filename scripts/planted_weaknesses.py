# SPDX-License-Identifier: Apache-2.0
"""Which relations find that a driving network has learned nothing of the night, or of rain: Table IX of AutoMT for us.

    python scripts/driving_networks.py WORK --network pilotnet
    python scripts/driving_networks.py WORK --network pilotnet --without night
    python scripts/driving_networks.py WORK --network pilotnet --without rain
    python scripts/planted_weaknesses.py WORK

Rules ("Slow down at night.") are read by `mt rules extract`, two relations are written here: in the dark and in rain
the way stays the same. Each network of WORK called ``pilotnet…`` drives the same streets with and without the change
(`mt scenario`); the table has violated and decided drives with Wilson's 95 % interval, control and sham, and Fisher's
exact p against the first network, adjusted after Holm over the table. Exit code 1: a planted weakness is not found, or
the first network has no relation that it holds where the other violates it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from mt_nodes.base import resources
from mt_nodes.base.stats.intervals import ALPHA, fisher_p, holm, wilson_interval

RULES = {
    "night_slows": "Slow down at night.",
    "rain_slows": "Slow down when it rains.",
}
#: What stays the same in the dark and in rain is where the vehicle drives, within a third of the room that the expert
#: leaves in a bend of the town; how fast is for the rules.
_WAY = {"keeps_way_there": {"along": "way", "tolerance_m": 0.1, "tolerance_mps": 50.0}}
WAYS = {"night_keeps_way": {"what": "hour", "to": 0.0}, "rain_keeps_way": {"what": "rain", "to": 0.5}}
#: What each planted weakness is found by: by any of them.
FOUND_BY = {"night": ("night_slows", "night_keeps_way"), "rain": ("rain_slows", "rain_keeps_way")}
Row = dict[str, Any]


def main(words: Sequence[str] | None = None) -> int:
    """Drive, print, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, metavar="WORK", help="directory of driving_networks.py")
    parser.add_argument("--drives", type=int, default=20, help="drives of each network with each relation (default 20)")
    parser.add_argument("--seconds", type=float, default=4.0, help="length of a drive, s (default 4)")
    parser.add_argument("--seed", type=int, default=8, help="seed of the drives")
    args = parser.parse_args(words)
    if not (args.work / "pilotnet" / "weights.pt").is_file():
        parser.error(f"{args.work}: got no pilotnet/weights.pt, expected what driving_networks.py makes; see --help")
    files = relations(args.work / "relations")
    networks = {path.parent.name: path for path in sorted(args.work.glob("pilotnet*/weights.pt"))}
    driven = {name: _driven(args, name, path, files) for name, path in networks.items()}
    rows = compared(driven)
    (args.work / "weaknesses.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    show(rows)
    missing = unfound(rows)
    for line in missing:
        print(line)
    return int(bool(missing))


def relations(folder: Path) -> dict[str, Path]:
    """Write the relation files and return them by name."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "weather.txt").write_text("".join(f"{rule}\n" for rule in RULES.values()), encoding="utf-8")
    _mt("rules", "extract", str(folder / "weather.txt"), "--model", "parser", "--relations", str(folder), "--in-world")
    files = {}
    for number, name in enumerate(RULES, 1):
        read = yaml.safe_load((folder / f"rule_weather_{number}.yaml").read_text(encoding="utf-8"))
        files[name] = _written(folder, {**read, "id": name})
    for name, change in WAYS.items():
        because = (
            f"With {change['what']} {change['to']:g} the road lies where it lay: the vehicle drives on the same way."
        )
        scenario = [{"environment_changed": change}]
        relation = {"id": name, "kind": "expected", "because": because, "scenario": scenario, "check": _WAY}
        files[name] = _written(folder, relation)
    return files


def _written(folder: Path, relation: Mapping[str, Any]) -> Path:
    path = folder / f"{relation['id']}.yaml"
    path.write_text(yaml.safe_dump(dict(relation), sort_keys=False), encoding="utf-8")
    return path


def _driven(args: argparse.Namespace, name: str, weights: Path, files: Mapping[str, Path]) -> Mapping[str, Row]:
    """Return what became of each relation of a network, after driving unless that is done."""
    out, stack = args.work / "driven" / name, args.work / f"{name}.yaml"
    if not (out / "summary.json").exists():
        shipped = yaml.safe_load(resources.find("stacks", "pilotnet").read_text(encoding="utf-8"))
        own = {**shipped, "name": name, "params": {**shipped["params"], "weights": str(weights.resolve())}}
        stack.write_text(yaml.safe_dump(own, sort_keys=False), encoding="utf-8")
        settings = ("--set", f"duration={args.seconds:g}", "--seed", str(args.seed), "--repeat", str(args.drives))
        chosen = ",".join(map(str, files.values()))
        _mt("scenario", "town_lap_any_town", "--stack", str(stack), "--relations", chosen, *settings, "--out", str(out))
    found: Mapping[str, Row] = json.loads((out / "summary.json").read_text(encoding="utf-8"))["relations"]
    return found


def compared(driven: Mapping[str, Mapping[str, Row]]) -> list[Row]:
    """Return a row for each network and relation; ``p``: of Fisher's test against the first network, None of itself."""
    first = next(iter(driven))
    rows = [
        {
            **{"network": network, "relation": name},
            **{key: row[key] for key in ("decided", "violated")},
            **{arm: [row[arm][key] for key in ("violated", "decided")] for arm in ("control", "sham")},
            "interval": wilson_interval(row["violated"], row["decided"]),
            "p": None if network == first else fisher_p(_tally(driven[first][name]), _tally(row)),
        }
        for network, relations in driven.items()
        for name, row in relations.items()
    ]
    tested = [row for row in rows if row["p"] is not None]
    for row, adjusted in zip(tested, holm([row["p"] for row in tested]), strict=True):
        row["p"] = adjusted
    return rows


def _tally(row: Row) -> tuple[int, int]:
    return row["violated"], row["decided"]


def unfound(rows: Sequence[Row]) -> list[str]:
    """Say which planted weakness no relation finds: none is violated significantly more often than by the first."""
    first, lines = rows[0]["network"], []
    rates = {(row["network"], row["relation"]): row["violated"] / max(row["decided"], 1) for row in rows}
    for weakness, names in FOUND_BY.items():
        own = [row for row in rows if row["network"].endswith(f"_no_{weakness}") and row["relation"] in names]
        more = [row for row in own if rates[row["network"], row["relation"]] > rates[first, row["relation"]]]
        if not any(row["p"] < ALPHA for row in more):
            lines.append(
                f"not found: that a network has learned nothing of {weakness}"
                if own
                else f"no such network: {weakness}"
            )
    return lines


def show(rows: Sequence[Row]) -> None:
    """Print the table."""
    table = Table("network", "relation", "violated", "95 %", "control", "sham", "p")
    for row in rows:
        low, high = row["interval"] or (0.0, 1.0)
        background = [f"{violated}/{decided}" for violated, decided in (row["control"], row["sham"])]
        p = "" if row["p"] is None else f"{row['p']:.2g}"
        interval = f"{100 * low:.0f} … {100 * high:.0f} %" if row["decided"] else "-"
        table.add_row(row["network"], row["relation"], f"{row['violated']}/{row['decided']}", interval, *background, p)
    Console(width=120).print(table)


def _mt(*words: str) -> None:
    """Run it; what relations come to is no failure of the run."""
    done = subprocess.run([sys.executable, "-m", "mt_nodes.cli.main", *words], check=False)
    if done.returncode not in (0, 1, 3):
        raise SystemExit(f"mt {words[0]} ended with {done.returncode}")


if __name__ == "__main__":
    raise SystemExit(main())
