# SPDX-License-Identifier: Apache-2.0
"""Metamorphic relations and their parts: mutations, checks, conditions, changes of worlds, facts of scenes.

It imports :mod:`mt_nodes.base`, :mod:`mt_nodes.data` and :mod:`mt_nodes.world`.
Mutations, checks, conditions and world changes go here, relations into ``config/relations`` or ``loop_relations``.
"""
