# SPDX-License-Identifier: Apache-2.0
"""Known facts of a scene, and conditions on them.

It imports :mod:`mt_nodes.base`, :mod:`mt_nodes.data` and :mod:`mt_nodes.world`. A new fact of a scene goes here.
"""
