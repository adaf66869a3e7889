# SPDX-License-Identifier: Apache-2.0
"""What a plugin imports: the base classes, what they take and return, and helpers for its tests.

It imports every room but :mod:`~mt_nodes.api`, :mod:`~mt_nodes.cli` and :mod:`~mt_nodes.nodes`.
A name that authors of plugins need goes into ``NAMES``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mt_nodes.base.errors import NoEffect as NoEffect
    from mt_nodes.base.errors import NotApplicable as NotApplicable
    from mt_nodes.base.errors import UsageError as UsageError
    from mt_nodes.base.params import param as param
    from mt_nodes.data.arm_series import SeriesWindow as SeriesWindow
    from mt_nodes.data.effects import Effects as Effects
    from mt_nodes.data.effects import Volume as Volume
    from mt_nodes.data.images.codecs import Pixels as Pixels
    from mt_nodes.data.message_headers import set_header as set_header
    from mt_nodes.data.messages import Bundle as Bundle
    from mt_nodes.data.messages import CameraInfo as CameraInfo
    from mt_nodes.data.messages import Cloud as Cloud
    from mt_nodes.data.messages import Image as Image
    from mt_nodes.data.outputs import Control as Control
    from mt_nodes.data.outputs import Detections as Detections
    from mt_nodes.data.outputs import ImageBoxes as ImageBoxes
    from mt_nodes.data.outputs import Output as Output
    from mt_nodes.data.outputs import Path as Path
    from mt_nodes.data.regions import Region as Region
    from mt_nodes.data.regions import load_region as load_region
    from mt_nodes.data.transforms import UnknownTransform as UnknownTransform
    from mt_nodes.data.transforms import move as move
    from mt_nodes.data.verdict import Judgement as Judgement
    from mt_nodes.data.verdict import Outcome as Outcome
    from mt_nodes.relations.checks.base import Check as Check
    from mt_nodes.relations.checks.base import at_least as at_least
    from mt_nodes.relations.checks.base import at_most as at_most
    from mt_nodes.relations.checks.base import nothing_to_judge as nothing_to_judge
    from mt_nodes.relations.checks.obstacles import Comparison as Comparison
    from mt_nodes.relations.checks.obstacles import ObstacleCheck as ObstacleCheck
    from mt_nodes.relations.checks.sequence import SequenceCheck as SequenceCheck
    from mt_nodes.relations.checks.trace_check import TraceCheck as TraceCheck
    from mt_nodes.relations.conditions.base import Condition as Condition
    from mt_nodes.relations.mutations.base import Draw as Draw
    from mt_nodes.relations.mutations.base import Followup as Followup
    from mt_nodes.relations.mutations.base import Mutation as Mutation
    from mt_nodes.relations.mutations.camera.each_image import EachImage as EachImage
    from mt_nodes.relations.mutations.camera.each_image import View as View
    from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud as EachCloud
    from mt_nodes.relations.mutations.lidar.each_cloud import proof_of_change as proof_of_change
    from mt_nodes.relations.mutations.lidar.each_cloud import proof_of_removal as proof_of_removal
    from mt_nodes.relations.mutations.lidar.each_cloud import without as without
    from mt_nodes.relations.mutations.lidar.rays import returns as returns
    from mt_nodes.relations.stream_checks.base import Breach as Breach
    from mt_nodes.relations.stream_checks.base import StreamCheck as StreamCheck
    from mt_nodes.relations.stream_checks.base import StreamFinding as StreamFinding
    from mt_nodes.relations.stream_checks.base import StreamMemory as StreamMemory
    from mt_nodes.relations.stream_checks.base import WatchedInstant as WatchedInstant
    from mt_nodes.relations.stream_checks.base import nothing_watched as nothing_watched
    from mt_nodes.relations.world_changes.base import ScenarioChange as ScenarioChange
    from mt_nodes.relations.world_changes.base import Setting as Setting
    from mt_nodes.relations.world_changes.base import WorldEffects as WorldEffects
    from mt_nodes.runs.moral.base import Expectation as Expectation
    from mt_nodes.stacks.message_adapter import Adapter as Adapter
    from mt_nodes.stacks.message_adapter import OutputPart as OutputPart
    from mt_nodes.stacks.message_adapter import StampedAdapter as StampedAdapter
    from mt_nodes.stacks.reference.faults.base import Fault as Fault

#: What to derive from
#:
#: =================================  ============================================================
#: to write                           derive from
#: =================================  ============================================================
#: a mutation of point clouds         :class:`EachCloud`: each cloud by itself
#: a mutation of images               :class:`EachImage`: each image by itself
#: any other mutation                 :class:`Mutation`: the whole bundle, also several follow-ups
#: a check of one pair of outputs     :class:`Check`; of obstacles in a region: :class:`ObstacleCheck`
#: a check of a whole episode         :class:`SequenceCheck`; of two drives: :class:`TraceCheck`
#: a check of one stream of outputs   :class:`StreamCheck`, with a :class:`StreamMemory`
#: a condition (``given``)            :class:`Condition`
#: an adapter of a message type       :class:`StampedAdapter`, or :class:`Adapter` without a header
#: a change of a scenario             :class:`ScenarioChange`
#: a fault of a reference stack       :class:`Fault`
#: an expectation of moral testing    :class:`Expectation`
#: =================================  ============================================================
#:
#: Module, without the package -> the public names that it defines. A name is imported when it is asked for, so that a
#: plugin loads no more than it uses.
NAMES = {
    "base.errors": ("NoEffect", "NotApplicable", "UsageError"),
    "base.params": ("param",),
    "data.arm_series": ("SeriesWindow",),
    "data.effects": ("Effects", "Volume"),
    "data.images.codecs": ("Pixels",),
    "data.messages": ("Bundle", "CameraInfo", "Cloud", "Image"),
    "data.outputs": ("Control", "Detections", "ImageBoxes", "Output", "Path"),
    "data.regions": ("Region", "load_region"),
    "data.transforms": ("UnknownTransform", "move"),
    "data.verdict": ("Judgement", "Outcome"),
    "stacks.message_adapter": ("Adapter", "OutputPart", "StampedAdapter"),
    "data.message_headers": ("set_header",),
    "relations.checks.base": ("Check", "at_least", "at_most", "nothing_to_judge"),
    "relations.checks.obstacles": ("Comparison", "ObstacleCheck"),
    "relations.checks.sequence": ("SequenceCheck",),
    "relations.checks.trace_check": ("TraceCheck",),
    "relations.conditions.base": ("Condition",),
    "relations.mutations.base": ("Draw", "Followup", "Mutation"),
    "relations.mutations.camera.each_image": ("EachImage", "View"),
    "relations.mutations.lidar.each_cloud": ("EachCloud", "proof_of_change", "proof_of_removal", "without"),
    "relations.mutations.lidar.rays": ("returns",),
    "relations.stream_checks.base": (
        *("Breach", "StreamCheck", "StreamFinding", "StreamMemory", "WatchedInstant", "nothing_watched"),
    ),
    "relations.world_changes.base": ("ScenarioChange", "Setting", "WorldEffects"),
    "runs.moral.base": ("Expectation",),
    "stacks.reference.faults.base": ("Fault",),
}
_MODULES = {name: module for module, names in NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name.

    Raises:
        AttributeError: there is none.
    """
    if name not in _MODULES:
        from mt_nodes.base.errors import suggest

        raise AttributeError(f"mt_nodes.plugin has no '{name}'{suggest(name, _MODULES)}")
    return getattr(importlib.import_module(f"mt_nodes.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted((*globals(), *_MODULES))
