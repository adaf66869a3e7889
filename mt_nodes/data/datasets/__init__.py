# SPDX-License-Identifier: Apache-2.0
"""Reads and writes published data sets and plain folders of files as recordings.

It imports :mod:`mt_nodes.base` and :mod:`mt_nodes.data`.
Another data set is a module of its own, with a line in :mod:`mt_nodes.data.datasets.known_datasets`.
"""
