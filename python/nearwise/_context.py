"""Where an operation runs, under which limits, and how its arguments become a call of the C++ library."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import operator
from collections.abc import Callable
from typing import Any, ParamSpec, Self, TypedDict, TypeVar, cast, get_args, get_type_hints

from nearwise import _core, _options
from nearwise._device_array import DeviceArray
from nearwise._error import Error, own_error
from nearwise._progress import ProgressArgument, ProgressBar, check_progress
from nearwise._rows import Rows, as_array, one_row, rows_of
from nearwise._suggest import too_many_arguments, unknown_argument

_P = ParamSpec("_P")
_R = TypeVar("_R")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Context:
    """Where operations run and under which limits. `None` leaves the choice to the operation.

    Every operation takes one as `context=`, and the same settings as plain keywords. A keyword may add to a
    context but not contradict it. Objects (`Exact`, `Ivf`, quantizers, `KnnGraph`, ...) remember the threads,
    memory_limit, device and isa they were made with; their methods take `context=` to change them for one call.

    Parameters
    ----------
    threads : int, optional
        Default: all CPUs this process may use. A forked child process uses one.
    memory_limit : int or str, optional
        Bytes of working memory, results and converted copies together: 2147483648, "2GiB", "500MB". Default: no
        limit. What does not fit is refused with `Error` code out_of_memory.
    device : str, optional
        "cpu", "cuda" (the first) or "cuda:N"; default: where the arrays are. Arrays in host memory are accepted
        everywhere, arrays on a CUDA device only there. `info()["devices"]` lists the devices.
    seed : int, optional
        Of all random numbers; default 0. The same seed gives the same bytes.
    isa : str, optional
        Upper bound of the instruction set, a name of `info()["instruction_sets"]`; default: the best available.
        On a CUDA device the type of the products: "f32" (default), or "tf32" and "bf16" on tensor cores.
        Results are the same.
    progress : None, True or callable, optional
        True shows a line on stderr if the call takes more than a second. A callable is called with (done, total) on the
        calling thread; an exception it raises stops the operation.

    Examples
    --------
    >>> import numpy as np, nearwise
    >>> context = nearwise.Context(threads=2, memory_limit="1GiB")
    >>> base = np.array([[0, 0], [3, 4], [1, 0]], dtype=np.float32)
    >>> nearwise.knn(base[:1], base, k=2, context=context).ids
    array([[0, 2]])
    """

    threads: int | None = None
    memory_limit: int | str | None = None
    device: str | None = None
    seed: int | None = None
    isa: str | None = None
    progress: ProgressArgument = None

    def __post_init__(self) -> None:
        if self.threads is not None:
            _options.threads(self.threads)
        if self.memory_limit is not None:
            _options.byte_count(self.memory_limit, "memory_limit")
        if self.device is not None:
            _options.word(self.device, "device")
        if self.seed is not None:
            _options.seed(self.seed)
        if self.isa is not None:
            _options.word(self.isa, "isa")
        check_progress(self.progress)

    @property
    def memory_bytes(self) -> int:
        """`memory_limit` in bytes; 0: no limit."""
        return 0 if self.memory_limit is None else _options.byte_count(self.memory_limit, "memory_limit")

    def merged(self, other: Context) -> Context:
        """This context with the settings of `other` where it has any."""
        if other is DEFAULT:
            return self
        # Contexts are made once and used for many calls; progress is of one call, and may have no hash.
        if self.progress is None and other.progress is None:
            return _merged(self, other)
        return dataclasses.replace(self, **_given(other))

    def remembered(self) -> Context:
        """What objects keep of the context they were made with: seed and progress belong to one call."""
        return dataclasses.replace(self, seed=None, progress=None)


DEFAULT = Context()
_is_none = functools.partial(operator.is_, None)
_FIELDS = tuple(field.name for field in dataclasses.fields(Context))


def _given(context: Context) -> dict[str, Any]:
    return {name: value for name in _FIELDS if (value := getattr(context, name)) is not None}


@functools.lru_cache(maxsize=256)
def _merged(context: Context, other: Context) -> Context:
    return dataclasses.replace(context, **_given(other))


def resolve(operation: str, context: Any, keywords: dict[str, Any]) -> Context:
    """The context of a call: `context=` and the plain keywords that were given next to it."""
    if context is not None and not isinstance(context, Context):
        raise TypeError(f"{operation}() takes a nearwise.Context as context=, got {type(context).__name__}")
    given = {name: value for name, value in keywords.items() if value is not None}
    if not given:
        return DEFAULT if context is None else context
    if context is None:
        return Context(**given)
    for name, value in given.items():
        other = getattr(context, name)
        if other is not None and other != value:
            raise TypeError(
                f"{operation}() got {name}={value!r}, but context= has {name}={other!r}: give one of the two"
            )
    return dataclasses.replace(context, **given)


class ContextKeyword(TypedDict, total=False):
    """The keywords of operations, for `**settings: Unpack[...]`: this one for all of them."""

    context: Context | None


class CallSettings(ContextKeyword, total=False):
    """Of methods, whose objects remember the rest."""

    progress: ProgressArgument


class SeededCallSettings(CallSettings, total=False):
    seed: int | None


class PlaceSettings(ContextKeyword, total=False):
    device: str | None
    threads: int | None
    memory_limit: int | str | None
    isa: str | None


class Settings(PlaceSettings, total=False):
    progress: ProgressArgument


class SeededSettings(Settings, total=False):
    seed: int | None


def _explicit(function: Callable[..., Any]) -> inspect.Signature:
    """The signature with the keywords of `**settings: Unpack[...]` by their names."""
    signature = inspect.signature(function)
    others = list(signature.parameters.values())
    if not others or others[-1].kind is not inspect.Parameter.VAR_KEYWORD:
        return signature
    last = others.pop()
    (keywords,) = get_args(eval(last.annotation, function.__globals__))
    types = get_type_hints(keywords)
    for name in ("context", "seed", "device", "threads", "memory_limit", "isa", "progress"):
        if name in types:
            others.append(inspect.Parameter(name, last.KEYWORD_ONLY, default=None, annotation=types[name]))
    return signature.replace(parameters=others)


def operation(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorates a public function, constructor or method: its plain keywords of a context arrive as one `context`.

    The function sees a resolved `context`, and no or None for threads, memory_limit, device, seed, isa and progress.
    A method gets its object's context with that of the call merged into it. None for an argument with a default is
    the default. Keywords the function does not have raise a TypeError that names ours, and wrong arguments an `Error`
    that is a ValueError too. `inspect.signature` and `help` show every keyword.
    """
    signature = _explicit(function)
    parameters = signature.parameters
    defaults = {each.name: each.default for each in parameters.values() if each.default not in (None, each.empty)}
    names = list(parameters)
    fields = [name for name in _FIELDS if name in parameters]
    is_method = names[:1] == ["self"]
    by_position = [key for key, each in parameters.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
    takes_context = "context" in parameters
    name = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        given = cast("dict[str, Any]", kwargs)
        if len(args) > len(by_position):
            raise too_many_arguments(name, len(args), by_position, names)
        settings = {}
        if given:
            for key in given:
                if key not in parameters:
                    raise unknown_argument(name, key, parameters, _FIELDS)
            for key in [key for key, value in given.items() if value is None and key in defaults]:
                del given[key]
            if takes_context:
                settings = {key: given.pop(key) for key in fields if key in given}
        if takes_context:
            context = resolve(name, given.get("context"), settings) if given or settings else DEFAULT
            given["context"] = getattr(args[0], "_context", DEFAULT).merged(context) if is_method else context
        if any(map(_is_none, args)):
            named = itertools.zip_longest(args, names[: len(args)])  # too many are Python's to refuse
            args = cast("Any", [defaults.get(key) if value is None else value for value, key in named])
        try:
            return function(*args, **kwargs)
        except (ValueError, OSError, MemoryError) as error:
            own = own_error(error)
            if own is None:
                raise
            raise own.with_traceback(error.__traceback__) from error.__cause__

    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


class Call:
    """The C++ arguments of one call: converts arrays, counts their copies against the limit, and finds the device.

    `run` makes the call. In a `with` statement `report` is the callback for progress, and what was drawn is erased
    at the end.
    """

    report: Callable[[int, int], Any] | None = None
    one_query = False  # whether the queries are one vector: results have no axis of queries

    def __init__(self, operation: str, given: Context | ContextKeyword | None) -> None:
        self.operation = operation
        self.context = (given if given is None or isinstance(given, Context) else given.get("context")) or DEFAULT
        self.copied_bytes = 0
        self._limit = self.context.memory_bytes
        self._device = self.context.device

    def __enter__(self) -> Self:
        progress = self.context.progress
        if progress is True:
            self.report = ProgressBar(self.operation)
        elif callable(progress):
            self.report = progress
        return self

    def __exit__(self, *_: object) -> None:
        if isinstance(self.report, ProgressBar):
            self.report.close()

    def run(
        self, function: Callable[..., _R], ready: dict[str, Any] | None = None, *, on: str | None = None, **others: Any
    ) -> _R:
        """Calls a function of C++; `on`: the device of its object, where the call must run.

        `ready` is passed as it is. The others are checked by their names (`_options.CHECKS`); those that have no check
        are vectors.
        """
        given = {} if ready is None else dict(ready)
        for name, value in others.items():
            check = _options.CHECKS.get(name)
            given[name] = self.rows(value, name) if check is None else check(value, name)
        settings = self.settings if on is None else self.settings_on(on)
        with self:
            return function(**given, settings=settings, progress=self.report)

    def array(self, values: Any, name: str) -> Rows:
        """The argument `name` as a matrix with the element type's name. A 1-D array of queries is one query."""
        given = as_array(values, name)
        if name == "queries" and given.ndim == 1 and given.shape[0] != 0:
            given, self.one_query = one_row(given), True
        rows = rows_of(given, name, self._limit)
        self.copied_bytes += rows.copied_bytes
        self.place(rows.array)
        return rows

    def rows(self, values: Any, name: str) -> _core.Rows:
        """The argument `name` as a matrix of vectors."""
        return self.array(values, name).bound(name)

    def place(self, array: Any) -> None:
        """Runs the call where the array is, unless a device was given or found before."""
        if self._device is None and isinstance(array, DeviceArray):
            self._device = array.device

    @property
    def available_bytes(self) -> int:
        """What converted copies leave of the limit; 0: no limit."""
        if self._limit and self.copied_bytes >= self._limit:
            raise Error(
                f"{self.operation}: the converted copies take {self.copied_bytes} bytes: the memory limit of "
                f"{self._limit} B is too small, they alone need at least {self.copied_bytes + 1} B",
                "out_of_memory",
            )
        return self._limit and self._limit - self.copied_bytes

    def remaining(self) -> Context:
        """The context with what converted copies leave of the limit."""
        return dataclasses.replace(self.context, memory_limit=self.available_bytes or None)

    def settings_on(self, device: str) -> _core.Settings:
        """The settings for an object on `device`, where the call must run."""
        given = self.context.device
        if given is not None and device not in (given, f"{given}:0"):
            raise ValueError(f"{self.operation}: the object is on {device}, got device {given!r}")
        self._device = device
        return self.settings

    @property
    def settings(self) -> _core.Settings:
        """For C++. Take it after the arrays: they decide on the device and on what is left of the limit."""
        return _core.Settings(
            device=self._device or "cpu",
            threads=self.context.threads or 0,
            memory_limit=self.available_bytes,
            isa=self.context.isa or "",
            seed=self.context.seed or 0,
        )
