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


class Cases(list):
    """@cases.add(...) adds a function as a case."""

    def add(self, *needs, seconds=60, address_space=12 * GIB, is_alone=False, supervises=False):
        def added(check):
            claim = check.__doc__.splitlines()[0]
            self.append(
                Case(check.__name__, claim, check, frozenset(needs), seconds, address_space, is_alone, supervises)
            )
            return check

        return added
