"""Runs the cases of the battery on one kind of index."""

import time
from dataclasses import replace

import isolation
from cases import CASES
from limits import limits_of
from outcomes import Finding, NotApplicable, Outcome, right


def prepare(adapter):
    """Saves the indexes that cases load, in a child. Returns the version of the library."""

    def save():
        adapter.prepare()
        return right(adapter.version())

    found = isolation.run(save, limits_of(adapter, 600))
    if found.outcome != Outcome.RIGHT:
        raise RuntimeError(f"{adapter.name}: {found.outcome}: {found.note}")
    return found.note


def run_cases(adapter, cases=CASES):
    """Yields (case, Finding) for a prepared adapter. In the quick form cases share a child where they can."""
    apply = [case for case in cases if not case.needs & adapter.lacks and (case.is_quick or not adapter.quick)]
    for case in cases:
        if case not in apply:
            yield case, Finding(Outcome.NOT_APPLICABLE)
    together = [case for case in apply if adapter.quick and not (case.is_alone or case.supervises)]
    found = isolation.run_many(lambda number: together[number].check(adapter), len(together), limits_of(adapter))
    yield from zip(together, found)
    for case in apply:
        if case not in together:
            yield case, _run_alone(adapter, case)


def _run_alone(adapter, case):
    if not case.supervises:
        return isolation.run(lambda: case.check(adapter), limits_of(adapter, case.seconds, case.address_space))
    began = time.monotonic()
    try:
        found = case.check(adapter)
    except NotApplicable as reason:
        found = Finding(Outcome.NOT_APPLICABLE, str(reason))
    return replace(found, seconds=round(time.monotonic() - began, 3))
