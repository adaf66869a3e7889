# SPDX-License-Identifier: Apache-2.0
"""Driving models that learn from pictures: a network sees the road and says speed and steering."""
