"""A training with dropout and fresh data in each step; prints a digest of all weights, and what else must not change.

Arguments: number of steps.
"""

import gc
import hashlib
import random
import sys
import threading
import warnings

import numpy as np
import torch
from torch import nn


class Net(nn.Sequential):
    pass


torch.manual_seed(0)
random.seed(0)
np.random.seed(0)
net = Net(nn.Linear(64, 128), nn.GELU(), nn.Dropout(0.1), nn.Linear(128, 64))
optimizer = torch.optim.AdamW(net.parameters())
for _ in range(int(sys.argv[1])):
    x = torch.randn(16, 64)
    loss = nn.MSELoss()(net(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(hashlib.sha256(b"".join(weight.detach().numpy().tobytes() for weight in net.parameters())).hexdigest())
print(loss.item().hex(), torch.rand(1).item(), random.getstate()[1][-1], np.random.get_state()[2])
print(threading.active_count(), torch.get_num_threads(), sys.getprofile(), sys.gettrace(), len(warnings.filters))
print(gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), "matplotlib" in sys.modules)
print(torch.is_grad_enabled(), len(nn.modules.module._global_forward_hooks), torch.get_default_dtype())
