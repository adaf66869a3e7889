# SPDX-License-Identifier: Apache-2.0
"""What every condition is: whether a relation applies to a source case."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, TypeVar

from mt_nodes.data.messages import Bundle
from mt_nodes.data.output_traits import OutputTraits
from mt_nodes.data.outputs import Output

C = TypeVar("C", bound="Condition")


class Condition(ABC):
    """A *given*. Subclasses are frozen dataclasses whose fields are their parameters."""

    #: Whether facts that are known of a scene decide it: only such a one may be asked of a drive.
    by_facts: ClassVar[bool] = False

    def of_stack(self: C, traits: OutputTraits) -> C:
        """Return the condition with what it lacks and the stack file says, such as thresholds of scores."""
        return self

    @abstractmethod
    def unmet(self, bundle: Bundle, source: Output) -> str | None:
        """Return why the relation does not apply here, or None when it does.

        What cannot be evaluated is unmet: the text says what was missing.
        """
