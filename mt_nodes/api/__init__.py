# SPDX-License-Identifier: Apache-2.0
"""The Python interface, ``import mt_nodes as mt``, and the plugin of pytest.

It imports every room but :mod:`mt_nodes.cli` and :mod:`mt_nodes.nodes`.
What users call from Python goes here, and into the list of names in ``mt_nodes/__init__.py`` and its stub.
"""
