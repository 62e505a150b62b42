"""Training of the CTC model, with what one likes to see while it runs."""

from speech import BATCH, FRAMES, Speech, trained


def distance(a, b):
    """Of two texts, by Levenshtein."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


seen = []


def error_rate(scores, labels):
    """Best path, letter by letter, and how far it is from what was said."""
    best = scores.argmax(-1)
    wrong = 0
    for one in range(BATCH):
        text, before = [], 0
        for t in range(FRAMES):
            letter = best[t, one].item()
            if letter not in (0, before):
                text.append(letter)
            before = letter
        wrong += distance(text, labels[one].tolist())
    seen.append(wrong)


def decoded():
    return trained(Speech(), after=error_rate)
