"""The exception of everything that is not a wrong argument."""


class Error(RuntimeError):
    """Something other than an argument was wrong: a file, a device, memory.

    `code` is one of `not_found`, `cannot_create`, `io`, `corrupt`, `out_of_memory`, `unsupported`, `device`,
    `cancelled`, `internal`. Wrong arguments are ValueError or TypeError instead.

    Examples
    --------
    >>> import nearwise
    >>> try:
    ...     nearwise.read_vectors("missing.fvecs")
    ... except nearwise.Error as error:
    ...     print(error.code)
    not_found
    """

    code: str

    def __init__(self, message: str, code: str = "internal") -> None:
        super().__init__(message)
        self.code = code
