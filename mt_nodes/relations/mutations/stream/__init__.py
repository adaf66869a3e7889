# SPDX-License-Identifier: Apache-2.0
"""Changes that touch no content: the stream itself."""
