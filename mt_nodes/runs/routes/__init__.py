# SPDX-License-Identifier: Apache-2.0
"""Relations between routes: of the way back, a stop on the way, a destination moved, a road closed."""
