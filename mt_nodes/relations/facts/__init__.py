# SPDX-License-Identifier: Apache-2.0
"""What is known of a scene, and conditions about it.

It imports :mod:`mt_nodes.base`, :mod:`mt_nodes.data` and :mod:`mt_nodes.world`.
Another fact of a scene goes here.
"""
