# SPDX-License-Identifier: Apache-2.0
"""Changes of the message stream that leave contents alone."""
