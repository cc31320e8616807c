# Sourced by the scripts of tools/ and .ci/: where the repository is, which versions, which virtual environment.
NEARWISE_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=tools/versions
source "$NEARWISE_ROOT/tools/versions"
: "${NEARWISE_ENV:=${XDG_CACHE_HOME:-$HOME/.cache}/nearwise/env}"
export NEARWISE_ENV
# The CUDA toolkit that tools/setup installs where there is none; cmake/cuda.cmake looks here, too.
NEARWISE_CUDA_ENV=${XDG_CACHE_HOME:-$HOME/.cache}/nearwise/cuda-env

# Files of the repository that match the patterns, also those not yet added, NUL-terminated, without deleted ones.
repository_files() {
  local path
  git -C "$NEARWISE_ROOT" ls-files -z --cached --others --exclude-standard -- "$@" |
    while IFS= read -r -d '' path; do
      [[ -f $NEARWISE_ROOT/$path ]] && printf '%s\0' "$path"
    done || true
}

# The folder of the machine's CUDA toolkit; fails where there is none. As cmake/cuda.cmake: on PATH, named by the
# environment, or in the usual place.
find_cuda() {
  local place nvcc
  if nvcc=$(command -v nvcc); then
    dirname "$(dirname "$(readlink -f "$nvcc")")"
    return
  fi
  for place in "${CUDA_PATH:-}" "${CUDA_HOME:-}" /usr/local/cuda; do
    if [[ -n $place && -x $place/bin/nvcc ]]; then
      printf '%s\n' "$place"
      return
    fi
  done
  return 1
}
