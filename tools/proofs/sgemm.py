"""Exact search against the bare matrix products of its shape, by the fastest BLAS at hand (bench/end_to_end)."""
import json
import os

from . import processes

THREADS = 2


def choices(session):
    """(library, environment) of every BLAS worth comparing with: MKL as PyPI has it, and the OpenBLAS at hand with its
    core type forced, because Debian's does not recognise every CPU and then runs at a fifth of its speed."""
    forced = os.environ | {"OPENBLAS_CORETYPE": os.environ.get("OPENBLAS_CORETYPE", "SKYLAKEX")}
    found = [("libopenblas.so.0", forced)]
    if not session.quick:
        environment = session.environment_of_rivals()
        for library in sorted((environment / "lib").glob("libmkl_rt.so*"))[:1]:
            paths = filter(None, [str(library.parent), os.environ.get("LD_LIBRARY_PATH")])
            found.append((library, os.environ | {"LD_LIBRARY_PATH": os.pathsep.join(paths)}))
    return found


def run(session, blas, arguments):
    """What exact_vs_sgemm reports with one BLAS. A later argument of one name takes the place of an earlier one."""
    library, environment = blas
    program = session.build("release") / "bench" / "end_to_end" / "exact_vs_sgemm"
    command = [program, "--threads", THREADS, *arguments, "--blas", library]
    return json.loads(processes.run(command, env=environment).output)


def compare(session, *arguments, repeat=5):
    """The report of exact_vs_sgemm against the BLAS that is fastest on a slice of this very work."""
    candidates = choices(session)
    fastest, rates = candidates[0], {}
    if len(candidates) > 1:
        trials = [run(session, blas, [*arguments, "--rows", 65536, "--queries", 2048, "--k", 1, "--repeat", 2])
                  for blas in candidates]
        rates = {trial["blas"]: round(trial["sgemm_gflops"], 1) for trial in trials}
        fastest = max(zip(candidates, trials), key=lambda pair: pair[1]["sgemm_gflops"])[0]
    report = run(session, fastest, [*arguments, "--repeat", 2 if session.quick else repeat])
    return report | {"sgemm_gflops_on_a_slice": rates}


def speedups(report):
    """{k: how many times as fast as the product}."""
    return {each["k"]: each["speedup"] for each in report["by_k"]}
