# SPDX-License-Identifier: Apache-2.0
"""``mt_nodes.mutate``: the follow-up of one frame, as a run makes it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from mt_nodes.api.frames import Frame
from mt_nodes.base import plugins, resources
from mt_nodes.base.errors import InfrastructureError, NotApplicable, UsageError, suggest
from mt_nodes.data.effects import Effects
from mt_nodes.engine.bag_mutation import RELATION
from mt_nodes.engine.message_digests import sha256_of_followup
from mt_nodes.relations.manipulations import manipulations, mutations_named
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation
from mt_nodes.relations.pipeline import DerivedFollowup, MutationPipeline
from mt_nodes.relations.relation import FOLDER, RULE_BORN, Relation, load_relation


@dataclass(frozen=True, eq=False, repr=False)
class ChangedFrame(Frame):
    """A frame that a mutation made.

    Attributes:
        source: the frame it was made of.
        baseline: what the stack gets in place of the source, for a relation that compares more of a change with less of
            it; otherwise None.
        effects: what the change adds, removes, hides or moves, as far as checks need it.
        draws: the random choices of each mutation.
        delay_ms: how much later than the source it is sent.
    """

    source: Frame = field(kw_only=True)
    baseline: Frame | None = field(default=None, kw_only=True)
    effects: Effects = field(default_factory=Effects, kw_only=True)
    draws: tuple[Draw, ...] = field(default=(), kw_only=True)
    delay_ms: float = field(default=0.0, kw_only=True)

    @property
    def sha256(self) -> str:
        """SHA-256 (hex) of its sensor messages, as the ledger of a run has it."""
        return sha256_of_followup(Followup(((round(1e6 * self.delay_ms), self.bundle),)))


def mutate(frame: Frame, name: str | os.PathLike[str], *, seed: int = 0, **parameters: Any) -> ChangedFrame:
    """Return a frame changed by a mutation, a manipulation, or the mutations of a relation.

    The draw depends on the seed, the name and the number of the frame. So the follow-up of a relation is that of a run
    with this seed into a stack with the same sensors, and that of a mutation is what ``mt mutate --seed`` writes, bit
    for bit. What persists over a drive begins with its first frame; earlier frames are read where that needs them.

    Args:
        frame: stays as it is.
        name: of a mutation, manipulation or relation, or the file of a relation.
        seed: of all random draws.
        parameters: of the mutation, such as ``visibility_m=80``; see ``mt show NAME``.

    Raises:
        UsageError: no such name or parameter, the frame has none of the sensors that change, or no or several
            frames take the place of this one.
        NotApplicable: this frame has no valid follow-up; the text says why.
        InfrastructureError: the mutation broke its own guarantee.
    """
    if not isinstance(frame, Frame):
        raise UsageError(f"mutate: frame: got {type(frame).__name__} {frame!r:.80}, expected one of mt_nodes.frames")
    if not isinstance(name, (str, os.PathLike)):
        raise UsageError(f"mutate: name: got {type(name).__name__}, expected the name of a mutation, such as 'fog'")
    relation = _relation(os.fspath(name), parameters)
    _refuse_other_sensors(frame, relation, os.fspath(name))
    pipeline = MutationPipeline(relation.mutate, seed, relation.id, relation.baseline, relation.requires)
    _begin(pipeline, frame, (*relation.mutate, *relation.baseline))
    where = f"{os.fspath(name)}: frame {frame.index} at {frame.stamp_ns} ns"
    try:
        derived = pipeline.derive(frame.bundle)
    except NotApplicable as reason:
        raise NotApplicable(f"{where}: {reason}") from reason
    if derived.broken is not None:
        raise InfrastructureError(f"{where}: guarantee broken: {derived.broken}")
    return _changed(frame, derived, where)


def _begin(pipeline: MutationPipeline, frame: Frame, mutations: Sequence[Mutation]) -> None:
    """Show a pipeline the earlier frames, as far as its mutations need them: it begins with the first that it can."""
    track = frame.bundle.track
    moves = any(mutation.needs_motion for mutation in mutations) and track is not None and not track.knows(frame.bundle)
    draws_back = bool(frame.bundle.images) and any(mutation.draw_history for mutation in mutations)
    looks_back = moves or draws_back or any(mutation.needs_history for mutation in mutations)
    if not looks_back and all(type(mutation).begin is Mutation.begin for mutation in mutations):
        return
    for bundle in frame.earlier():
        if pipeline.begun(bundle):
            pipeline.meet(bundle)
        else:
            with suppress(NotApplicable):
                pipeline.derive(bundle)
        if pipeline.begun(bundle) and not looks_back and not pipeline.renews:
            return


def _changed(frame: Frame, derived: DerivedFollowup, where: str) -> ChangedFrame:
    sent = derived.followup.bundles
    if len(sent) != 1:
        text = f"{where}: {len(sent)} frames take its place, expected one; use `mt mutate` or mt_nodes.replay"
        raise UsageError(text)
    delay_ns, bundle = sent[0]
    baseline = None if derived.baseline is None else frame.with_bundle(derived.baseline.followup.first)
    details: dict[str, Any] = {"effects": derived.effects, "draws": tuple(derived.draws), "delay_ms": delay_ns / 1e6}
    return ChangedFrame(bundle, None, source=frame, baseline=baseline, **details)


def _relation(name: str, parameters: dict[str, Any]) -> Relation:
    """Return the relation of a name, or one that stands for the mutations of that name."""
    of_relation = name.endswith((".yaml", ".yml")) or name.startswith(RULE_BORN)
    if not of_relation and (plugins.get("mutations", name) or name in manipulations()):
        mutations = mutations_named(name, parameters, "mutate")
        return Relation(id=RELATION, kind="necessary", because="", mutate=mutations, check=None)
    known = resources.shipped(FOLDER)
    if not of_relation and name not in known:
        everything = [*plugins.catalogue("mutations"), *manipulations(), *known]
        hint = suggest(name, everything, "`mt list mutations` and `mt list relations` show all")
        raise UsageError(f"no mutation, manipulation or relation '{name}'{hint}")
    if parameters:
        raise UsageError(
            f"mutate: got {', '.join(parameters)} for {name}, a relation, which has its own parameters; for others "
            f"name a mutation that `mt show {name}` shows"
        )
    relation = load_relation(name)
    if not relation.mutate:
        raise UsageError(f"'{name}' changes a scenario, no frame; use `mt scenario`")
    return relation


def _refuse_other_sensors(frame: Frame, relation: Relation, name: str) -> None:
    changes = {sensor for mutation in relation.mutate for sensor in mutation.changes}
    if relation.role != "control" and changes and not changes & {*frame.sensors}:
        has = " and ".join(frame.sensors) or "no sensor"
        raise UsageError(f"{name} changes {' and '.join(sorted(changes))}; frame {frame.index} has {has}")
