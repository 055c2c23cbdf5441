#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many ranks, one compile: each rank compiles the same model; the server compiles each kernel once.

    torchrun --nproc-per-node 8 examples/torch/ranks.py
"""
import os

from common import backend
import torch
import torch.distributed as dist
from autofuse.torch import launches, service


class Model(torch.nn.Module):
    """Two layers with a norm between them."""

    def __init__(self):
        super().__init__()
        self.a, self.norm, self.b = torch.nn.Linear(64, 128), torch.nn.LayerNorm(128), torch.nn.Linear(128, 16)

    def forward(self, x):
        return self.b(self.norm(torch.nn.functional.gelu(self.a(x))))


def main():
    dist.init_process_group('gloo')
    rank, n = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Model()
    before = service.context().server_stats() if rank == 0 and os.environ.get('AUTOFUSE_SOCKET') else {}
    dist.barrier()
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    compiled = torch.compile(ddp, backend=backend())
    torch.manual_seed(rank)
    compiled(torch.randn(32, 64)).square().mean().backward()
    mine = sorted(set(launches()))
    everyone = [None] * n
    dist.all_gather_object(everyone, mine)
    if rank == 0:
        after = service.context().server_stats()
        compiles = after['kernel_compiles'] - before.get('kernel_compiles', 0)
        print(f'{n} ranks; the same kernels on each: {all(k == everyone[0] for k in everyone)}; {len(mine)} kernels, {compiles} compiles')
        for k in mine:
            print(f'  {k}')
    dist.barrier()
    dist.destroy_process_group()


main()
