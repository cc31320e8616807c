"""One data set in its folder: find out whether it is there, else make it, and describe it."""
import importlib
import json
import shutil
import sys

from . import RECIPE, manifest
from .file_formats import ELEMENT_TYPES, copy_path, write_copy


def parameters_of(name, options):
    """Everything that decides the content of the files."""
    from .ground_truth import NEIGHBOURS

    parameters = {"n": options.n, "small": options.small, "gt": options.gt, "k": NEIGHBOURS, "recipe": RECIPE}
    if name == "text":
        from .text import BACKEND

        parameters["backend"] = BACKEND
    if name == "synthetic":
        from .synthetic import MIXTURE

        parameters |= {"dim": options.dim, "intrinsic": options.intrinsic, "u8": options.u8, **MIXTURE}
    return parameters


def copied_files(folder):
    """The files that `--formats` copies: vectors and neighbour ids."""
    candidates = [folder / f"{part}{suffix}" for part in ("base", "learn", "query") for suffix in ELEMENT_TYPES]
    return [path for path in [*candidates, folder / "gt.ibin"] if path.exists()]


def add_copies(folder, formats, finished_files):
    """Write the copies that are not among `finished_files`; return their paths."""
    wanted = [(path, copy_format) for path in copied_files(folder) for copy_format in formats]
    missing = [pair for pair in wanted if copy_path(*pair).name not in finished_files]
    for path, copy_format in missing:
        write_copy(path, copy_format)
    return [copy_path(*pair) for pair in missing]


def is_finished(folder, found, parameters):
    """True if the set is there as asked for, False if it must be made.

    A whole set under other parameters is not replaced silently: it may have taken minutes to make,
    and another program may be reading it.
    """
    if found is None or manifest.missing_files(folder, found):
        return False
    recorded = found["params"]
    if recorded.get("recipe") != RECIPE:
        return False
    different = [f"{key} is {recorded.get(key)}, not {value}"
                 for key, value in parameters.items() if recorded.get(key) != value]
    if different:
        sys.exit(f"  {folder.name} exists with other parameters ({'; '.join(different)}): "
                 "give this variant a --tag, or replace the set with --force")
    return True


def make(name, options, home, folder, parameters):
    # Made beside its place and renamed when complete: nobody ever reads half a set.
    unfinished = home / (folder.name + ".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    steps = manifest.Steps()
    maker = importlib.import_module(f".{name}", __package__)
    suffix, facts = maker.make(options, home / "_cache", unfinished, steps)
    if options.gt:
        from .ground_truth import make_ground_truth

        truth = facts["ground_truth"] = make_ground_truth(unfinished, suffix, options.threads)
        steps.done(f"exact top {truth['k']}, local intrinsic dimension {truth['lid_mle_mean']}")
    add_copies(unfinished, options.formats, ())
    made = {"params": {**parameters, "formats": options.formats}, "info": facts,
            "seconds": steps.seconds, "files": manifest.describe_folder(unfinished)}
    steps.done("copies and sha256")
    manifest.write(unfinished, made)
    shutil.rmtree(folder, ignore_errors=True)
    unfinished.rename(folder)
    manifest.show(made)
    print("  " + json.dumps(facts))
    print(f"  total {sum(seconds for _, seconds in steps.seconds):.1f} s", flush=True)


def provide(name, options, home):
    """Leave the set in its folder under `home`, making it only if needed."""
    folder = home / (name + ("-small" if options.small else "") + (f"-{options.tag}" if options.tag else ""))
    parameters = parameters_of(name, options)
    print(f"== {folder.name}", flush=True)
    found = manifest.read(folder)
    if options.force or not is_finished(folder, found, parameters):
        make(name, options, home, folder, parameters)
        return
    if options.verify:
        damaged = manifest.damaged_files(folder, found)
        if damaged:
            sys.exit(f"  damaged: {', '.join(damaged)}; make the set again with --force")
    copies = add_copies(folder, options.formats, found["files"])
    if copies:
        found["files"] |= {path.name: manifest.describe_file(path) for path in copies}
        found["params"]["formats"] = sorted({*found["params"]["formats"], *options.formats})
        manifest.write(folder, found)
    print("  up to date; hashes agree" if options.verify else "  up to date")
    manifest.show(found)
