"""Small ones of the giants: models of `transformers`, made of a configuration and not loaded."""

from __future__ import annotations

import torch
from transformers import LlamaConfig, LlamaForCausalLM, ViTConfig, ViTForImageClassification


def vit(attention="sdpa"):
    torch.manual_seed(0)
    config = ViTConfig(
        hidden_size=64, num_hidden_layers=3, num_attention_heads=4, intermediate_size=128, image_size=128, patch_size=8
    )
    config._attn_implementation = attention
    model = ViTForImageClassification(config).eval()
    images = torch.randn(2, 3, 128, 128)

    @torch.inference_mode()
    def step():
        return model(pixel_values=images).logits

    return step


def llama_train(checkpoints=False, vocabulary=512):
    """Fine-tuning of a Llama with grouped heads."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        use_cache=False,
    )
    model = LlamaForCausalLM(config).train()
    if checkpoints:
        model.gradient_checkpointing_enable()
    ids = torch.randint(0, vocabulary, (2, 48))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def step():
        out = model(input_ids=ids, labels=ids)
        out.loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return out.loss.detach()

    return step
