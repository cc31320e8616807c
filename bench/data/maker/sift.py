"""The `sift` set: OpenCV SIFT descriptors (128 x uint8) of the pictures in a dozen packages.

No picture gives vectors to two of base, learn and query.
"""
import hashlib
import os
import re
import struct
from multiprocessing import Pool
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np

from . import RECIPE
from .file_formats import write_vectors
from .packages import unpack_packages

SMALL_PACKAGES = ["mate-backgrounds", "lomiri-wallpapers-16.04"]
ALL_PACKAGES = SMALL_PACKAGES + [
    "lomiri-wallpapers-20.04", "plasma-workspace-wallpapers", "gnome-backgrounds",
    "ukui-wallpapers", "lxqt-themes", "palapeli-data", "libjxl-testdata",
    "python3-skimage", "opencv-doc", "gcompris-qt-data",
]
LONGEST_SIDE = 2048  # larger pictures are scaled down
DESCRIPTOR_CAP = 12000  # of one picture, strongest first, so that no picture dominates
CONTRAST_THRESHOLD = 0.02
FEWEST_DESCRIPTORS = 100  # drawings and gradients with fewer are left out
SHORTEST_SIDE = 160
SMALLEST_FILE_BYTES = 30_000
SMALLEST_CARVED_BYTES = 8_000
SAME_PICTURE_BITS = 24  # of 256 bits of the perceptual hash
SHUFFLE_SEED = 20240101
# Variants of a picture that is there already, drawings, icons, and test images that are no photographs.
UNWANTED = re.compile(
    r"images_dark|screenshot|/html/|opencv4|skyculture|scenery3d|"
    r"/tests/|wide-gamut|_(alpha|grayscale|gray|cropped)\.|q85_|-d\.webp|"
    r"result|normal|segmented|logo|motorcycle_right|aloeR|aloeGT|"
    r"/doc/HTML/|/icons/")


class Source(NamedTuple):
    """Where the bytes of one candidate picture lie."""
    path: str
    offset: int
    length: int


class Picture(NamedTuple):
    sha256: str
    pixels: int
    perceptual_hash: np.ndarray  # [32] bytes
    descriptors: np.ndarray  # [n, 128]


def carve_webp(path):
    """The WebP files inside a Qt resource file, which stores them uncompressed."""
    content = Path(path).read_bytes()
    for match in re.finditer(rb"RIFF(....)WEBP", content, re.S):
        length = struct.unpack("<I", match[1])[0] + 8
        if length > SMALLEST_CARVED_BYTES:
            yield Source(path, match.start(), length)


def list_sources(package, top):
    """Every candidate picture of an unpacked package: of several resolutions only the largest file."""
    carved, largest = [], {}
    for root, folders, files in os.walk(top):
        folders.sort()  # os.walk follows this order: the listing must not depend on the file system
        for file in sorted(files):
            path = os.path.join(root, file)
            stem, _, extension = file.rpartition(".")
            extension = extension.lower()
            if os.path.islink(path):
                continue
            if extension == "rcc" and package.startswith("gcompris"):
                carved += carve_webp(path)
                continue
            length = os.path.getsize(path)
            if extension not in ("jpg", "jpeg", "png", "webp") or length < SMALLEST_FILE_BYTES:
                continue
            if UNWANTED.search(os.path.relpath(path, top)):
                continue
            key = (root, re.sub(r"[_-]?\d{3,4}x\d{3,4}", "", stem))
            if key not in largest or length > largest[key].length:
                largest[key] = Source(path, 0, length)
    return carved + [largest[key] for key in sorted(largest)]


def to_grey(image):
    """An 8-bit grey image, or None if the picture has an element type we do not know."""
    if image.dtype == np.uint16:
        image = (image >> 8).astype(np.uint8)
    if image.dtype != np.uint8:
        return None
    if image.ndim == 3 and image.shape[2] == 4:  # transparent: lay it over mid grey
        alpha = image[:, :, 3:].astype(np.uint32)
        image = ((image[:, :, :3] * alpha + 128 * (255 - alpha) + 127) // 255).astype(np.uint8)
    return cv2.cvtColor(image, cv2.COLOR_BGR2GRAY) if image.ndim == 3 else image


def describe(content):
    """(pixels, perceptual hash, descriptors) of an encoded picture, or None if it is of no use."""
    cv2.setNumThreads(1)  # the pool has one process for each core already
    image = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_UNCHANGED)
    if image is None or min(image.shape[:2]) < SHORTEST_SIDE:
        return None
    image = to_grey(image)
    if image is None:
        return None
    height, width = image.shape
    thumbnail = cv2.resize(image, (17, 16), interpolation=cv2.INTER_AREA).astype(np.int16)
    perceptual_hash = np.packbits(thumbnail[:, 1:] > thumbnail[:, :-1])
    scale = LONGEST_SIDE / max(height, width)
    if scale < 1:
        size = (round(width * scale), round(height * scale))
        image = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    detector = cv2.SIFT_create(DESCRIPTOR_CAP, 3, CONTRAST_THRESHOLD)
    points, descriptors = detector.detectAndCompute(image, None)
    if descriptors is None or len(points) < FEWEST_DESCRIPTORS:
        return None
    # OpenCV may return more than the cap, and points of equal strength in any order.
    keys = np.array([(-point.response, *point.pt, point.size, point.angle) for point in points])
    order = np.lexsort(keys.T[::-1])[:DESCRIPTOR_CAP]
    return height * width, perceptual_hash, np.clip(descriptors[order], 0, 255).astype(np.uint8)


def describe_cached(job):
    """The Picture of a Source, or None. Results are kept: an interrupted run resumes."""
    source, store = job
    with open(source.path, "rb") as file:
        file.seek(source.offset)
        content = file.read(source.length)
    sha256 = hashlib.sha256(content).hexdigest()
    cached = store / f"{sha256[:32]}.npz"
    if not cached.exists():
        nothing = (0, np.zeros(32, np.uint8), np.zeros((0, 128), np.uint8))
        pixels, perceptual_hash, descriptors = describe(content) or nothing
        unfinished = store / f"{sha256[:32]}.{os.getpid()}.part.npz"
        np.savez(unfinished, px=pixels, dhash=perceptual_hash, desc=descriptors)
        unfinished.replace(cached)
    with np.load(cached) as stored:
        descriptors = stored["desc"]
        if not len(descriptors):
            return None
        return Picture(sha256, int(stored["px"]), stored["dhash"], descriptors)


def describe_all(sources, store, processes):
    pictures = []
    with Pool(processes) as pool:
        results = pool.imap(describe_cached, [(source, store) for source in sources], 1)
        for count, picture in enumerate(results, 1):
            if picture:
                pictures.append(picture)
            if count % 100 == 0:
                print(f"    {count}/{len(sources)} pictures", flush=True)
    return pictures


def drop_repeated_pictures(pictures):
    """Of the same picture in several resolutions or encodings only the largest stays."""
    kept, hashes = [], np.empty((0, 32), np.uint8)
    for picture in sorted(pictures, key=lambda picture: (-picture.pixels, picture.sha256)):
        difference = np.bitwise_count(hashes ^ picture.perceptual_hash).sum(1)
        if len(difference) and difference.min() <= SAME_PICTURE_BITS:
            continue
        kept.append(picture)
        hashes = np.vstack([hashes, picture.perceptual_hash[None]])
    return sorted(kept, key=lambda picture: picture.sha256)  # an arbitrary but fixed order


def split(pictures, wanted, folder):
    """Write `wanted` = {role: rows} distinct non-zero vectors of each role."""
    # Of every 20 pictures one gives queries and two give learning vectors.
    roles = np.array([{7: "query", 3: "learn", 13: "learn"}.get(i % 20, "base") for i in range(len(pictures))])
    vectors = np.vstack([picture.descriptors for picture in pictures])
    owner = np.repeat(np.arange(len(pictures)), [len(picture.descriptors) for picture in pictures])
    _, first = np.unique(vectors.view("V128").ravel(), return_index=True)
    usable = np.zeros(len(vectors), bool)
    usable[first] = True
    usable &= vectors.any(1)
    random = np.random.Generator(np.random.Philox(SHUFFLE_SEED))
    for role, rows in wanted.items():
        chosen = random.permutation(np.flatnonzero(usable & (roles == role)[owner]))
        if len(chosen) < rows:
            print(f"  WARNING only {len(chosen)} {role} vectors, {rows} wanted")
        write_vectors(folder / f"{role}.u8bin", vectors[chosen[:rows]])


def make(options, cache, folder):
    packages = SMALL_PACKAGES if options.small else ALL_PACKAGES
    # The order of the roles is part of the recipe: they share one random stream.
    wanted = {"query": 1_000, "learn": 10_000, "base": 50_000} if options.small else {
        "query": 10_000, "learn": 100_000, "base": 1_000_000}
    wanted["base"] = options.n or wanted["base"]
    sources = []
    for package, top in zip(packages, unpack_packages(packages, cache)):
        sources += list_sources(package, top)
    store = cache / f"sift-{RECIPE}-{LONGEST_SIDE}-{DESCRIPTOR_CAP}-{CONTRAST_THRESHOLD}"
    store.mkdir(exist_ok=True)
    pictures = describe_all(sources, store, options.threads)
    print(f"  {len(pictures)} of {len(sources)} pictures are usable")
    split(drop_repeated_pictures(pictures), wanted, folder)
    return ".u8bin"
