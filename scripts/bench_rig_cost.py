# SPDX-License-Identifier: Apache-2.0
"""What operators take on the messages of ``bench_rig.py``'s rig, how well that foretells its runs, and their page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from mt_nodes.base.environment import keep_freed_memory
from mt_nodes.base.errors import MtError, NotApplicable
from mt_nodes.data.intensity.sensor_reading import SensorBook
from mt_nodes.data.messages import Wire
from mt_nodes.data.transforms import load_transforms
from mt_nodes.relations.relation import load_relation
from mt_nodes.runs.live.config import AUTO, LiveConfig
from mt_nodes.runs.live.rig_cost import FollowupCost, RigLoad, bundle_of, followup_cost, instants_of
from mt_nodes.stacks.stack import Stack, load_stack

Row = dict[str, Any]
#: Operators alone, with their defaults.
OPERATORS = (
    *("points_dropped", "noise_outside_roi", "points_jittered", "beams_lost", "radar_clutter"),
    *("brightness_changed", "image_defocused", "sensor_noise", "jpeg_compressed", "lens_drops"),
    *("fog", "rain", "snow"),
)
CORES = (2, 4, 8, 12)
#: Of the full rates.
RATES = (1.0, 0.5, 0.25)
#: So long a piece of the rig's messages is measured on, at full rates.
PIECE_S = 0.45


def measure(place: Path, check: Mapping[str, Any], relations: Mapping[str, Any], rates_hz: Mapping[str, float]) -> Row:
    """Return the load of the full rates, and what each relation and operator takes of an instant.

    Args:
        place: of messages.json, stack.yaml and transforms.yaml. check: of the relations. relations: mutations by name.
        rates_hz: full rates by topic.
    """
    keep_freed_memory()
    rows = json.loads((place / "messages.json").read_text())
    stack, tree = load_stack(str(place / "stack.yaml")), load_transforms(place / "transforms.yaml")
    instants = list(instants_of(_played(place, rows, rates_hz), stack))
    sizes = {row["topic"]: (place / row["files"][0]).stat().st_size for row in rows}
    changes = {"identity": [{"identity": {}}], **relations, **{name: [{name: {}}] for name in OPERATORS}}
    found = {}
    for name, mutate in changes.items():
        relation = {"id": f"cost_{name}", "kind": "expected", "because": "A measurement.", "mutate": mutate}
        (place / "cost.yaml").write_text(yaml.safe_dump({**relation, "requires": ["lidar"], "check": dict(check)}))
        found[name] = _cost(place / "cost.yaml", instants, stack, tree)
    return {"load": asdict(RigLoad.of(rates_hz, sizes, stack.leading_topic)), "by_name": found}


def _cost(file: Path, instants: Sequence[tuple[Wire, ...]], stack: Stack, tree: Any) -> Row:
    relation = load_relation(str(file))
    try:
        book = SensorBook(stack.intensities)
        bundles = (bundle_of(number, wires, stack, tree, book) for number, wires in enumerate(instants))
        return asdict(followup_cost(relation, bundles))
    except (NotApplicable, MtError) as why:
        return {"not measured": str(why)}


def _played(place: Path, rows: Sequence[Row], rates_hz: Mapping[str, float]) -> Iterator[Wire]:
    for row in rows:
        data = [(place / name).read_bytes() for name in row["files"]]
        for number in range(int(PIECE_S * rates_hz[row["topic"]])):
            stamp_ns = 10**18 + round(number / rates_hz[row["topic"]] * 1e9)
            head = (stamp_ns // 10**9).to_bytes(4, "little") + (stamp_ns % 10**9).to_bytes(4, "little")
            source = data[number % len(data)]
            yield Wire(row["topic"], row["type"], stamp_ns, source[:4] + head + source[12:])


def load_at(part: Row, rate: float) -> RigLoad:
    """Return the load at a share of the full rates."""
    return RigLoad(**{name: rate * value for name, value in part["cost"]["load"].items()})


def predicted_cores(part: Row, run: Row, turn: str) -> float:
    """Return the cores that the suite is foretold to take in a turn, by the follow-ups that it made."""
    done = run["turns"][turn]
    late = sum(n for reason, n in done["skipped"].items() if "made in" in reason)
    made = late + sum(n for outcome, n in done["outcomes"].items() if outcome != "SKIPPED")
    of = part["cost"]["by_name"]["identity" if turn == "identity" else run["relation"]]
    return load_at(part, run["rate"]).passing_cores + 1e-3 * of["made_ms"] * made / done["lasted_s"]


RUN_COLUMNS = (
    "run",
    "sent",
    "lost",
    "changed",
    "adds p50, p99 ms",
    "instants tested",
    "SKIPPED",
    "suite: cores",
    "foretold",
)
COST_COLUMNS = (
    "operator",
    "ms",
    "MB/s of a core",
    "cores at full rates",
    "at half",
    "at a quarter",
    *(f"{n} cores: tested/s" for n in CORES),
)


def run_cells(part: Row) -> Iterator[tuple[str, ...]]:
    """Yield a row of texts for each sensor of each turn of each run, as :data:`RUN_COLUMNS` names them."""
    for run in part["runs"]:
        for turn, done in run["turns"].items():
            skipped = done["outcomes"].get("SKIPPED", 0)
            whole = [f"{done['instants'] - skipped} of {done['instants']}", str(skipped)]
            whole += [f"{done['cores'].get('suite', 0.0):.2f}", f"{predicted_cores(part, run, turn):.2f}"]
            shown = [(topic, row) for topic, row in done["topics"].items() if "camera_info" not in topic]
            for number, (topic, row) in enumerate(shown):
                what = "control" if turn == "identity" else run["relation"]
                name = f"{what}, {run['asked_hz'][topic]:g} Hz: {topic.split('/')[2]}"
                added = (
                    f"{row['added_p50_ms']:.0f}, {row['added_p99_ms']:.0f}" if row["added_p50_ms"] is not None else "-"
                )
                counts = (str(row[key]) for key in ("sent", "lost", "changed"))
                yield name, *counts, added, *(whole if number == 0 else [""] * len(whole))


def cost_cells(part: Row) -> Iterator[tuple[str, ...]]:
    """Yield a row of texts for each operator, as :data:`COST_COLUMNS` names them."""
    for name, row in part["cost"]["by_name"].items():
        if "not measured" in row:
            yield name, f"not measured: {row['not measured']}", *[""] * (len(COST_COLUMNS) - 2)
            continue
        cost, full = FollowupCost(**row), load_at(part, 1.0)
        needed = (f"{cost.cores(load_at(part, rate)):.1f}" for rate in RATES)
        workers = map(LiveConfig(workers=AUTO).workers_on, CORES)
        tested = (
            f"{cost.tested_hz(full, n - part['beside_cores'], w):.1f}" for n, w in zip(CORES, workers, strict=True)
        )
        mb_per_s = full.mb_per_s / full.instants_hz / (1e-3 * cost.made_ms)
        yield name, f"{cost.made_ms:.0f}", f"{mb_per_s:.0f}", *needed, *tested


def error(part: Row) -> float:
    """Return by what share at most the model was off the suite's measured cores."""
    pairs = [
        (predicted_cores(part, run, turn), done["cores"]["suite"])
        for run in part["runs"]
        for turn, done in run["turns"].items()
    ]
    return max(abs(foretold - measured) / measured for foretold, measured in pairs)


def goals(part: Row) -> Iterator[str]:
    """Yield in words whether each run's relation was tested whole, lost nothing, and added at most a LiDAR's period."""
    for run in part["runs"]:
        turn = run["turns"][f"rig_{run['relation']}"]
        rows, tested = turn["topics"], turn["instants"] - turn["outcomes"].get("SKIPPED", 0)
        lidar_hz = next(hz for topic, hz in run["asked_hz"].items() if "/lidar/" in topic)
        lost, p99_ms = sum(row["lost"] for row in rows.values()), max(row["added_p99_ms"] for row in rows.values())
        met = not lost and p99_ms <= 1e3 / lidar_hz and tested == turn["instants"]
        figures = f"{tested} of {turn['instants']} tested, {lost} lost, {p99_ms:.0f} of {1e3 / lidar_hz:.0f} ms"
        yield f"{run['relation']} at {lidar_hz:g} Hz {'met' if met else 'missed'} ({figures})"


def write_docs(path: Path, machine: Row, part: Row) -> None:
    """Write the figures as Markdown, with machine, date and command."""
    load, workers = load_at(part, 1.0), map(LiveConfig(workers=AUTO).workers_on, CORES)
    worst = max(done["cores"].get("elsewhere", 0.0) for run in part["runs"] for done in run["turns"].values())
    lines = [
        "# Performance: a rig of many sensors",
        "This page shows what `mt live` in mode `shadow` does with a LiDAR of 128 beams (5 MB a cloud) at 20 "
        "Hz, two cameras of 1920 x 1080 pixels (6.2 MB a picture) at 30 Hz and a radar at 20 Hz, and how many "
        "cores which relation "
        'needs. `make bench ARGS="--only rig --docs docs"` measures and writes it. For your own rig and '
        "relations, type "
        "`mt doctor --live-config live.yaml --cost` beside it.",
        "One process publishes messages of a generated street, stamped anew; a stack that only counts and "
        "answers hears them, and "
        "a second instance of it hears what the suite makes. Every message counts: *lost* are those that did "
        "not reach the second instance, *changed* those that it got otherwise than the live stack. *Adds* is how "
        f"much later than `delay_s` ({part['delay_s']:g} s) a message came to the second instance than to the first. "
        "*Instants tested* have a verdict; *SKIPPED* were out of budget, so the source went out in the follow-up's "
        "place. *Foretold* is the model below. *Control* sends everything as it came; `light` drops points and "
        "radar detections and brightens pictures; `rain` changes all sensors. Each is one draw over all sensors of an "
        "instant and the cameras' frames between.",
        f"{date.today().isoformat()}, {machine['cpu']}, {machine['cores']} cores (other processes took "
        f"{worst:.2f} at most), Python {machine['python']}, NumPy {machine['numpy']}; "
        f"{part['runs'][0]['seconds']:g} s a turn.",
        _markdown(RUN_COLUMNS, run_cells(part)),
        "Goals: every instant is tested, nothing is lost, and p99 of what is added, of the slowest topic, is at most "
        "one period of the LiDAR. "
        f"{'; '.join(goals(part))}.",
        f"Sensors and both stacks take {part['beside_cores']:.2f} cores at full rates here; those of your "
        "stack are not in any "
        "figure of this page.",
        "## Cores needed",
        f"At full rates, {load.messages_hz:.0f} messages and {load.mb_per_s:.0f} MB a second are passed on, "
        "which takes "
        f"{load.passing_cores:.2f} cores. *ms* is processor time of a follow-up of an instant: drawn, "
        "changed, proved, encoded, "
        "hashed, the cameras' frames between instants with it. *Cores* test every instant. "
        f"The model was off the suite's measured cores by {error(part):.0%} at most in the runs above.",
        _markdown(COST_COLUMNS, cost_cells(part)),
        "*Tested/s* is how many of the 20 instants a second are tested; the others end as SKIPPED with the reason. On "
        f"{', '.join(map(str, CORES))} cores, {', '.join(map(str, workers))} processes make follow-ups, each of "
        "another instant (`workers: -1`); without one, as by default, a thread of the suite makes one after the "
        "other. [0045](decisions/0045-processes-make-follow-ups.md) says what that costs and brings. Four, eight and "
        "twelve cores were not measured: these columns are the model's. They do not hold where the ego's motion has to "
        "be estimated from clouds for weather, 40 to 150 ms of one thread each: give odometry, `/tf` or "
        "`ego_speed_mps`. No GPU was at hand, so nothing here runs on one.",
    ]
    path.write_text("\n\n".join(lines) + "\n", encoding="utf-8")


def _markdown(columns: Sequence[str], rows: Iterator[tuple[str, ...]]) -> str:
    align = ["---", *["---:"] * (len(columns) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (columns, align, *rows))
