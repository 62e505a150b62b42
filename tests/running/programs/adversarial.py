"""Two networks against one another. Arguments: updates of the critic for one of the generator, rounds."""

import sys

import torch
from torch import nn

torch.manual_seed(0)
critic, generator = nn.Linear(32, 1), nn.Linear(8, 32)
of_critic = torch.optim.RMSprop(critic.parameters())
of_generator = torch.optim.Adam(generator.parameters())
each, rounds = map(int, sys.argv[1:])
for update in range(1, each * rounds + 1):
    noise = torch.randn(4, 8)
    of_critic.zero_grad()
    (critic(generator(noise).detach()).mean() - critic(torch.randn(4, 32)).mean()).backward()
    of_critic.step()
    if update % each == 0:
        of_generator.zero_grad()
        (-critic(generator(noise)).mean()).backward()
        of_generator.step()
