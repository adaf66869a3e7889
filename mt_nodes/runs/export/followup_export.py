# SPDX-License-Identifier: Apache-2.0
"""The follow-ups of the violated pairs of finished replays, with their labels, and why others are left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Image
from mt_nodes.data.outputs import Detections, ImageBoxes, Output
from mt_nodes.data.regions import RegionUnavailable
from mt_nodes.data.transforms import UnknownTransform
from mt_nodes.data.verdict import Outcome, Pair
from mt_nodes.engine.evidence import evidence_path
from mt_nodes.engine.finish import read_summary
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.message_digests import sha256_of_followup
from mt_nodes.engine.run_record import read_record
from mt_nodes.relations.checks.boxes import BoxCheck, image_of
from mt_nodes.relations.checks.obstacles import ObstacleCheck
from mt_nodes.relations.relation import Relation
from mt_nodes.report.evidence_view import recorded_outputs
from mt_nodes.runs.again.regeneration import RemadeFollowup, made_again, run_of_results
from mt_nodes.runs.campaign.cases import steady
from mt_nodes.runs.export.carried_labels import (
    LABELS,
    SOURCE_OUTPUT,
    CarriedLabels,
    Outlines,
    carried_boxes,
    carried_image_boxes,
    labelled_image_boxes,
)

#: Sensor that a format is of.
LIDAR, CAMERA = "lidar", "camera"


class LeftOut(Exception):
    """A violated pair cannot be exported; the text says why."""


@dataclass(frozen=True, eq=False)
class ExportedFrame:
    """One follow-up as it is written.

    Attributes:
        results: directory of its run. pair: which one. seed: of the run. bag: of the source.
        sha256: of the follow-up, by the ledger, and made again.
        bundle: the follow-up. changed: its topics whose messages are not the source's. effects: of the mutation.
        image: of the follow-up, which the labels are of; None: they are of its clouds.
        labels: what is in it.
    """

    results: Path
    pair: Pair
    seed: int
    bag: str
    sha256: str
    bundle: Bundle
    changed: frozenset[str]
    effects: Effects
    image: Image | None
    labels: CarriedLabels


@dataclass
class ExportedPairs:
    """Iterates over what can be exported of results directories, and counts the rest.

    Attributes:
        directories: of finished replays. sensor: ``lidar`` or ``camera``. preference: origins of labels, the first
            that a pair has is taken. limit: export at most so many; None: all.
        left_out: why violated pairs are not exported -> how many. never: outcome of pairs whose follow-ups are proof of
            nothing (INVALID, ERROR) -> how many.
    """

    directories: Sequence[Path]
    sensor: str
    preference: Sequence[str]
    limit: int | None = None
    left_out: Counter[str] = field(default_factory=Counter)
    never: Counter[str] = field(default_factory=Counter)

    def __iter__(self) -> Iterator[ExportedFrame]:
        left = self.limit
        for place in self.directories:
            wanted = self._violated(place)
            if left is not None and len(wanted) > left:
                self.left_out["over --limit"] += len(wanted) - left
                wanted = dict(list(wanted.items())[:left])
            left = None if left is None else left - len(wanted)
            if wanted:
                yield from self._frames(place, wanted)

    def _violated(self, place: Path) -> dict[str, Pair]:
        """Return the violated pairs of relations that stand out from control and sham, by their follow-ups."""
        record, outcomes = read_record(place), read_summary(place).get("relations", {})
        if "bags" not in record["request"]:
            raise UsageError(f"{place}: holds no replay of bags; follow-ups are exported of `mt replay` and campaigns")
        judged = {row["id"] for row in record["relations"] if row["check"] is not None}
        found = {}
        for line in read_journal(place / "result.jsonl"):
            if line["type"] != "verdict" or line["relation"] not in judged:
                continue
            if line["outcome"] in (Outcome.INVALID.value, Outcome.ERROR.value):
                self.never[line["outcome"]] += 1
            elif line["outcome"] == Outcome.VIOLATED.value:
                pair = Pair.parse(line["pair"])
                reason = _unfit(pair, outcomes.get(line["relation"], {}))
                if reason:
                    self.left_out[reason] += 1
                else:
                    found[str(pair.followup)] = pair
        return found

    def _frames(self, place: Path, wanted: Mapping[str, Pair]) -> Iterator[ExportedFrame]:
        run = run_of_results(place)
        if isinstance(run, str):
            raise UsageError(f"{place}: {run}")
        relations = {relation.id: relation for relation in run.suite.relations}
        done = 0
        for remade in made_again(run, place, wanted):
            done += 1
            try:
                relation = relations[remade.pair.relation]
                bag = run.request.bags[remade.pair.episode - run.request.first_episode]
                yield self._frame(place, remade, relation, run.request.seed, bag)
            except LeftOut as why:
                self.left_out[str(why)] += 1
        if lost := len(wanted) - done:
            self.left_out["the bag has no such bundle any more, or the ledger no such follow-up"] += lost

    def _frame(self, place: Path, remade: RemadeFollowup, relation: Relation, seed: int, bag: str) -> ExportedFrame:
        if remade.wrong or remade.derived is None:
            raise LeftOut(remade.wrong)
        followup = remade.derived.followup
        if remade.derived.baseline is not None:
            raise LeftOut("the source arm was given a change as well")
        if len(followup.bundles) != 1:
            raise LeftOut("the follow-up is not one frame: it sends several, or none")
        source, bundle = remade.bundle, followup.first
        image, labels = self._labels(place, remade.pair, relation, source, bundle, followup.effects)
        known = place, remade.pair, seed, bag, sha256_of_followup(followup)
        return ExportedFrame(*known, bundle, bundle.changed_topics(source), followup.effects, image, labels)

    def _labels(
        self, place: Path, pair: Pair, relation: Relation, source: Bundle, bundle: Bundle, effects: Effects
    ) -> tuple[Image | None, CarriedLabels]:
        check, image = relation.check, None
        if isinstance(check, BoxCheck) and self.sensor == CAMERA:
            role = "boxes"
        elif isinstance(check, ObstacleCheck) and check.scored == "detections" and self.sensor == LIDAR:
            role = "detections"
        else:
            raise LeftOut(f"its check does not say which objects a {_INPUT[self.sensor]} shows")
        said, origin, areas_m = self._said(place, pair, role, source)
        try:
            if isinstance(said, ImageBoxes) and isinstance(check, BoxCheck):
                image = image_of(source, said)
                if image is None:
                    raise LeftOut("it is not known which image its boxes are in")
                labels = carried_image_boxes(check, said, origin, image, effects)
                image = next(one for one in bundle.images if one.topic == image.topic)
            else:
                assert isinstance(check, ObstacleCheck) and isinstance(said, Detections)
                labels = carried_boxes(check, said, origin, source, bundle, effects, areas_m)
        except (RegionUnavailable, UnknownTransform) as error:
            raise LeftOut(str(error)) from error
        if not len(labels.objects) and origin == SOURCE_OUTPUT:
            raise LeftOut("the stack's output of the source has no object that is still to be found in the follow-up")
        return image, labels

    def _said(
        self, place: Path, pair: Pair, role: str, source: Bundle
    ) -> tuple[Detections | ImageBoxes, str, Outlines | None]:
        """Return the objects of the source, of the first origin that has any to say, which that is, and where."""
        reasons = []
        for origin in self.preference:
            if origin == LABELS:
                truth = source.truth
                if truth is not None and role == "detections":
                    return truth.objects, LABELS, truth.areas_m
                boxes = None if truth is None else labelled_image_boxes(source)
                if boxes is not None:
                    return boxes, LABELS, None
                reasons.append("the recording has no labels")
            else:
                if not evidence_path(place, pair).is_file():
                    reasons.append("no evidence with the stack's output was kept")
                elif (said := getattr(_output(place, pair), role)) is not None:
                    return said, SOURCE_OUTPUT, None
                else:
                    reasons.append("the stack's output of the source is in messages that evidence is not read of")
        raise LeftOut(", and ".join(reasons))


_INPUT = {LIDAR: "cloud", CAMERA: "picture"}


def _unfit(pair: Pair, outcome: Mapping[str, Any]) -> str:
    if pair.bundle is None:
        return "it stands for a whole episode, not for a frame"
    if not steady(outcome):
        return f"{pair.relation}: control or sham was violated as well, and its violations do not stand out"
    return ""


def _output(place: Path, pair: Pair) -> Output:
    try:
        return recorded_outputs(place, pair)[0]
    except InfrastructureError as error:
        raise LeftOut(str(error)) from error
