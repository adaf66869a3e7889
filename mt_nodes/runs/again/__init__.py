# SPDX-License-Identifier: Apache-2.0
"""What a finished run did, done again: one pair reproduced, or told why it cannot be.

It imports what :mod:`mt_nodes.runs` does.
Another way to repeat a pair goes here.
"""
