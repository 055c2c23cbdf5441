# SPDX-License-Identifier: Apache-2.0
"""Small models with random weights, and inputs for them: what models.py and bench/torch_models.py run."""
import torch
import torch.nn.functional as F
from torch import nn

BATCH, LENGTH, VOCAB = 2, 24, 128


def tokens():
    return torch.randint(3, VOCAB, (BATCH, LENGTH))


def bert():
    from transformers import BertConfig, BertForMaskedLM
    c = BertConfig(vocab_size=VOCAB, hidden_size=64, num_hidden_layers=4, num_attention_heads=4, intermediate_size=128,
                   max_position_embeddings=64)
    x = tokens()
    return BertForMaskedLM(c), dict(input_ids=x, attention_mask=torch.ones_like(x), labels=tokens())


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    c = GPT2Config(vocab_size=VOCAB, n_embd=64, n_layer=3, n_head=4, n_positions=64, use_cache=False, bos_token_id=1, eos_token_id=2)
    return GPT2LMHeadModel(c), dict(input_ids=tokens())


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    c = LlamaConfig(vocab_size=VOCAB, hidden_size=64, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
                    intermediate_size=128, max_position_embeddings=64, use_cache=False)
    return LlamaForCausalLM(c), dict(input_ids=tokens(), labels=tokens())


def t5():
    from transformers import T5Config, T5EncoderModel
    c = T5Config(vocab_size=VOCAB, d_model=64, d_kv=16, d_ff=128, num_layers=3, num_heads=4)
    return T5EncoderModel(c), dict(input_ids=tokens())


def vit():
    from transformers import ViTConfig, ViTForImageClassification
    c = ViTConfig(hidden_size=64, num_hidden_layers=3, num_attention_heads=4, intermediate_size=128, image_size=32, patch_size=8)
    return ViTForImageClassification(c), dict(pixel_values=torch.randn(BATCH, 3, 32, 32))


def resnet():
    from transformers import ResNetConfig, ResNetForImageClassification
    c = ResNetConfig(embedding_size=16, hidden_sizes=[16, 32], depths=[2, 2], layer_type='basic', num_labels=10)
    return ResNetForImageClassification(c), dict(pixel_values=torch.randn(4, 3, 32, 32), labels=torch.tensor([1, 2, 3, 4]))


class UNetBlock(nn.Module):
    """A block as diffusion models have it: two group-normed convolutions with the time between, and attention over places."""

    def __init__(self, channels=32, time=64):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(8, channels), nn.Conv2d(channels, channels, 3, padding=1)
        self.time = nn.Linear(time, channels)
        self.norm2, self.conv2 = nn.GroupNorm(8, channels), nn.Conv2d(channels, channels, 3, padding=1)
        self.norm3, self.qkv, self.out = nn.GroupNorm(8, channels), nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)

    def forward(self, x, t):
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.time(F.silu(t))[:, :, None, None]
        x = x + self.conv2(F.silu(self.norm2(h)))
        b, c, height, width = x.shape
        q, k, v = self.qkv(self.norm3(x).flatten(2).transpose(1, 2)).chunk(3, -1)
        a = F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None])[:, 0]
        return x + self.out(a).transpose(1, 2).reshape(b, c, height, width)


def unet():
    return UNetBlock(), dict(x=torch.randn(2, 32, 16, 16), t=torch.randn(2, 64))


class Recommender(nn.Module):
    """Embeddings of categories beside dense features, their products in pairs, and layers on top."""

    def __init__(self, tables=6, rows=100, width=16, dense=13):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(tables))
        self.bottom = nn.Sequential(nn.Linear(dense, 32), nn.ReLU(), nn.Linear(32, width), nn.ReLU())
        n = tables + 1
        self.register_buffer('pairs', torch.tril_indices(n, n, -1))
        self.top = nn.Sequential(nn.Linear(width + n * (n - 1) // 2, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, dense, categories):
        d = self.bottom(torch.log1p(dense))
        e = torch.stack([d] + [t(categories[:, i]) for i, t in enumerate(self.tables)], 1)
        z = torch.bmm(e, e.transpose(1, 2))
        return torch.sigmoid(self.top(torch.cat([d, z[:, self.pairs[0], self.pairs[1]]], 1)))


def recommender():
    return Recommender(), dict(dense=torch.rand(32, 13) * 9, categories=torch.randint(0, 100, (32, 6)))


MODELS = {f.__name__: f for f in (bert, gpt2, llama, t5, vit, resnet, unet, recommender)}
TRAINED = ('bert', 'llama', 'resnet')


def make(name, seed=0):
    """A model and its inputs, the same every time."""
    torch.manual_seed(seed)
    model, inputs = MODELS[name]()
    return model, inputs


def result(out):
    """The tensors that count of what a model returned."""
    if isinstance(out, torch.Tensor):
        return {'out': out}
    return {k: v for k, v in out.items() if isinstance(v, torch.Tensor)}


def loss(out):
    """A number to descend."""
    r = result(out)
    return r['loss'] if 'loss' in r else sum(v.float().pow(2).mean() for v in r.values())
