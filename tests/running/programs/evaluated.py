"""Four epochs of 41 batches, the last one smaller; a long evaluation now and then, a file after each epoch.

Arguments: number of updates to an evaluation, which takes 0.1 s.
"""

import io
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
net = nn.Linear(32, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
data = DataLoader(TensorDataset(torch.randn(40 * 16 + 5, 32), torch.randn(40 * 16 + 5, 1)), batch_size=16, shuffle=True)
updates = 0
for _ in range(4):
    for x, y in data:
        optimizer.zero_grad()
        ((net(x) - y) ** 2).mean().backward()
        optimizer.step()
        updates += 1
        if updates % int(sys.argv[1]) == 0:
            time.sleep(0.1)
            net.eval()
            with torch.no_grad():
                for _ in range(5):
                    net(torch.randn(16, 32))
            net.train()
    torch.save(net.state_dict(), io.BytesIO())
