# SPDX-License-Identifier: Apache-2.0
"""The case for safety: requirements, the plan made before the data are seen, and the signed bundle of evidence.

It may use runs of other kinds, the report and what is below. What a bundle holds, or how it is checked, goes here.
"""
