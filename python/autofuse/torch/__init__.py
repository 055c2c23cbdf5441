# SPDX-License-Identifier: Apache-2.0
"""The PyTorch front end: `torch.compile(model, backend="autofuse")`."""
