"""Damage to the bytes of a file, repeatable by its number."""

import random

HEADER = 4096  # bytes in which damage is likely to mislead a reader
PAGE = 4096


def flip(content, _, draw):
    """One bit: every third in the first page, every third in the last."""
    where = draw.randrange(3)
    if where == 0:
        offset = draw.randrange(min(HEADER, len(content)))
    elif where == 1:
        offset = len(content) - 1 - draw.randrange(min(HEADER, len(content)))
    else:
        offset = draw.randrange(len(content))
    damaged = bytearray(content)
    damaged[offset] ^= 1 << draw.randrange(8)
    return bytes(damaged)


def truncate(content, _, draw):
    """The end is missing, every fourth at a page."""
    length = draw.randrange(len(content))
    return content[: length // PAGE * PAGE if draw.randrange(4) == 0 else length]


def splice(content, other, draw):
    """A part of another file of the same kind in its place: the end, or a piece; every second at pages."""
    least = min(len(content), len(other))
    begin, end = sorted((draw.randrange(1, least), draw.randrange(1, least)))
    if draw.randrange(2):
        begin, end = begin // PAGE * PAGE, end // PAGE * PAGE
    if draw.randrange(2):
        return content[:begin] + other[begin:]
    return content[:begin] + other[begin:end] + content[end:]


MUTATIONS = {"flip": flip, "truncation": truncate, "splice": splice}


def damaged(mutation, content, other, seed):
    """Bytes that differ from both files."""
    draw = random.Random(seed)
    for _ in range(1000):
        found = MUTATIONS[mutation](content, other, draw)
        if found not in (content, other):
            return found
    raise ValueError(f"no {mutation} changes the file")
