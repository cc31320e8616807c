"""Benchmarks on the caller's own vectors: `nearwise.bench`, and the verb `bench` of the command line."""
