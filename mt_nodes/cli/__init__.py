# SPDX-License-Identifier: Apache-2.0
"""The command line: arguments in, tables out.

It imports every room but :mod:`mt_nodes.nodes`.
A command goes here, a file of its own.
"""
