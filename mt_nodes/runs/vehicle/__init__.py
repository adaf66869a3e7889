# SPDX-License-Identifier: Apache-2.0
"""On the vehicle computer: what keeps tests away from actuators, and out of the live stack's way."""
