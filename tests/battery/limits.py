"""The limits of a child that works with an adapter."""

from isolation import GIB, Limits


def limits_of(adapter, seconds=60, address_space=12 * GIB):
    return Limits(seconds, address_space, str(adapter.folder / "log"), adapter.load_library, adapter.is_documented)
