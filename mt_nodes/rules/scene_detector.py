# SPDX-License-Identifier: Apache-2.0
"""Which elements of a scene are present or absent, by a detector that runs beside: any stateless callable stack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.data.messages import Bundle, Message
from mt_nodes.data.outputs import Output
from mt_nodes.relations.facts.presence import by_detector
from mt_nodes.relations.facts.scene_facts import Facts
from mt_nodes.stacks.callable_host import CallableHost
from mt_nodes.stacks.stack import Stack, load_stack

#: Messages of a bundle by role of a stack's inputs.
_MESSAGES = {"lidar": "clouds", "camera": "images", "camera_info": "camera_infos", "radar": "radars"}


@dataclass(frozen=True)
class SceneDetector:
    """A detector beside the stack under test; its stack file says where it looks and how much it finds."""

    stack: Stack

    @classmethod
    def named(cls, name: str) -> SceneDetector:
        """Load a detector by the name or file of its stack.

        Raises UsageError: its file has no coverage, or it cannot look at single frames.
        """
        stack = load_stack(name)
        if not any(coverage.recall or coverage.precision for coverage in stack.coverage.values()):
            raise UsageError(
                f"detector '{name}': its stack file states no recall, so that finding nothing means nothing; add "
                "coverage: {boxes: {recall: {red_light: 0.95}, measured: …}} as measured"
            )
        if not stack.callable or not stack.stateless:
            raise UsageError(f"detector '{name}': expected a callable or a network with stateless: true")
        if worldly := [role for role in stack.topics if role not in _MESSAGES]:
            raise UsageError(f"detector '{name}': takes {', '.join(worldly)}, which a recording has not")
        return cls(stack)

    def __call__(self, bundle: Bundle, known: Mapping[str, Any]) -> Facts:
        """Return the presence of elements in one frame; ``known``: facts that its coverage's condition is about."""
        return by_detector(self._output(bundle), self.stack.traits, f"'{self.stack.name}'", known)

    @cached_property
    def _host(self) -> CallableHost:
        return CallableHost.make(self.stack)

    def _output(self, bundle: Bundle) -> Output | None:
        """Return its answer to a frame, None if the frame lacks one of its inputs."""
        inputs: dict[str, Message] = {}
        for role, topics in self.stack.topics.items():
            messages = getattr(bundle, _MESSAGES[role])
            if len(messages) < len(topics):
                return None
            inputs |= dict(zip(topics, messages, strict=False))
        return self._host(inputs if self.stack.joins else next(iter(inputs.values())), bundle.transforms)
