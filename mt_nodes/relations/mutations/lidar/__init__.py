# SPDX-License-Identifier: Apache-2.0
"""Changes of point clouds.

A new one goes into the file of its kin, or into its own. Shared code is in ``each_cloud``, ``added_points``,
``angle_fields``, ``drawn_returns``, ``lost_returns``, ``placement``, ``rays``, ``ring_order`` and ``strength_proof``;
what every mutation is: ``mutations/base``.
"""
