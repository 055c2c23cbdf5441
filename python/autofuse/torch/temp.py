# SPDX-License-Identifier: Apache-2.0
"""Temporary memory: one block per thread that grows to what the largest graph needs. Nothing that a call returns ever lies in it."""

from __future__ import annotations

import threading

import torch

ALIGN = 512
_local = threading.local()


class Block:
    """Memory aligned to 512 bytes, made by PyTorch's allocator."""

    def __init__(self, n_bytes: int, device: str) -> None:
        with torch.inference_mode(False):  # a tensor born in inference mode could not be written outside of it
            self.memory = torch.empty(n_bytes + ALIGN, dtype=torch.uint8, device=device)
        self.device = device
        self.start = -self.memory.data_ptr() % ALIGN
        self.address = self.memory.data_ptr() + self.start
        self.n_bytes = n_bytes

    def view(self, offset: int, dtype: torch.dtype, size: tuple[int, ...], stride: tuple[int, ...], n_bytes: int) -> torch.Tensor:
        """A tensor in the block, n_bytes from an offset."""
        at = self.start + offset
        piece = self.memory[at : at + n_bytes]
        return piece[: n_bytes - n_bytes % dtype.itemsize].view(dtype).as_strided(size, stride, at // dtype.itemsize)


def take(n_bytes: int, device: str = "cpu") -> Block:
    """A block of this thread, large enough, and nobody else's until it is put back. On an NPU: of the current device."""
    if device != "cpu":
        return Block(n_bytes, device)  # its allocator keeps memory, and knows streams
    blocks: list[Block] = _local.__dict__.setdefault("blocks", [])
    block = blocks.pop() if blocks else None
    if block is None or block.n_bytes < n_bytes:
        block = None  # freed before a larger one is asked for
        block = Block(n_bytes, device)
    return block


def put(block: Block) -> None:
    """Gives a block back to this thread."""
    if block.device == "cpu":
        _local.blocks.append(block)


def release() -> None:
    """Frees what this thread keeps between calls."""
    _local.__dict__.pop("blocks", None)
