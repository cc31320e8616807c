"""The smoothest path between two pictures in a k-NN graph: every picture resembles the one before it.

    python smoothest_path.py                                        # ellipses, drawn here
    python smoothest_path.py --images base.u8bin --pair 1 2 --pair 3 4 --output paths.png

--images takes pictures of 28 x 28 as rows of 784 bytes, such as the `images` set of bench/data/make_data.
"""

import argparse
import struct
import zlib

import nearwise
import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]

SIDE = 28
PER_LINE = 15
SCALE = 2


def draw_ellipses(count: int, seed: int = 1) -> Pixels:
    """Ellipses of any angle and width as rows of 784 pixels; the first is horizontal, the second vertical."""
    random = np.random.default_rng(seed)
    angles, widths = random.uniform(0, np.pi, count), random.uniform(2, 9, count)
    angles[:2], widths[:2] = (0, np.pi / 2), 2
    y, x = np.mgrid[:SIDE, :SIDE] - (SIDE - 1) / 2
    across = x * np.cos(angles)[:, None, None] + y * np.sin(angles)[:, None, None]
    along = y * np.cos(angles)[:, None, None] - x * np.sin(angles)[:, None, None]
    radius = np.sqrt((across / 11) ** 2 + (along / widths[:, None, None]) ** 2)
    pixels: Pixels = (255 * np.clip(4 * (1 - radius), 0, 1)).astype(np.uint8)
    return pixels.reshape(count, SIDE * SIDE)


def montage(pictures: Pixels) -> Pixels:
    """Pictures in lines from left to right, dark on white."""
    lines = -(-len(pictures) // PER_LINE)
    sheet = np.zeros((lines * PER_LINE, SIDE * SIDE), np.uint8)
    sheet[: len(pictures)] = pictures
    sheet = sheet.reshape(lines, PER_LINE, SIDE, SIDE).transpose(0, 2, 1, 3).reshape(lines * SIDE, PER_LINE * SIDE)
    return 255 - sheet.repeat(SCALE, axis=0).repeat(SCALE, axis=1)


def write_png(path: str, pixels: Pixels) -> None:
    """A grey picture."""
    height, width = pixels.shape
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header))
        file.write(chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b""))


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--images", help="pictures, in any format of vectors")
parser.add_argument("--pair", nargs=2, type=int, action="append", metavar=("START", "END"), help="rows to connect")
parser.add_argument("--degree", type=int, default=15)
parser.add_argument("--output", default="paths.png")
arguments = parser.parse_args()

images = draw_ellipses(2000) if arguments.images is None else nearwise.read_vectors(arguments.images)
graph = nearwise.build_knn_graph(images, arguments.degree, metric="euclidean")
print(graph)
print(f"connected components: {len(graph.connected_components().sizes)}")

shown = []
for start, end in arguments.pair or [(0, 1)]:
    path = graph.smoothest_path(start, end)
    if path is None:
        print(f"{start} to {end}: not connected")
        continue
    direct = np.linalg.norm(images[start].astype(np.float32) - images[end].astype(np.float32))
    print(f"{start} to {end}: {len(path.distances)} steps of at most {path.widest:.0f}, instead of one of {direct:.0f}")
    print("  " + " ".join(map(str, path.rows)))
    shown.append(montage(images[path.rows]))
if shown:
    gap = np.full((8, shown[0].shape[1]), 255, np.uint8)
    write_png(arguments.output, np.vstack([part for sheet in shown for part in (sheet, gap)][:-1]))
    print(f"wrote {arguments.output}")
