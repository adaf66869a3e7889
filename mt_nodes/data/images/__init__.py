# SPDX-License-Identifier: Apache-2.0
"""Image encodings and JPEG.

It imports :mod:`mt_nodes.base` and :mod:`mt_nodes.data`.
Another encoding of pictures goes here.
"""
