# SPDX-License-Identifier: Apache-2.0
"""Networks in files, ONNX or TorchScript, as stacks: what they are given, and what is made of what they say."""
