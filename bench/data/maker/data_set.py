"""One data set in its folder: made if it is missing, described by a manifest."""
import importlib
import json
import shutil
import sys

from . import RECIPE, manifest


def parameters_of(name, options):
    """Everything that decides the content of the files."""
    from .ground_truth import NEIGHBOURS

    parameters = {"n": options.n, "small": options.small, "gt": options.gt, "k": NEIGHBOURS, "recipe": RECIPE}
    if name == "text":
        from .text import BACKEND

        parameters["backend"] = BACKEND
    if name == "synthetic":
        from .synthetic import MIXTURE

        parameters |= {"dim": options.dim, "intrinsic": options.intrinsic, **MIXTURE}
    return parameters


def is_finished(folder, found, parameters):
    """Whether the set exists with these parameters.

    A finished set with other parameters is an error: it may have taken minutes to make, and another program may be
    reading it.
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
    # Renamed when complete, so that no incomplete set is ever read.
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
    made = {"params": parameters, "info": facts, "seconds": steps.seconds,
            "files": manifest.describe_folder(unfinished)}
    steps.done("sha256")
    manifest.write(unfinished, made)
    shutil.rmtree(folder, ignore_errors=True)
    unfinished.rename(folder)
    manifest.show(made)
    print("  " + json.dumps(facts))
    print(f"  total {sum(seconds for _, seconds in steps.seconds):.1f} s", flush=True)


def provide(name, options, home):
    """Makes the set in its folder under `home` unless it exists."""
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
    print("  up to date; hashes agree" if options.verify else "  up to date")
    manifest.show(found)
