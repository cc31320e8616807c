"""Damages files of a plan's work folder at every stage of its work. The next run must give the same bytes."""

import importlib
import random
import shutil

import isolation
from mutations import damaged
from outcomes import Finding, Outcome, right, right_if, wrong
from vectors import normal

DIM = 8
RESULT = "result.nw"
MANIFEST = "work/manifest"
# name: (function, vectors, options). So small because most of a run would be calibration. The limit of the
# plan by pairs makes five shards.
PLANS = {
    "plan of a graph": ("plan_graph", 500, {"degree": 5, "memory_limit": "20MiB"}),
    "plan of a graph by pairs": ("plan_graph", 2000, {"degree": 5, "memory_limit": "12MiB", "method": "pairs"}),
    "plan of an index": (
        "plan_index",
        100,
        {"lists": 4, "code_bytes": 2, "bits": 4, "target_recall": 0.1, "memory_limit": "20MiB"},
    ),
    # Three blocks, and two.
    "plan of a join": ("plan_threshold_join", 4000, {"radius": 0.5, "memory_limit": "18MiB"}),
    "plan of a deduplication": ("plan_dedup", 2500, {"radius": 0.5, "keep": "medoid", "memory_limit": "18MiB"}),
    "plan of a join by partitions": (
        "plan_threshold_join",
        2500,
        {"radius": 0.5, "method": "partitions", "memory_limit": "18MiB"},
    ),
    "plan of a deduplication by partitions": (
        "plan_dedup",
        2500,
        {"radius": 0.5, "method": "partitions", "memory_limit": "18MiB"},
    ),
    "plan of a graph index": ("plan_graph_index", 150, {"degree": 16, "memory_limit": "24MiB"}),
}


class DamagedPlans:
    """The files of a plan after each of its tasks, and those of one for other vectors, to be spliced in."""

    def __init__(self, folder, name):
        self.name = name
        self._folder = folder
        prepared = isolation.run(self._prepare, self._limits(300))
        if prepared.outcome != Outcome.RIGHT:
            raise RuntimeError(f"{name}: no files to damage: {prepared.note}")
        self._stages = [self._stage("plan", stage) for stage in range(int(prepared.note))]
        self._others = [self._stage("other", stage) for stage in range(int(prepared.note))]
        self._result = self._stages[-1][RESULT]

    def _limits(self, seconds):
        return isolation.Limits(seconds, log=str(self._folder / "log"), begin=self._begin)

    def _begin(self):
        self._nearwise = importlib.import_module("nearwise")

    def _plan(self, name):
        function, _, options = PLANS[self.name]
        place = self._folder / name
        return getattr(self._nearwise, function)(
            self._folder / f"{name}.fbin", place / "work", place / RESULT, threads=1, **options
        )

    def _prepare(self):
        for seed, name in enumerate(("plan", "other")):
            (self._folder / name).mkdir()
            self._nearwise.write_vectors(self._folder / f"{name}.fbin", normal(PLANS[self.name][1], DIM, seed))
            plan = self._plan(name)
            for stage, task in enumerate(plan.tasks):
                plan.run_task(task.name)
                shutil.copytree(self._folder / name, self._folder / f"{name}-{stage}")
        return right(str(len(plan.tasks)))

    def _stage(self, name, stage):
        place = self._folder / f"{name}-{stage}"
        return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}

    def findings(self, mutation, count, seconds, is_manifest):
        """The findings of mutations 0, 1, ... of manifests, or of all other files."""
        choices = [
            (stage, name)
            for stage, files in enumerate(self._stages)
            for name, content in files.items()
            if content and (name == MANIFEST) == is_manifest and self._others[stage].get(name) not in (None, content)
        ]
        return isolation.run_many(
            lambda number: self._run_again(mutation, number, choices), count, self._limits(seconds)
        )

    def _run_again(self, mutation, number, choices):
        stage, name = random.Random(number).choice(choices)
        files = self._stages[stage]
        changed = damaged(mutation, files[name], self._others[stage][name], number)
        place = self._folder / "plan"
        shutil.rmtree(place)
        (place / "work").mkdir(parents=True)
        for each, content in (files | {name: changed}).items():
            (place / each).write_bytes(content)
        where = f"{name} after task {stage}"
        try:
            self._plan("plan").run()
        except (ValueError, self._nearwise.Error) as error:
            # A manifest of which nothing but lines of another plan is left is that of another plan.
            if (mutation, name) == ("splice", MANIFEST) and "belongs to another plan" in str(error):
                return Finding(Outcome.REFUSED, str(error))
            return wrong(f"{where}: not repaired: {error}")
        return right_if((place / RESULT).read_bytes() == self._result, f"{where}: other bytes")
