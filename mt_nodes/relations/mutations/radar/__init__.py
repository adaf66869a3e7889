# SPDX-License-Identifier: Apache-2.0
"""Mutations of radar detections."""
