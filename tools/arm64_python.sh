# Sourced by tools/build_wheel: a Python for Linux on 64-bit ARM that qemu runs here, in a folder of the cache.
#
# A Debian root of its own: next to the machine's Python, multiarch would ask for the same version of every package.
ARM64_ROOT=$(dirname "$NEARWISE_ENV")/arm64-root
ARM64_PYTHON=$(dirname "$NEARWISE_ENV")/arm64-python/bin/python

make_arm64_python() {
  local modules scratch
  if [[ ! -x $ARM64_ROOT/usr/bin/python$PYTHON_VERSION ]]; then
    echo "build_wheel: making a Debian root for arm64 in $ARM64_ROOT"
    scratch=$ARM64_ROOT.making
    rm -rf "$scratch" "$ARM64_ROOT"
    mmdebstrap --quiet --variant=extract --architectures=arm64 \
      --include="python$PYTHON_VERSION-minimal,libpython$PYTHON_VERSION-dev,libstdc++6" bookworm "$scratch"
    mv "$scratch" "$ARM64_ROOT"
  fi
  # nanobind's own modules are plain Python; NumPy is for the trial of the wheel.
  modules=$(dirname "$(dirname "$ARM64_PYTHON")")/modules
  if [[ ! -d $modules ]]; then
    "$NEARWISE_ENV/bin/pip" install --quiet --disable-pip-version-check --target "$modules.making" --only-binary=:all: \
      --platform manylinux_2_28_aarch64 --platform manylinux2014_aarch64 --python-version "$PYTHON_VERSION" \
      --constraint tools/requirements.txt nanobind typing_extensions numpy
    mkdir -p "$(dirname "$modules")"
    mv "$modules.making" "$modules"
  fi
  mkdir -p "$(dirname "$ARM64_PYTHON")"
  printf '#!/bin/sh\nPYTHONPATH=$PYTHONPATH:%s exec qemu-aarch64-static -L %s %s "$@"\n' \
    "$modules" "$ARM64_ROOT" "$ARM64_ROOT/usr/bin/python$PYTHON_VERSION" >"$ARM64_PYTHON"
  chmod +x "$ARM64_PYTHON"
}

# try_arm64_wheel WHEEL FOLDER: unpacks it there, imports it and searches.
try_arm64_wheel() {
  python -m zipfile -e "$1" "$2"
  PYTHONPATH=$2 "$ARM64_PYTHON" - <<'END'
import nearwise
import numpy

rows = numpy.random.default_rng(1).random((500, 20), dtype=numpy.float32)
found = nearwise.knn(rows[:50], rows, 1)
assert (found.ids[:, 0] == numpy.arange(50)).all() and (found.distances == 0).all(), found
print("imported by qemu:", nearwise.__version__)
END
}
