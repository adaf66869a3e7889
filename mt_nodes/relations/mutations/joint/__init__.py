# SPDX-License-Identifier: Apache-2.0
"""Changes of air, light and road that affect every sensor."""
