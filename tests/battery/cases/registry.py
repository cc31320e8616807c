"""How a module collects its cases."""

from collections.abc import Callable
from dataclasses import dataclass

from isolation import GIB
from outcomes import Finding


@dataclass(frozen=True)
class Case:
    name: str
    claim: str
    check: Callable[..., Finding]
    needs: frozenset[str]  # of what an adapter may lack
    seconds: float
    address_space: int | None
    is_alone: bool  # in a child of its own, also where others share one
    supervises: bool  # runs in the runner itself, and starts children
    is_quick: bool  # part of the quick form


class Cases(list):
    """@cases.add(...) adds a function as a case."""

    def add(self, *needs, seconds=60, address_space=12 * GIB, is_alone=False, supervises=False, is_quick=True):
        def added(check):
            self.append(
                Case(
                    check.__name__,
                    check.__doc__.splitlines()[0],
                    check,
                    frozenset(needs),
                    seconds,
                    address_space,
                    is_alone,
                    supervises,
                    is_quick,
                )
            )
            return check

        return added
