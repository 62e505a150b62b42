"""Hugging Face's Trainer: 60 updates of two batches each, an evaluation after every 20."""

import sys

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

torch.manual_seed(0)
sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 50}
rows = [{"input_ids": torch.full((8,), row), "labels": torch.tensor(row % 2)} for row in range(40)]
asked = {"max_steps": 60, "per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "eval_steps": 20}
quiet = {"report_to": [], "disable_tqdm": True, "use_cpu": True, "save_strategy": "no", "logging_strategy": "no"}
arguments = TrainingArguments(sys.argv[1], eval_strategy="steps", **asked, **quiet)
Trainer(
    BertForSequenceClassification(BertConfig(**sizes)), arguments, train_dataset=rows, eval_dataset=rows[:4]
).train()
