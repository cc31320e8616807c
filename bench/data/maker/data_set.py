"""make_data: a data set in its folder, made if it is missing, with a manifest of its parameters and files.

Loads no numeric library until it has set their thread counts.
"""
import argparse
import importlib
import json
import os
import shutil
import sys

from . import RECIPE
from .environment import data_home, exclusive

SETS = ("sift", "text", "images", "synthetic")
MANIFEST = "manifest.json"


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="make_data", description="Make the vector sets of the benchmarks in the cache folder.")
    parser.add_argument("--set", default="all", choices=[*SETS, "all"])
    parser.add_argument("--small", action="store_true", help="seconds instead of minutes: fewer vectors and packages")
    parser.add_argument("--n", type=positive, help="base vectors (default: the whole set)")
    parser.add_argument("--dim", type=positive, default=128, help="of the synthetic set")
    parser.add_argument("--tag", default="", help="suffix of the folder, for a variant of the set")
    parser.add_argument("--no-gt", dest="gt", action="store_false", help="without the exact neighbours")
    parser.add_argument("--force", action="store_true", help="make the set again even if it exists")
    parser.add_argument("--threads", type=positive, default=min(2, os.cpu_count() or 1))
    return parser.parse_args(arguments)


def is_finished(folder, parameters):
    """Whether the set exists with these parameters.

    A finished set with other parameters is an error: it may have taken minutes to make, and another program may be
    reading it.
    """
    if not (folder / MANIFEST).exists():
        return False
    found = json.loads((folder / MANIFEST).read_text())
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    recorded = found["params"]
    if recorded.get("recipe") != RECIPE or any(
            sizes.get(name) != entry["bytes"] for name, entry in found["files"].items()):
        return False
    different = [f"{key} is {recorded.get(key)}, not {value}"
                 for key, value in parameters.items() if recorded.get(key) != value]
    if different:
        sys.exit(f"  {folder.name} exists with other parameters ({'; '.join(different)}): "
                 "give this variant a --tag, or replace the set with --force")
    return True


def provide(name, options, home):
    """Makes the set in its folder under `home` unless it exists."""
    folder = home / (name + ("-small" if options.small else "") + (f"-{options.tag}" if options.tag else ""))
    # With the constants of the makers, which the recipe stands for, these decide the content of the files.
    parameters = {"n": options.n, "small": options.small, "gt": options.gt, "recipe": RECIPE}
    if name == "synthetic":
        parameters["dim"] = options.dim
    print(f"== {folder.name}", flush=True)
    if not options.force and is_finished(folder, parameters):
        print("  up to date")
        return
    # Renamed when complete, so that no incomplete set is ever read.
    unfinished = home / (folder.name + ".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    suffix = importlib.import_module(f".{name}", __package__).make(options, home / "_cache", unfinished)
    if options.gt:
        from .ground_truth import make_ground_truth

        make_ground_truth(unfinished, suffix, options.threads)
    files = {path.name: {"bytes": path.stat().st_size} for path in sorted(unfinished.iterdir())}
    (unfinished / MANIFEST).write_text(json.dumps({"params": parameters, "files": files}, indent=1))
    shutil.rmtree(folder, ignore_errors=True)
    unfinished.rename(folder)
    print(f"  made {', '.join(files)}", flush=True)


def main(arguments):
    options = parse(arguments)
    # Read by the numeric libraries when they are loaded, hence before a maker is imported.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(options.threads)
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"  # waiting threads must not spin on a shared machine
    home = data_home()
    with exclusive(home / "_cache" / "lock"):
        for name in SETS if options.set == "all" else [options.set]:
            provide(name, options, home)
