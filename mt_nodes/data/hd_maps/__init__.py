# SPDX-License-Identifier: Apache-2.0
"""High-definition maps: where lanes are, from Lanelet2 and OpenDRIVE files."""
