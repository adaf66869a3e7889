# SPDX-License-Identifier: Apache-2.0
"""When a relation applies."""
