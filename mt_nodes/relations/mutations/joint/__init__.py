# SPDX-License-Identifier: Apache-2.0
"""Changes of the air, the light and the road that every sensor sees."""
