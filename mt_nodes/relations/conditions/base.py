# SPDX-License-Identifier: Apache-2.0
"""Base class of conditions: whether a relation applies to a source case."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, TypeVar

from mt_nodes.data.messages import Bundle
from mt_nodes.data.output_traits import OutputTraits
from mt_nodes.data.outputs import Output

C = TypeVar("C", bound="Condition")


class Condition(ABC):
    """A condition (``given``). Subclasses are frozen dataclasses whose fields are their parameters."""

    #: Whether known facts of a scene decide it: only such a condition can be evaluated for a drive.
    by_facts: ClassVar[bool] = False

    def of_stack(self: C, traits: OutputTraits) -> C:
        """Return the condition with missing settings, such as score thresholds, taken from the stack file."""
        return self

    @abstractmethod
    def unmet(self, bundle: Bundle, source: Output) -> str | None:
        """Return why the relation does not apply here, or None when it does.

        A condition that cannot be evaluated is not met: the text says what is missing.
        """
