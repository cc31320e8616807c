"""The options of make_data. Loads no numeric library until it has set their thread counts."""
import argparse
import os

from .environment import data_home, exclusive

SETS = ("sift", "text", "images", "synthetic")


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
    parser.add_argument("--tag", default="", help="suffix of the folder, for a variant of the set")
    parser.add_argument("--no-gt", dest="gt", action="store_false", help="without the exact neighbours")
    parser.add_argument("--verify", action="store_true", help="check the hashes of a finished set")
    parser.add_argument("--force", action="store_true", help="make the set again even if it exists")
    parser.add_argument("--threads", type=positive, default=min(2, os.cpu_count() or 1))
    synthetic = parser.add_argument_group("synthetic set only")
    synthetic.add_argument("--dim", type=positive, default=128)
    synthetic.add_argument("--intrinsic", type=positive, default=16, help="dimensions of each cluster")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    # Read by the numeric libraries when they are loaded, hence before the import below.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(options.threads)
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"  # waiting threads must not spin on a shared machine
    from . import data_set

    home = data_home()
    with exclusive(home / "_cache" / "lock"):
        for name in SETS if options.set == "all" else [options.set]:
            data_set.provide(name, options, home)
