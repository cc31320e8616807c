"""Exact search against the bare matrix products of the same shape, by the fastest BLAS available."""
import os

from .session import THREADS


def choices(session, instructions="AVX512"):
    """(library, environment) of every BLAS to compare with, which uses instruction sets up to AVX2 or AVX512.

    OpenBLAS with its core type forced, because Debian's does not recognise every CPU and then runs at a fifth of its
    speed; and MKL from PyPI, except under --quick.
    """
    core = {"AVX2": "HASWELL", "AVX512": os.environ.get("OPENBLAS_CORETYPE", "SKYLAKEX")}[instructions]
    forced = os.environ | {"OPENBLAS_CORETYPE": core, "MKL_ENABLE_INSTRUCTIONS": instructions}
    found = [("libopenblas.so.0", forced)]
    if not session.quick:
        for library in sorted((session.rival_environment() / "lib").glob("libmkl_rt.so*"))[:1]:
            paths = filter(None, [str(library.parent), os.environ.get("LD_LIBRARY_PATH")])
            found.append((library, forced | {"LD_LIBRARY_PATH": os.pathsep.join(paths)}))
    return found


def run(session, blas, *arguments):
    """The report of bench/end_to_end/exact_vs_sgemm with one BLAS. Of options given twice the later one counts."""
    library, environment = blas
    return session.bench("exact_vs_sgemm", "--threads", THREADS, *arguments, "--blas", library, env=environment)[0]


def compare(session, *arguments, repeat=5, instructions="AVX512"):
    """The report of exact_vs_sgemm with the BLAS that is fastest on a slice of the same data."""
    candidates = choices(session, instructions)
    fastest, rates = candidates[0], {}
    if len(candidates) > 1:
        trials = [run(session, blas, *arguments, "--rows", 65536, "--queries", 2048, "--k", 1, "--repeat", 2)
                  for blas in candidates]
        rates = {trial["blas"]: round(trial["sgemm_gflops"], 1) for trial in trials}
        fastest = max(zip(candidates, trials), key=lambda pair: pair[1]["sgemm_gflops"])[0]
    report = run(session, fastest, *arguments, "--repeat", 2 if session.quick else repeat)
    return report | {"sgemm_gflops_on_a_slice": rates}


def speedups(report):
    """{k: speed relative to the product}."""
    return {each["k"]: each["speedup"] for each in report["by_k"]}
