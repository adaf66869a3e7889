# SPDX-License-Identifier: Apache-2.0
"""Worlds that are made: cameras, scenes with their sensors, drives and the scenarios that they follow.

It imports :mod:`mt_nodes.base` and :mod:`mt_nodes.data`.
A map goes into ``drive/maps.py``; an object, a sensor model or a format of scenarios goes here, too.
"""
