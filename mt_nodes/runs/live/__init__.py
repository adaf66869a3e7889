# SPDX-License-Identifier: Apache-2.0
"""The suite beside a running stack: segments of relations on live input."""
