# SPDX-License-Identifier: Apache-2.0
"""Changes of input. One of some size is a file; small ones stand in the file of their kin."""
