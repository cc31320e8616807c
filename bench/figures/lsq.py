"""Additive quantization (LSQ): recall against PQ and OPQ, encoding against Faiss's LocalSearchQuantizer."""
from harness.session import THREADS, Result

import gpu_estimate

from .cuda import emulated_tests, kernels


def report_of(session, *arguments, files=None):
    files = files or session.sift
    return session.bench("additive_quantizer", "--base", files(), "--query-file", files("query"), "--threads", THREADS,
                         *arguments)[0]


def recalls(session, code_bytes):
    """{codec: recall@1, 10 and 100} of codes of this size."""
    size = ["--train-rows", 5000, "--rounds", 3] if session.quick else ["--train-rows", 100_000]
    report = report_of(session, "--train", session.sift("learn"), "--codebooks", code_bytes - 1, "--iterations", "16,32",
                       "--k", 100, "--products", "yes", *size)
    found = {f"lsq-{each['iterations']}": each["found"] for each in report["encodings"]}
    return found | {codec: report[codec]["found"] for codec in ("pq", "opq")}


def lsq_recall(session):
    """SIFT 1M, 64 and 128 bits, trained on 100,000 vectors: recall@1, 10, 100 of LSQ with 16 and 32 iterations, OPQ and PQ"""
    found = {f"{8 * code_bytes} bits": recalls(session, code_bytes) for code_bytes in (8, 16)}
    holds = all(each[own][rank] > each[other][rank] or each[other][rank] == 1
                for each in found.values() for own in ("lsq-16", "lsq-32") for other in ("pq", "opq")
                for rank in each[own])
    value = {bits: {codec: list(ranks.values()) for codec, ranks in each.items()} for bits, each in found.items()}
    return session.speed(value, "LSQ above PQ and OPQ everywhere", holds, {})


def lsq_vs_faiss(session):
    """SIFT 20,000 x 128, 8 codebooks, 16 iterations: encoding speed and errors relative to Faiss"""
    size = (["--rows", 2000, "--train-rows", 2000, "--rounds", 2, "--repeat", 1] if session.quick else
            ["--rows", 20_000, "--train-rows", 20_000, "--repeat", 3])
    report = session.rival("vs_faiss.py", "lsq", "--program", session.program("additive_quantizer"), "--base",
                           session.sift(), *size)[0]
    same, own = report["same_words"], report["own_words"]
    value = {"speed": round(same["speedup"], 2), "error with Faiss's codewords": round(same["error_ratio"], 4),
             "error with own codewords": round(own["error_ratio"], 4)}
    holds = same["speedup"] >= 4 and same["error_ratio"] <= 1 and own["error_ratio"] <= 1
    return session.speed(value, "speed >= 4, errors <= 1", holds, {"report": report})


def lsq_same_codes(session):
    """Different codes over 1 and 2 threads and all instruction sets"""
    hashes = {}
    for threads, isa in ((1, ""), (2, ""), (2, "avx2"), (2, "sse4"), (2, "portable")):
        report = report_of(session, "--rows", 4000, "--queries", 1, "--train-rows", 2000, "--rounds", 2, "--threads",
                           threads, *(["--isa", isa] if isa else []))
        hashes[f"{threads} {isa}".strip()] = report["encodings"][0]["hash"]
    different = len(set(hashes.values())) - 1
    return Result(different, "0", different == 0, {"hashes": hashes})


def lsq_gpu_estimate(session):
    """Estimated, not measured: microseconds to encode a vector on an A100, 7 codebooks, 16 iterations"""
    rates = gpu_estimate.AdditiveEvidence(kernels(session), emulated_tests(session)).rates()
    value = next(each["microseconds"] for each in rates if (each["gpu"], each["codebooks"]) == ("A100 SXM", 7))
    bar = gpu_estimate.PAPER_MICROSECONDS[7]
    return Result(round(value, 2), f"<= {bar} (on a Titan X, Martinez et al. 2018)", value <= bar, {"estimates": rates})


def code_sizes(session):
    """Error and recall@1, 10, 100 of LSQ, residual, OPQ and PQ codes by their size (reported, and drawn)"""
    rows = ["--rows", 2000, "--queries", 100, "--train-rows", 2000] if session.quick else [
        "--rows", 50_000, "--queries", 1_000, "--train-rows", 30_000]
    points = {}
    for name, train, sizes in (("sift", session.sift("learn"), (4, 8, 16)), ("text", session.text(), (4, 8))):
        for code_bytes in sizes[:1] if session.quick else sizes:
            shape = [*rows, "--train", train, "--codebooks", code_bytes - 1, "--k", 100]
            full, start = (report_of(session, *shape, *more, files=getattr(session, name)) for more in (
                ["--iterations", 32, "--products", "yes"], ["--iterations", 1, "--rounds", 0]))
            # The residual quantizer is what LSQ's training starts from.
            found = {"PQ": full["pq"], "OPQ": full["opq"], "residual": start["encodings"][0],
                     "LSQ": full["encodings"][0]}
            points[f"{name}, {code_bytes} bytes"] = {
                codec: {"error": round(each["error"] / full["variance"], 4), **each["found"]}
                for codec, each in found.items()}
    return Result(len(points), "reported", True, {"points": points})


FIGURES = (lsq_recall, lsq_vs_faiss, lsq_same_codes, lsq_gpu_estimate, code_sizes)
