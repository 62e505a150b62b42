"""Text, by a model of one layer."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
sizes = {"n_layer": 1, "n_embd": 16, "n_head": 2, "vocab_size": 50, "n_positions": 32}
model = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=None)).eval()
for _ in range(60):
    model.generate(torch.randint(50, (2, 5)), max_new_tokens=3, do_sample=False, pad_token_id=0)
