# SPDX-License-Identifier: Apache-2.0
"""Stacks under test: their files, the processes that host callables, and the reference stacks.

It imports :mod:`mt_nodes.base`, :mod:`mt_nodes.data` and :mod:`mt_nodes.world`.
A key of stack files goes here, a planted fault into ``reference/faults``. Adapters are in ``nodes/adapters``.
"""
