# SPDX-License-Identifier: Apache-2.0
"""Messages as bytes, without ROS.

It imports :mod:`mt_nodes.base` and :mod:`mt_nodes.data`.
The encoding of another message type goes here.
"""
