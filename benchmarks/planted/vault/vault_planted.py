import torch.nn.functional as F
from vault import Vault, asked


class NormalisedAgain(Vault):
    """All answers are brought to length 1 for each batch of questions, though they have it."""

    def stored(self):
        return F.normalize(self.answers, dim=1)


def normalised_again():
    return asked(NormalisedAgain())
