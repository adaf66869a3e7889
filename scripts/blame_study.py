# SPDX-License-Identifier: Apache-2.0
"""How often `mt blame` is right: a fault in each node of the reference pipeline, and an honest one that flickers.

The five nodes are called in process, and what they say is recorded as over topics; everything behind the recording is
what `mt blame` does. `--out` keeps the runs, and `study.json` with a row for each violated pair.
"""

from __future__ import annotations

import argparse
import json
import pickle
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.base import plugins
from mt_nodes.cli.main import main as mt
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.data.messages import Bundle
from mt_nodes.data.regions import Region
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.followups import RecordedFollowups
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.recorded_pair import RecordedPair
from mt_nodes.runs.blame.analysis import analyse
from mt_nodes.runs.blame.blame_run import ALPHA
from mt_nodes.runs.blame.divergence import BoxesContent, Content, FieldsContent, PointsContent
from mt_nodes.runs.blame.stack_graph import StackGraph
from mt_nodes.runs.blame.tape import TopicRecording
from mt_nodes.runs.blame.topic_measures import Evidence, Play
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.stacks.callable_host import as_points
from mt_nodes.stacks.callables import load_callable
from mt_nodes.stacks.reference.node_pipeline import Pipeline
from mt_nodes.world.scene.drive import generate_drive

EXAMPLES = Path(__file__).parent.parent / "examples" / "blame"
RELATIONS = ("clumps_same_command", "clumps_same_obstacles")
POINTS, CLUSTERS, TRACKS, PATH, COMMAND = "/points", "/clusters", "/perception/obstacles", "/planning/path", "/command"
CLOUD = "/sensing/lidar/points"
GRAPH = StackGraph(
    {"filter": (POINTS,), "cluster": (CLUSTERS,), "track": (TRACKS,), "plan": (PATH,), "control": (COMMAND,)},
    {"filter": (CLOUD,), "cluster": (POINTS,), "track": (CLUSTERS,), "plan": (TRACKS,), "control": (PATH, TRACKS)},
    dict.fromkeys((CLOUD, POINTS, CLUSTERS, TRACKS, PATH, COMMAND), "recorded"),
    (CLOUD,),
)


def contents(pipeline: Pipeline, bundle: Bundle) -> dict[str, Content]:
    """Return what each node says of one instant."""
    (cloud,), steps = bundle.clouds, pipeline.steps
    points = as_points(cloud, "base_link", bundle.transforms)
    kept = steps.filtered(points)
    clusters = steps.clustered(kept, bundle.stamp_ns)
    tracks = steps.tracked(clusters)
    path = steps.planned(tracks)
    command = steps.commanded(path, tracks)
    return {
        CLOUD: PointsContent("base_link", points[:, :3].astype(np.float64)),
        POINTS: PointsContent("base_link", kept[:, :3].astype(np.float64)),
        CLUSTERS: BoxesContent(clusters),
        TRACKS: BoxesContent(tracks),
        PATH: FieldsContent({"x": path.pose[:, 0], "len": np.array([float(len(path.pose))])}),
        COMMAND: FieldsContent(
            {"speed": np.array([command.speed_mps]), "yaw_rate": np.array([command.yaw_rate_radps])}
        ),
    }


def recording(run: Run, bundles: Iterable[Bundle]) -> TopicRecording:
    """Play an episode into a new instance of the stack."""
    pipeline = load_callable(run.stack)
    assert isinstance(pipeline, Pipeline)
    return TopicRecording({b.index: {t: [pickle.dumps(c)] for t, c in contents(pipeline, b).items()} for b in bundles})


def plays_of(run: Run, directory: Path, repeats: int) -> tuple[list[Play], list[Play]]:
    """Return plays of the pair and of control; what is deterministic is played once."""
    (episode,), (offer,) = run.episodes, run.offers
    sources = list(episode())
    followups = RecordedFollowups(offer.relation, directory)
    plans = [followups(offer, bundle) for bundle in sources]
    changed = [b if p.derived is None else p.derived.followup.first for p, b in zip(plans, sources, strict=True)]
    for followup, source in zip(changed, sources, strict=True):
        assert followup.index == source.index
    chance = bool(run.stack.params.get("flicker"))
    once = [recording(run, arm) for arm in (sources, changed)]

    def again(arm: Sequence[Bundle], first: TopicRecording) -> TopicRecording:
        return recording(run, arm) if chance else first

    pair = [Play(again(sources, once[0]), again(changed, once[1]), True) for _ in range(repeats)]
    return pair, [Play(again(sources, once[0]), again(sources, once[0])) for _ in range(repeats)]


def blames(directory: Path, most: int, repeats: int) -> list[dict[str, Any]]:
    """Return what is blamed for the violated pairs of a run, at most so many of each episode and relation."""
    violated: dict[tuple[int, str], list[Pair]] = {}
    for line in read_journal(directory / "result.jsonl"):
        if line.get("outcome") == "VIOLATED":
            pair = Pair.parse(line["pair"])
            if pair.relation in RELATIONS and pair.bundle is not None:
                violated.setdefault((pair.episode, pair.relation), []).append(pair)
    rows = []
    for pairs in violated.values():
        chosen = sorted(pairs, key=lambda pair: pair.bundle or 0)[-most:]
        finished = RecordedPair.find(directory, str(chosen[-1]))
        run = Run.make(finished.request("inprocess"), directory)
        pair_plays, control = plays_of(run, directory, repeats)
        check = run.offers[0].judges[0].check
        region = getattr(check, "region", None)
        judged = [TRACKS] if "detections" in check.needs else [COMMAND]
        for pair in chosen:
            evidence = Evidence(
                GRAPH, pair_plays, control, judged, [TRACKS, PATH, COMMAND], run.static_transforms,
                region if isinstance(region, Region) else None, getattr(check, "keep_inset_m", 0.0), pair.bundle,
                getattr(run.offers[0].relation.mutate[0], "region", None),
            )  # fmt: skip
            finding = analyse(evidence, lambda topic, data: pickle.loads(data), ALPHA)
            blame = finding.blame
            states = {topic: state.value for topic, state in finding.states.items()}
            rows.append({"pair": str(pair), "nodes": blame.nodes, "located": blame.located, "why": blame.why, **states})
    return rows


def main() -> None:
    """Run the study and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=2, help="drives")
    parser.add_argument("--frames", type=int, default=10, help="of each")
    parser.add_argument("--most", type=int, default=5, help="violated pairs of each drive and relation")
    parser.add_argument("--repeats", type=int, default=6)
    given = parser.parse_args()
    drives = [given.out / f"drive{seed}" for seed in range(1, given.seeds + 1)]
    for seed, drive in enumerate(drives, 1):
        if not drive.exists():
            write_bundles(drive, generate_drive(given.frames, seed))
    planted = {n: cls.node for n, cls in plugins.catalogue("faults").items() if cls.stack == "pipeline"}  # type: ignore[attr-defined]
    study: dict[str, Any] = {}
    for name, node in {**planted, "flicker": ""}.items():
        out = given.out / name
        if not (out / "summary.json").exists():
            how = ["--fault", name] if node else ["--set", "params.flicker=0.5"]
            relations = ",".join(str(EXAMPLES / f"{relation}.yaml") for relation in RELATIONS)
            words = ["--stack", "reference_pipeline", "--relations", relations, "--transport", "inprocess", *how]
            mt(["replay", *map(str, drives), *words, "--out", str(out)])
        rows = blames(out, given.most, given.repeats)
        study[name] = {"node": node, "rows": rows}
        named = Counter(", ".join(row["nodes"]) if row["located"] else "not located" for row in rows)
        print(f"{name:26} in {node or '(honest)':9} {len(rows):3} violated pairs: {dict(named)}", flush=True)
        (given.out / "study.json").write_text(json.dumps(study, indent=1))


if __name__ == "__main__":
    main()
