"""The radiance field with one thing done as one should not, and a wider one."""

import radiance
import torch
from radiance import Field, make_step, make_train, rays


class SampleBySample(Field):
    """Walks along the rays from front to back."""

    def composited(self, density, colour, apart):
        passed, result = torch.ones(len(density)), torch.zeros(len(density), 3)
        for i in range(density.shape[1]):
            alpha = 1 - torch.exp(-density[:, i] * apart)
            result = result + (passed * alpha)[:, None] * colour[:, i]
            passed = passed * (1 - alpha + 1e-10)
        return result


def sample_by_sample():
    return make_step(SampleBySample)


class AllRays:
    """Computes the rays of the whole picture, and takes some."""

    def __call__(self, pixels):
        return rays()[pixels]


def all_rays():
    return make_train(AllRays)


# Not comparable


def more_samples():
    radiance.SAMPLES = radiance.SAMPLES * 3 // 2
    return make_step()
