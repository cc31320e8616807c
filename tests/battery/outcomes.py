"""What a library did with a bad input or under a fault."""

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    RIGHT = "right"  # accepted; the answer was compared with brute force or with that of an undamaged twin
    REFUSED = "refused"  # an exception with a message
    MARKED = "marked"  # an explicit mark for "no result": id -1, nothing, a distance that is no number
    NOT_APPLICABLE = "-"
    NO_MESSAGE = "no message"  # an exception without any text, such as a bare assert
    UNDOCUMENTED = "undocumented error"  # of a class that the library does not document for its errors
    WRONG = "wrong"  # accepted without a word, and the answer is wrong or invented
    LOST = "lost"  # the earlier good file is gone
    IGNORED = "ignored"  # Ctrl-C had no effect
    CRASH = "crash"
    HANG = "hang"


# The worst first.
FAULTS = (
    Outcome.CRASH,
    Outcome.HANG,
    Outcome.WRONG,
    Outcome.LOST,
    Outcome.IGNORED,
    Outcome.UNDOCUMENTED,
    Outcome.NO_MESSAGE,
)


@dataclass(frozen=True)
class Finding:
    outcome: Outcome
    note: str = ""
    seconds: float = 0

    @property
    def is_fault(self):
        return self.outcome in FAULTS


class NotApplicable(Exception):
    """The library has nothing that the case could be about."""


def right(note=""):
    return Finding(Outcome.RIGHT, note)


def wrong(note):
    return Finding(Outcome.WRONG, note)


def marked(note):
    return Finding(Outcome.MARKED, note)


def right_if(condition, note):
    return Finding(Outcome.RIGHT if condition else Outcome.WRONG, note)


def worst(findings):
    """The worst finding of several trials. Damage that goes unnoticed is worse than an error, even if harmless."""
    order = [*FAULTS, Outcome.RIGHT, Outcome.MARKED, Outcome.REFUSED, Outcome.NOT_APPLICABLE]
    return min(findings, key=lambda finding: order.index(finding.outcome))


def finding_of(error, is_documented):
    """What an exception says about the call that raised it."""
    kind, text = type(error).__name__, " ".join(str(error).split())
    note = f"{kind}: {text}"[:200]
    if isinstance(error, NotApplicable):
        return Finding(Outcome.NOT_APPLICABLE, text)
    # These two need no words.
    if isinstance(error, (KeyboardInterrupt, MemoryError)):
        return Finding(Outcome.REFUSED, note)
    if not text:
        return Finding(Outcome.NO_MESSAGE, kind)
    return Finding(Outcome.REFUSED if is_documented(error) else Outcome.UNDOCUMENTED, note)
