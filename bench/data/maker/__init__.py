"""The data maker: rebuilds real and synthetic vector sets from pinned packages. See ../README.md."""

# Part of every manifest and cache key. Raise it whenever a change would alter an output file.
RECIPE = 1
