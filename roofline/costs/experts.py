"""Cost mixtures of experts: which weights are touched, and the products of the tokens that each expert gets."""

from __future__ import annotations

from roofline.core.cost import Cost, matrix

ROUTED = "which experts are picked depends on data: each as often as any other"


def touched(experts: float, picks: float, tokens: float) -> float:
    """Experts that some token picks, in the mean, where each token picks `picks` different ones and likes none better.

    An expert is left out by a token with probability 1 - picks / experts, and by all with that to the power of tokens.
    Exact for one token; no more than there are.
    """
    if experts <= 0 or picks >= experts:
        return max(0.0, experts)
    left_out: float = (1.0 - picks / experts) ** tokens
    return experts * (1.0 - left_out)


def products(rows: float, experts: float, picks: float, tokens: float, weight: tuple[int, int], width: float) -> Cost:
    """Cost one product of each row with the weights of its expert: [inner, columns] of `width` bytes a number.

    rows: of all tokens together, `picks` each. Only the weights' traffic: what goes in and out is the caller's to say.
    """
    inner, columns = weight
    some = Cost(quality="assumed", note=ROUTED) if 0 < picks < experts else Cost()
    moved = Cost(bytes_read=touched(experts, picks, tokens) * inner * columns * width)
    return matrix(2.0 * rows * inner * columns) + moved + some
