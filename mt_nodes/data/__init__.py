# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs of stacks: messages, outputs, effects, transforms, regions, verdicts.

It imports :mod:`mt_nodes.base` alone.
A new kind of message or output goes here.
"""
