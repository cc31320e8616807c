"""What the figures of tools/prove share."""
