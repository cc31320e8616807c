"""Damaged files: an error, or the answers of the undamaged file."""

from file_damage import DamagedFiles, counts
from outcomes import Finding, worst

from cases.registry import Cases

CASES = Cases()


def campaign(adapter, mutation, count):
    """The worst of many mutations, and how often each outcome was found."""
    findings = list(DamagedFiles(adapter).findings(mutation, count, seconds=20))
    note = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts(findings).items()))
    return Finding(worst(findings).outcome, note)


@CASES.add("save", supervises=True)
def bit_flips(adapter):
    """500 files with one flipped bit each"""
    return campaign(adapter, "flip", 30 if adapter.quick else 500)


@CASES.add("save", supervises=True)
def truncations(adapter):
    """200 files cut off"""
    return campaign(adapter, "truncation", 15 if adapter.quick else 200)


@CASES.add("save", supervises=True)
def splices(adapter):
    """200 files with a part of another index"""
    return campaign(adapter, "splice", 15 if adapter.quick else 200)
