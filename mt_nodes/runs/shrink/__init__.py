# SPDX-License-Identifier: Apache-2.0
"""Makes a violated pair small: the weakest change, the fewest points, the shortest window that still fail."""
