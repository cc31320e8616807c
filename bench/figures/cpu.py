"""Exact search on every instruction set of this machine: speed relative to bare matrix products (sgemm)."""
from harness import sgemm

# Required speed relative to an AVX-512 sgemm, by data set.
LEAST = {
    "amx": {"f32_128": 10, "f32_768": 6, "cosine_384": 6},
    "avx512_vnni": {"f32_128": 3.5, "f32_768": 3, "cosine_384": 3},
    "avx512": {"f32_128": 1.5, "f32_768": 1.5, "cosine_384": 1.5},
}


def generated(session, dim, rows, queries):
    size = (20_000, 500) if session.quick else (rows, queries)
    return ["--data", "normal", "--dim", dim, "--rows", size[0], "--queries", size[1]]


DATA = {
    "f32_128": lambda session: generated(session, 128, 1_000_000, 5000),
    "f32_768": lambda session: generated(session, 768, 300_000, 1000),
    "cosine_384": lambda session: [*generated(session, 384, 300_000, 2000), "--metric", "cosine"],
}


def speedups(session, isa):
    """{data set: speed at k = 10}, and the reports; none if this machine lacks the instruction set."""
    sets = sgemm.compare(session, *DATA["f32_128"](session), "--rows", 1000, "--queries", 100, "--k", "10",
                         repeat=1)["instruction_sets"]
    if isa not in sets:
        return {}, {}
    reports = {name: sgemm.compare(session, *data(session), "--isa", isa, "--k", "10", repeat=3)
               for name, data in DATA.items()}
    return {name: round(report["speedup"], 2) for name, report in reports.items()}, reports


def judged(session, isa):
    found, reports = speedups(session, isa)
    least = LEAST[isa]
    bar = ", ".join(f"{name} >= {times}" for name, times in least.items())
    if not found:
        return session.speed({}, f"{bar}; not on this machine", True, {"missing": isa})
    return session.speed(found, bar, all(found[name] >= times for name, times in least.items()), {"reports": reports})


def amx(session):
    """f32 vectors with AMX tiles: normal 1M x 128 and 300,000 x 768, cosine 300,000 x 384: speed relative to sgemm"""
    return judged(session, "amx")


def avx512_vnni(session):
    """f32 vectors screened by VNNI, the same data: speed relative to an AVX-512 sgemm"""
    return judged(session, "avx512_vnni")


def avx512(session):
    """f32 vectors with plain AVX-512, the same data: speed relative to an AVX-512 sgemm"""
    return judged(session, "avx512")


FIGURES = (amx, avx512_vnni, avx512)
