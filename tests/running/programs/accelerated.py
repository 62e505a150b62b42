"""A training by accelerate: two batches to an update, 40 updates."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
net = nn.Linear(8, 4)
optimizer = torch.optim.AdamW(net.parameters())
data = DataLoader(TensorDataset(torch.randn(4 * 80, 8)), batch_size=4, num_workers=1)
net, optimizer, data = accelerator.prepare(net, optimizer, data)
for (x,) in data:
    with accelerator.accumulate(net):
        accelerator.backward(net(x).mean())
        optimizer.step()
        optimizer.zero_grad()
