"""A worker of `nearwise gpu-check` in which one case goes wrong on the device: the table of cases is wrapped here, the
product has no switch for it.

    python faulty_gpu_check.py FAULT CASE, then the arguments of the worker
"""

import dataclasses
import sys
import time

import numpy as np
from nearwise._gpu_check import worker
from nearwise._gpu_check.cases import CASES


def wrong_byte(answers):
    name = next(name for name, answer in answers.items() if isinstance(answer, np.ndarray))
    changed = np.ascontiguousarray(answers[name]).copy()
    changed.view(np.uint8).reshape(-1)[5] ^= 1
    return answers | {name: changed}


def hang(answers):
    time.sleep(3600)


FAULTS = {"wrong_byte": wrong_byte, "hang": hang}


def faulty(case, fault):
    def run(shapes, device):
        answers = case.run(shapes, device)
        return answers if device == "cpu" else FAULTS[fault](answers)

    return dataclasses.replace(case, run=run)


if __name__ == "__main__":
    fault, name, *arguments = sys.argv[1:]
    worker.main(arguments, tuple(faulty(case, fault) if case.name == name else case for case in CASES))
