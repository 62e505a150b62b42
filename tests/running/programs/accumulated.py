"""Four batches to an update, in an epoch of 42 batches the last update has two; a learning rate that falls."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(32, 64)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
for _ in range(6):
    for batch in range(1, 43):
        (net(torch.randn(16, 32)).mean() / 4).backward()
        if batch % 4 == 0 or batch == 42:
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
