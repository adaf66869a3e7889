# SPDX-License-Identifier: Apache-2.0
"""Which elements of a scene are present, which absent, by labels or a detector; nothing is said of any other.

An element is absent only if somebody looked for it: labels of every class that it may have, or a detector whose recall
on these classes is known and at least :data:`~mt_nodes.data.detector_coverage.LEAST_SHARE`. The recall stands in the
source of the fact, because such an absence is only as sure as that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mt_nodes.data.detector_coverage import LEAST_SHARE, ROLES, DetectorCoverage
from mt_nodes.data.ground_truth import GroundTruth
from mt_nodes.data.output_traits import OutputTraits
from mt_nodes.data.outputs import Detections, ImageBoxes, Output
from mt_nodes.relations.facts.condition import HAS, element_of, evaluate, presence_of
from mt_nodes.relations.facts.scene_facts import Fact, Facts, first_known, unknown


class ElementClasses(NamedTuple):
    """Classes of detections and an element: any of ``shows`` proves it; all of it are among ``covers``."""

    shows: tuple[str, ...]
    covers: tuple[str, ...]


#: Classes of detections after which no element of a scene is named.
_NO_ELEMENTS = frozenset({"car", "truck", "bus", "tram", "motorcycle", "unknown"})
_ANY_VEHICLE = ("car", "truck", "bus", "motorcycle")
#: Elements that are more or less than one class; an element named as a class is that class.
_CLASSES: Mapping[str, ElementClasses] = {
    **dict.fromkeys(
        ("child", "senior", "passenger", "person_with_small_children", "construction_worker", "crossing_guard"),
        ElementClasses((), ("pedestrian",)),
    ),
    "oncoming_bicyclist": ElementClasses((), ("cyclist",)),
    "rail_vehicle": ElementClasses(("tram",), ("tram",)),
    "motorcyclist": ElementClasses(("motorcycle",), ("motorcycle",)),
    "public_bus": ElementClasses((), ("bus",)),
    "school_bus": ElementClasses((), ("bus",)),
    "multi_track_motor_vehicle": ElementClasses(("truck", "bus"), ("truck", "bus")),
    "motor_vehicle": ElementClasses(_ANY_VEHICLE, _ANY_VEHICLE),
}


def classes_of(element: str) -> ElementClasses:
    """Return the classes of an element."""
    return _CLASSES.get(element, ElementClasses((element,), (element,)))


def _elements(classes: Collection[str]) -> list[str]:
    """Return the elements of which these classes tell anything."""
    named = [*_CLASSES, *(name for name in sorted(classes) if name not in _CLASSES and name not in _NO_ELEMENTS)]
    return [name for name in named if set(classes_of(name).shows + classes_of(name).covers) & set(classes)]


def by_labels(truth: GroundTruth | None) -> Facts:
    """Return the presence of elements by the labels of a data set: exact within the labelled area."""
    if truth is None:
        return {}
    found = set(truth.objects.label.tolist())
    source = "labels of the data set" + ("" if truth.areas_m is None else ", within the labelled area")
    facts: Facts = {}
    for element in _elements(truth.classes):
        shows, covers = classes_of(element)
        if found & set(shows):
            facts[presence_of(element)] = Fact(True, source)
        elif truth.classes >= set(covers) and not found & set(covers):
            facts[presence_of(element)] = Fact(False, source)
    return facts


def by_detector(output: Output | None, traits: OutputTraits, who: str, known: Mapping[str, Any]) -> Facts:
    """Return the presence of elements by the output of a detector.

    ``output``: None if there is none; nothing is absent then. ``who``: the detector, as the facts' sources name it.
    ``known``: facts of the scene, for the coverage's condition.
    """
    facts: Facts = {}
    for role in ROLES:
        coverage = traits.coverage.get(role)
        if coverage is None:
            continue
        rows = None if output is None else getattr(output, role)
        facts = first_known(facts, dict(_of_role(rows, coverage, traits, role, who, known)))
    return facts


def _of_role(
    rows: Detections | ImageBoxes | None,
    coverage: DetectorCoverage,
    traits: OutputTraits,
    role: str,
    who: str,
    known: Mapping[str, Any],
) -> Iterator[tuple[str, Fact]]:
    """Yield each element's presence by the rows of one output."""
    where = f"{role} of {who}"
    thresholds, looked = traits.thresholds(role), evaluate(coverage.given, known)
    for element in _elements({*coverage.recall, *coverage.precision}):
        if rows is None:
            fact = unknown(f"there are no {where}")
        elif not looked:
            doubt = "is not known" if looked is None else "is not so"
            fact = unknown(f"{where} were measured where {coverage.given}, which {doubt}")
        else:
            within = rows.score[_in_range(rows, coverage)], rows.label[_in_range(rows, coverage)]
            sure, maybe = ({*within[1][within[0] >= least].tolist()} for least in (thresholds.high, thresholds.low))
            fact = _presence(element, coverage, sure, maybe, where)
        yield presence_of(element), fact


def _presence(element: str, coverage: DetectorCoverage, sure: set[str], maybe: set[str], where: str) -> Fact:
    shows, covers = classes_of(element)
    if found := sorted(sure & set(shows)):
        precision = max(coverage.precision.get(name, 0.0) for name in found)
        if precision >= LEAST_SHARE:
            return Fact(True, f"{where}, precision {precision:g} ({coverage.measured})")
        return unknown(f"{where}: {', '.join(found)} found, with a precision of {precision:g}, below {LEAST_SHARE:g}")
    if candidates := sorted(maybe & {*shows, *covers}):
        return unknown(f"{where}: {', '.join(candidates)} found, which may be one")
    recall = min((coverage.recall.get(name, 0.0) for name in covers), default=0.0)
    if recall < LEAST_SHARE:
        return unknown(f"{where}: none found, with a recall of {recall:g}, below {LEAST_SHARE:g}")
    return Fact(False, f"none in {where} {coverage.place}, recall {recall:g} ({coverage.measured})")


def _in_range(rows: Detections | ImageBoxes, coverage: DetectorCoverage) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which rows lie where it looks; of a picture's boxes the distance is unknown, so that all count."""
    if isinstance(rows, ImageBoxes):
        return np.ones(len(rows), dtype=bool)
    x, y = rows.center_m[:, :2].T
    # A row with non-finite numbers counts: something was found, nobody knows where.
    beyond = np.hypot(x, y) > coverage.range_m
    aside = np.abs(np.arctan2(y, x)) > np.radians(coverage.field_of_view_deg) / 2.0
    return np.asarray(~(beyond | aside))


def agreed_presence(exact: Sequence[Facts], unsure: Sequence[Facts]) -> Facts:
    """Return the presence of each element by all sources.

    Exact sources (the user, a world, labels) count in their order. One that knows all elements (``has``) leaves nothing
    to unsure ones (detectors, models). Where one unsure source finds what another does not, it is unknown.
    """
    known = first_known(*map(presence_facts, exact)) if exact else {}
    if any(facts[HAS].known for facts in exact if HAS in facts):
        return known
    together: Facts = {}
    for name in dict.fromkeys(name for facts in unsure for name in presence_facts(facts)):
        stated = [facts[name] for facts in unsure if name in facts]
        values = {fact.value for fact in stated if fact.known}
        together[name] = next((fact for fact in stated if fact.known), stated[-1])
        if len(values) > 1:
            together[name] = unknown(
                "; ".join(f"{'present' if f.value else 'absent'}: {f.source}" for f in stated if f.known)
            )
    return first_known(known, together)


def presence_facts(facts: Mapping[str, Fact]) -> Facts:
    """Return the facts that say whether one element is present."""
    return {name: fact for name, fact in facts.items() if element_of(name)}
