# SPDX-License-Identifier: Apache-2.0
"""Changes of what cameras see."""
