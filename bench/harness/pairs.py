"""Pairs of times, of two programs that ran in turns."""
import random
import statistics


def medians(pairs):
    return tuple(statistics.median(times) for times in zip(*pairs))


def ratio(pairs):
    """Median of the second times relative to that of the first."""
    first, second = medians(pairs)
    return second / first


def interval(pairs, estimate):
    """90 % interval of a number computed from the pairs, by resampling them."""
    draw = random.Random(1)
    found = sorted(estimate(draw.choices(pairs, k=len(pairs))) for _ in range(1_000))
    return [round(found[50], 3), round(found[-51], 3)]
