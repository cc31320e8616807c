"""Exact search at every instruction set: speed relative to the bare matrix products (sgemm) of the same instruction set."""
from harness import sgemm
from harness.session import THREADS

# Required speed by instruction set and data, and what sgemm may use.
LEAST = {
    "amx": ({"random_128": 13, "sift": 16, "text": 6, "random_768": 6}, "AVX512"),
    "avx512_vnni": ({"random_128": 3.5, "sift": 4.9, "text": 3, "random_768": 3}, "AVX512"),
    "avx512": ({"random_128": 1.6, "sift": 1.8, "text": 1.5, "random_768": 1.5}, "AVX512"),
    "avx_vnni": ({"random_128": 2.5, "sift": 3, "text": 2.2, "random_768": 2.2}, "AVX2"),
    "avx2": ({"random_128": 1.4, "sift": 1.6, "text": 1.3, "random_768": 1.3}, "AVX2"),
}


def random(session, dim, rows, queries):
    size = (20_000, 500) if session.quick else (rows, queries)
    return ["--data", "normal", "--dim", dim, "--rows", size[0], "--queries", size[1]]


DATA = {
    "random_128": lambda session: random(session, 128, 1_000_000, 5000),
    "sift": lambda session: ["--base", session.sift(), "--query-file", session.sift("query"), "--type", "u8", "--queries", 5000],
    "text": lambda session: ["--base", session.text(), "--query-file", session.text("query"), "--metric", "cosine"],
    "random_768": lambda session: random(session, 768, 200_000, 2000),
}


def judged(session, isa):
    """An error where this machine lacks the instruction set."""
    least, instructions = LEAST[isa]
    reports = {name: sgemm.compare(session, *data(session), "--isa", isa, "--k", 10, repeat=3, instructions=instructions)
               for name, data in DATA.items()}
    found = {name: round(sgemm.speedups(report)[10], 2) for name, report in reports.items()}
    bar = ", ".join(f"{name} >= {times}" for name, times in least.items())
    return session.speed(found, bar, all(found[name] >= times for name, times in least.items()), {"reports": reports})


def amx(session):
    """AMX tiles: random 1M x 128, SIFT u8, text 384 cosine, random 768, k = 10: speed relative to an AVX-512 sgemm"""
    return judged(session, "amx")


def avx512_vnni(session):
    """Screening by VNNI, the same data: speed relative to an AVX-512 sgemm"""
    return judged(session, "avx512_vnni")


def avx512(session):
    """Plain AVX-512, the same data: speed relative to an AVX-512 sgemm"""
    return judged(session, "avx512")


def avx_vnni(session):
    """AVX2 with 8-bit dot products (AVX-VNNI), the same data: speed relative to an AVX2 sgemm"""
    return judged(session, "avx_vnni")


def avx2(session):
    """AVX2, the same data: speed relative to an AVX2 sgemm"""
    return judged(session, "avx2")


def one_query_prepared(session):
    """Exact.search of one query, random 1M x 128 f32, k = 10: speed relative to reading the vectors once from memory"""
    report, = session.bench("one_query", *random(session, 128, 1_000_000, 20), "--threads", THREADS, "--prepared", 1,
                            "--repeat", 2 if session.quick else 7)
    share = round(report["share"], 2)
    return session.speed(share, ">= 3", share >= 3, report)


FIGURES = (amx, avx512_vnni, avx512, avx_vnni, avx2, one_query_prepared)
