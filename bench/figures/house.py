"""Repository: answers, layout, size, and speed relative to an older build.

The speed figures need `--baseline BUILD`, the release build folder of an older checkout with its benchmarks built
(`decompositions`: its Python package). With this checkout's own build folder they measure the noise of the machine.
Programs of bench/end_to_end are the interface: both builds have them, with the same options.
"""
import functools
import os
import random
import re
import statistics
import struct
import subprocess
import sys
from pathlib import Path

from harness import pairs, processes
from harness.session import CACHE, ROOT, THREADS, Result, json_lines, output_of

import check_text
import repository

CODE_FOLDERS = ("src", "cli", "python", "tools", "bench")
CODE_SUFFIXES = {".h", ".cpp", ".cu", ".cuh", ".py"}
# The revision that sizes are compared with, and its lines in CODE_FOLDERS.
BEFORE, LINES_BEFORE = "4607ad8", 68_286
DIGESTS = "tests/golden_answers/digests.txt"


def golden_answers(session):
    """Tests of the recorded digests of answers and saved files"""
    result = session.test_result("golden_answers_tests", "*-*ByTensorCores")  # which are of devices
    first = output_of("git", "log", "--diff-filter=A", "--format=%H", "--", DIGESTS).split("\n")[-1]
    changes = output_of("git", "diff", "-U0", first, "--", DIGESTS) if first else ""
    result.details["changed_since_first_recorded"] = sorted(set(re.findall(r"^[-+](\S+) [0-9a-f]{16}$", changes, re.M)))
    return result


def files_per_folder(_):
    """Most files in a folder of include, src, cli, tools and the Python package"""
    ((largest, most),) = check_text.files_per_folder(repository.files(ROOT)).most_common(1)
    return Result(most, f"<= {check_text.MOST_FILES}", most <= check_text.MOST_FILES, {"folder": str(largest)})


def longest_file(_):
    """Lines of the longest source file"""
    lines = {path: lines_of(path) for path in repository.files(ROOT) if path.suffix in CODE_SUFFIXES}
    longest = max(lines, key=lines.get)
    return Result(lines[longest], f"<= {check_text.MOST_LINES}", lines[longest] <= check_text.MOST_LINES, {"file": str(longest)})


def retired_terms(_):
    """Findings of tools/check_text.py: retired terms, long files and comments, unfinished marks"""
    run = subprocess.run([sys.executable, ROOT / "tools" / "check_text.py"], capture_output=True, text=True)
    findings = run.stderr.splitlines()
    return Result(len(findings), "0", run.returncode == 0 and not findings, {"findings": findings[:100]})


def lines_of(path):
    return (ROOT / path).read_bytes().count(b"\n")


def lines_removed(_):
    """Lines of src, cli, python, tools and bench fewer than at commit 4607ad8"""
    after = {folder: sum(lines_of(path) for path in repository.files(ROOT) if path.parts[0] == folder)
             for folder in CODE_FOLDERS}
    before = LINES_BEFORE
    if output_of("git", "cat-file", "-t", BEFORE) == "commit":
        counts = output_of("git", "grep", "--text", "-c", "", BEFORE, "--", *CODE_FOLDERS).split("\n")
        before = sum(int(line.rpartition(":")[2]) for line in counts)
    removed = before - sum(after.values())
    return Result(removed, ">= 3000", removed >= 3000, {"before": before, "after": after})


def wheel_megabytes(_):
    """Size of the wheel in dist/, which is built if there is none"""
    if not list((ROOT / "dist").glob("*.whl")):
        processes.run([ROOT / "tools" / "build_wheel"])
    (wheel,) = (ROOT / "dist").glob("*.whl")
    size = wheel.stat().st_size / 1e6
    return Result(round(size, 2), "<= 6", size <= 6, {"wheel": wheel.name})


def clustered_rows(path, rows, clusters=500, dim=128):
    """Writes a .u8bin file of clusters: a centre below 192 plus noise below 64 in every dimension."""
    draw = random.Random(1)
    low_bits = int.from_bytes(b"\x3f" * dim, "little")

    def masked(mask):
        return int.from_bytes(draw.randbytes(dim), "little") & mask

    centres = [masked(low_bits) + 2 * masked(low_bits) for _ in range(clusters)]
    with open(path, "wb") as file:
        file.write(struct.pack("<II", rows, dim))
        for _ in range(rows):  # no byte exceeds 255, so that one addition adds all of them
            file.write((draw.choice(centres) + masked(low_bits)).to_bytes(dim, "little"))
    return path


@functools.cache
def data(session):
    """(base, queries)"""
    base, queries = ((5_000, 200) if session.quick else (200_000, 10_000))
    return (clustered_rows(session.scratch / "base.u8bin", base),
            clustered_rows(session.scratch / "queries.u8bin", queries))


def run_in(build, program, arguments):
    """The report of a program of bench/end_to_end. One in Python is this checkout's, with the package of the build."""
    command, variables = [build / "bench" / "end_to_end" / program], {}
    if program.endswith(".py"):
        command = [CACHE / "env" / "bin" / "python", ROOT / "bench" / "end_to_end" / program]
        variables = {"PYTHONPATH": str(build / "python"), "OPENBLAS_NUM_THREADS": str(THREADS)}
    run = processes.run([*command, *arguments, "--threads", THREADS], env=os.environ | variables)
    return json_lines(run.output)[-1]


@functools.cache
def rounds(session, count, program, *arguments):
    """[(report of the old build, report of the new one)]; the builds take turns in going first, the first round warms up."""
    if session.baseline is None:
        raise RuntimeError("--baseline BUILD is missing: the release build folder of an older checkout")
    session.build("release", "nearwise_python" if program.endswith(".py") else program)
    builds = {"old": Path(session.baseline), "new": ROOT / "build" / "release"}
    found = []
    for number in range(3 if session.quick else 1 + count):
        reports = {}
        for name in ("old", "new") if number % 2 else ("new", "old"):
            # Every build has its own index file: formats may differ.
            words = [f"{session.scratch}/{name}.nw" if word == "INDEX" else word for word in arguments]
            reports[name] = run_in(builds[name].resolve(), program, words)
        found.append((reports["old"], reports["new"]))
    return found[1:]


def speed(session, most, seconds, program, *arguments, count=25):
    """seconds: of a report. The ratio of the medians, with an interval of 90 % by resampling the rounds."""
    times = [(seconds(old), seconds(new)) for old, new in rounds(session, count, program, *arguments)]
    ratio = pairs.ratio(times)
    return session.speed(round(ratio, 3), f"<= {most}", ratio <= most, comparison(times))


def comparison(times):
    return {"interval": pairs.interval(times, pairs.ratio), "rounds": len(times),
            "ratio_of_minima": round(min(new for _, new in times) / min(old for old, _ in times), 3),
            "old_seconds": [round(old, 4) for old, _ in times], "new_seconds": [round(new, 4) for _, new in times]}


def exact_speed(session, kind):
    base, _ = data(session)
    return speed(session, 1.03, lambda report: statistics.median(report["search_seconds"]), "graph_vs_search", "--base", base,
                 "--query-file", base, "--rows", 50_000, "--queries", 1, "--type", kind, "--k", 10, "--repeat", 3)


def speed_exact_u8(session):
    """Exact search, 50,000 x 128 u8 among themselves, k = 10: time relative to the older build"""
    return exact_speed(session, "u8")


def speed_exact_f32(session):
    """Exact search, 50,000 x 128 f32 among themselves, k = 10: time relative to the older build"""
    return exact_speed(session, "f32")


def speed_kmeans(session):
    """k-means, 200,000 x 128 f32, 1,024 centroids, ten iterations: time relative to the older build"""
    return speed(session, 1.03, lambda report: report["whole_seconds"][0], "kmeans", "--base", data(session)[0], "--type",
                 "f32", "--clusters", 64 if session.quick else 1024, "--repeat", 1, "--blas", "none")


def speed_ivf_batch(session):
    """Inverted file of PQ codes, 200,000 x 128 u8, 10,000 queries in one batch, with re-ranking: likewise"""
    base, queries = data(session)
    return speed(session, 1.03, lambda report: statistics.median(report["seconds"]), "ivf", "--base", base, "--queries",
                 queries, "--lists", 32 if session.quick else 512, "--index", "INDEX", "--probes", 16, "--repeat", 5)


def speed_graph_build(session):
    """k-NN graph, 200,000 x 128 u8, degree 10, recall 0.95: time relative to the older build"""
    return speed(session, 1.03, lambda report: report["seconds"], "graph", "--base", data(session)[0], "--type", "u8",
                 "--degree", 10, "--percent", 95)


def lsq_speed(session, most, seconds, codebooks, training, rows, count):
    """training: (vectors, rounds)"""
    base, _ = data(session)
    (train_rows, training_rounds), rows = ((500, 1), 500) if session.quick else (training, rows)
    return speed(session, most, seconds, "additive_quantizer", "--base", base, "--query-file", base, "--queries", 1,
                 "--rows", rows, "--train-rows", train_rows, "--rounds", training_rounds, "--codebooks", codebooks,
                 "--repeat", 1, count=count)


def speed_lsq_encode(session):
    """LSQ encoding, 100,000 x 128 f32, 8 codebooks, 16 iterations: time relative to the older build"""
    return lsq_speed(session, 1.03, lambda report: report["encodings"][0]["seconds"], 8, (1_000, 1), 100_000, 25)


def lsq_training_speed(session, codebooks, training_rounds, count):
    return lsq_speed(session, 1.1, lambda report: report["training_seconds"], codebooks, (10_000, training_rounds), 1_000,
                     count)


def speed_lsq_training(session):
    """LSQ training, 10,000 x 128 f32, 8 codebooks, 5 rounds: time relative to the older build"""
    return lsq_training_speed(session, 8, 5, 25)


def speed_lsq_training_16(session):
    """The same with 16 codebooks, 3 rounds"""
    return lsq_training_speed(session, 16, 3, 7)


def speed_lsq_training_32(session):
    """The same with 32 codebooks, 2 rounds"""
    return lsq_training_speed(session, 32, 2, 5)


# Dimensions, training vectors of OPQ, rounds of the comparison.
DECOMPOSED = ((128, 10_000, 9), (768, 4_000, 5), (1536, 6_144, 1))
QUICK_DECOMPOSED = ((32, 1_000, 2), (64, 1_000, 2))


def decompositions(session):
    """Principal axes and OPQ at 128, 768 and 1,536 dimensions: time relative to the older build

    That of commit 4607ad8 decomposes by LAPACK. `numpy` in the details is its time for the decompositions alone.
    """
    value, details = {}, {}
    for dim, rows, count in QUICK_DECOMPOSED if session.quick else DECOMPOSED:
        found = rounds(session, count, "decompositions.py", "--dim", dim, "--rows", rows)
        ratios, details[f"d={dim}"] = {}, {"rows": rows}
        for name in ("pca", "opq", "opq_cpu"):
            times = [(old[f"{name}_seconds"], new[f"{name}_seconds"]) for old, new in found]
            ratios[name], details[f"d={dim}"][name] = round(pairs.ratio(times), 3), comparison(times)
        value[f"d={dim}"] = {name: ratios[name] for name in ("pca", "opq")}
        details[f"d={dim}"]["opq_error"] = {"old": found[0][0]["opq_error"], "new": found[0][1]["opq_error"]}
        details[f"d={dim}"]["numpy"] = {
            name: round(statistics.median(report[f"{name}_seconds"] for both in found for report in both), 4)
            for name in ("eigh", "svd")}
    judged = [value[f"d={dim}"]["opq"] for dim in (128, 768) if f"d={dim}" in value]
    return session.speed(value, "OPQ <= 1.1 at 128 and 768 dimensions", max(judged, default=0) <= 1.1, details)


FIGURES = (golden_answers, files_per_folder, longest_file, retired_terms, lines_removed, wheel_megabytes, speed_exact_u8,
           speed_exact_f32, speed_kmeans, speed_ivf_batch, speed_graph_build, speed_lsq_encode, speed_lsq_training,
           speed_lsq_training_16, speed_lsq_training_32, decompositions)
