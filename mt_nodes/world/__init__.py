# SPDX-License-Identifier: Apache-2.0
"""Generated worlds: cameras, scenes with their sensors, drives and scenarios.

It imports :mod:`mt_nodes.base` and :mod:`mt_nodes.data`.
A map goes into ``drive/maps.py``; an object, a sensor model or a scenario format goes here, too.
"""
