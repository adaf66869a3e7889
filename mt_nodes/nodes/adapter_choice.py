# SPDX-License-Identifier: Apache-2.0
"""Which adapter reads and writes an output that a stack file names: one of a message type, or one by fields."""

from __future__ import annotations

from mt_nodes.data.stack_topics import OutputTopic
from mt_nodes.nodes.by_fields import ByFields
from mt_nodes.stacks.message_adapter import Adapter, adapter_for


def adapter_of(role: str, output: OutputTopic) -> Adapter:
    """Return the adapter that a stack file asks for.

    Raises UsageError: there is none (names those that exist), or it does not take what is given.
    """
    if output.fields:
        return ByFields(role, output.type, output.fields)
    return adapter_for(role, output.type, output.adapter, output.params)
