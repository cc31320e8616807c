"""Loads and uses damaged files of one kind, many times."""

from collections import Counter

import isolation
from limits import limits_of
from mutations import damaged
from outcomes import Outcome, right, right_if
from vectors import ROWS


class DamagedFiles:
    """Two saved indexes of a kind, and the answers of the first."""

    def __init__(self, adapter):
        self._adapter = adapter
        self._other, self._answers = adapter.folder / "other", adapter.folder / "answers"
        if self._answers.exists():
            return
        prepared = isolation.run(self._prepare, limits_of(adapter, 600))
        if prepared.outcome != Outcome.RIGHT:
            raise RuntimeError(f"{adapter.name}: no files to damage: {prepared.note}")

    def _prepare(self):
        adapter = self._adapter
        adapter.save(adapter.built(ROWS[::-1].copy()), self._other)
        self._answers.write_bytes(self._use(adapter.base_path))
        return right()

    def _use(self, path):
        return b"".join(array.tobytes() for array in self._adapter.answers(self._adapter.load(path)))

    def findings(self, mutation, count, seconds):
        """The findings of mutations 0, 1, ... count - 1, each of which may take so long."""
        content, other = self._adapter.base_path.read_bytes(), self._other.read_bytes()
        expected = self._answers.read_bytes()
        path = self._adapter.folder / "damaged"

        def load_and_use(number):
            path.unlink(missing_ok=True)  # not overwritten: it may be mapped still
            path.write_bytes(damaged(mutation, content, other, number))
            return right_if(self._use(path) == expected, "loaded; the answers differ")

        return isolation.run_many(load_and_use, count, limits_of(self._adapter, seconds))


def counts(findings):
    return {str(outcome): count for outcome, count in Counter(found.outcome for found in findings).items()}
