"""Mixed precision, whose gradients are not finite in every 17th step: GradScaler leaves that update out."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(32, 64)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
for step in range(120):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = net(torch.randn(16, 32)).float().mean()
    scaler.scale(loss * float("inf") if step % 17 == 5 else loss).backward()
    scaler.step(optimizer)
    scaler.update()
