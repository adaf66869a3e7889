# SPDX-License-Identifier: Apache-2.0
"""Intensities of LiDARs: what a value means on which sensor, and how it is recognised."""
