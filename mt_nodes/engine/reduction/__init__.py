# SPDX-License-Identifier: Apache-2.0
"""Parts of a follow-up that are put back, so that what is left of its change is smaller.

It imports what :mod:`mt_nodes.engine` does.
Another way to make a change smaller goes here.
"""
