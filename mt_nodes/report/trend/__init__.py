# SPDX-License-Identifier: Apache-2.0
"""Several runs of one stack, version after version: rates over time, and where they change."""
