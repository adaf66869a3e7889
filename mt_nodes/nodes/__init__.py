# SPDX-License-Identifier: Apache-2.0
"""ROS nodes and suite processes, and the adapters of message types; the only importer of ROS.

It imports every other room.
A node goes here and into ``NODES`` of ``setup.py`` and ``node_interfaces``; an adapter goes into ``adapters``.
"""
