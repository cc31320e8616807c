"""Plans that stop where somebody wants to kill them: a build is over too soon to be hit by chance."""

import os
import sys
import time
from pathlib import Path

import ray

ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not see this folder


class Halting:
    """A plan of which two tasks stop when they are first begun, until they are killed: one before its work, and one after it,
    when nobody has been told.
    """

    def __init__(self, plan, folder, before, after):
        self.plan, self.folder, self.before, self.after, self.tasks = plan, Path(folder), before, after, plan.tasks

    def with_threads(self, threads):
        return Halting(self.plan.with_threads(threads), self.folder, self.before, self.after)

    def is_done(self, name):
        return self.plan.is_done(name)

    def run_task(self, name):
        if name == self.before:
            self._halt(name)
        outcome = self.plan.run_task(name)
        if name == self.after:
            self._halt(name)
        return outcome

    def halted(self, name):
        """The ids of the process and the node at which a task has stopped; None: it has not."""
        mark = self.folder / name
        if not mark.exists():
            return None
        process, node = mark.read_text().split()
        return int(process), node

    def _halt(self, name):
        mark = self.folder / name
        if mark.exists():
            return
        temporary = mark.with_suffix(".temporary")
        temporary.write_text(f"{os.getpid()} {ray.get_runtime_context().get_node_id()}")
        temporary.rename(mark)
        time.sleep(3600)
