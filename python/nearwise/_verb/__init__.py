"""What the verbs of the program `nearwise` that are Python have in common: `bench`, `gpu-check`."""
