# SPDX-License-Identifier: Apache-2.0
"""Helpers for the tests of plugins, relations and stacks: a generated scene, outputs, and short runs without ROS."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from mt_nodes.base import plugins
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Detections, Output
from mt_nodes.engine.message_digests import sha256_of_followup
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.relations.mutations.base import Followup, Mutation
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.runs.replay.execute import execute, in_process_arms
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.stacks.callable_host import CallableHost
from mt_nodes.stacks.stack import load_stack
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import hdl_64e

#: Columns of the generated LiDAR, a quarter of a real one's: a run of a few frames takes about a second.
COLUMNS = 450


@lru_cache(maxsize=8)
def street(frames: int = 1, seed: int = 1) -> tuple[Bundle, ...]:
    """Return the bundles of a generated drive through a street: one cloud each, in frame ``velodyne``, 10 Hz.

    Each cloud has about 27,000 points with fields x, y, z, intensity, ring and time. ``base_link`` lies on the ground
    below the sensor. The same arguments give the same bundles.
    """
    return tuple(generate_drive(frames, seed, replace(hdl_64e(), azimuths=COLUMNS)))


def obstacles(
    *places_m: Sequence[float], label: str = "car", score: float = 1.0, frame_id: str = "base_link"
) -> Output:
    """Return an output with an obstacle of 4 x 2 x 1.5 m at each place (x, y) or (x, y, z); z is 0.75 by default."""
    centers = [(*place, 0.75)[:3] for place in places_m]
    count = len(centers)
    return Output(
        detections=Detections.make(
            frame_id, 0, centers, [(4.0, 2.0, 1.5)] * count, [0.0] * count, [label] * count, [score] * count
        )
    )


def derive(mutation: Mutation, bundle: Bundle, seed: int = 0, *, neutral: bool = False) -> Followup:
    """Return the follow-up that a run would send, having checked that it would be sent.

    Args:
        neutral: whether the parameters are those at which nothing changes.

    Raises:
        AssertionError: the mutation breaks its guarantee, writes to its input, makes two follow-ups of one draw, or
            changes nothing (of ``neutral`` parameters: something).
        NotApplicable: it has no follow-up of this bundle.
        PluginError: it raised an exception.
    """
    before = _sha256([bundle])
    derived = MutationPipeline([mutation], seed, "plugin_test").derive(bundle)
    if _sha256([bundle]) != before:
        raise AssertionError("apply wrote into the source; return a changed copy")
    if derived.broken is not None:
        raise AssertionError(f"the guarantee is broken: {derived.broken}")
    again = mutation.apply(bundle, derived.draws[0])
    if sha256_of_followup(again) != sha256_of_followup(derived.followup):
        raise AssertionError("one draw gives two follow-ups: make every random choice in draw, none in apply")
    same = sha256_of_followup(derived.followup) == sha256_of_followup(Followup(((0, bundle),)))
    if same and not neutral:
        raise AssertionError("nothing changed: raise NotApplicable in draw where there is nothing to change")
    if neutral and not same:
        raise AssertionError("something changed: parameters at their neutral values must change nothing")
    return derived.followup


def answer(stack: str | Path, bundle: Bundle) -> Output:
    """Return what the callable of a stack file answers to a bundle whose leading sensor is a LiDAR.

    Raises:
        UsageError: the file or the callable is wrong.
        InfrastructureError: the callable returned something else than the file says.
    """
    return CallableHost.make(load_stack(str(stack)))(bundle.cloud(), bundle.transforms, bundle.stamp_ns)


def replay(
    relation: str | Path,
    out: Path,
    *,
    stack: str | Path = "reference_detector",
    faults: Sequence[str] = (),
    frames: int = 3,
    plugin_directories: Iterable[Path] = (),
) -> dict[str, Any]:
    """Replay a generated drive into a stack, without ROS, and return the summary (``summary.json``).

    Args:
        relation: name or file of a relation. out: a new directory for drive and results.
        stack: name or file of a stack that is a callable. faults: planted in a reference stack.
        plugin_directories: as ``--plugins``.

    Raises:
        UsageError: something of this cannot be used.
    """
    plugins.add_directories(plugin_directories)
    write_bundles(out / "drive", street(frames))
    asked: dict[str, Any] = {"stack": str(stack), "faults": tuple(faults), "transport": "inprocess", "report": False}
    request = ReplayRequest((str(out / "drive"),), (str(relation),), **asked)
    run = Run.create(request, str(out / "results"))
    return execute(run, lambda ending: in_process_arms(run, ending), lambda line: None, lambda verdicts: None)


def _sha256(bundles: Iterable[Bundle]) -> str:
    digest = hashlib.sha256()
    for bundle in bundles:
        for cloud in (*bundle.clouds, *bundle.radars):
            digest.update(cloud.points.tobytes())
        for image in bundle.images:
            digest.update(image.compressed or image.pixels.tobytes())
    return digest.hexdigest()
