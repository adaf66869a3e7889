# SPDX-License-Identifier: Apache-2.0
"""Metamorphic testing of a driving stack while it runs.

Rooms, from the bottom: :mod:`~mt_nodes.base`, :mod:`~mt_nodes.data`, :mod:`~mt_nodes.world`, :mod:`~mt_nodes.relations`
beside :mod:`~mt_nodes.stacks`, :mod:`~mt_nodes.engine`, :mod:`~mt_nodes.rules` beside :mod:`~mt_nodes.report`,
:mod:`~mt_nodes.runs`, :mod:`~mt_nodes.cli`, :mod:`~mt_nodes.nodes`, :mod:`~mt_nodes.plugin`. Each imports from those
below it alone.
"""

from mt_nodes.base.moved import tell_where_modules_are

__version__ = "0.1.0"

tell_where_modules_are()
