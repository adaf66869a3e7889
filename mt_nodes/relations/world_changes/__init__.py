# SPDX-License-Identifier: Apache-2.0
"""Changes of a scenario: what a follow-up drives through in place of the source's world. Kin stand in one file."""
