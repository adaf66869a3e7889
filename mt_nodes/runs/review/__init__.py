# SPDX-License-Identifier: Apache-2.0
"""People rate cases of a run, blind: are the follow-ups realistic, and are the verdicts right?"""
