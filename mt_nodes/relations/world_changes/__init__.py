# SPDX-License-Identifier: Apache-2.0
"""Changes of a scenario: the follow-up drives through the changed world. Related ones share a file."""
