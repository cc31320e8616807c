"""What a check has found: a JSON of everything, and a text. No names of hosts or users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from nearwise._gpu_check.case import Case

# By outcome, the most telling first: exit code, and the words of the summary.
RESULTS = {
    "wrong": (1, "wrong bytes: answers of the device differ from the CPU's"),
    "failed": (70, "a step failed with an error, or an operation has not run"),
    "out_of_memory": (71, "out of memory"),
    "timed_out": (124, "a step ran out of time"),
    "no_device": (69, "no device can be used"),
    "equal": (0, "every answer has the CPU's bytes"),
}

_LEFT_OUT = (
    "rate of the PCIe bus: the library has no copy that measures the bus alone; copy_to_device is the rate at which "
    "vectors get to the device",
)


def operation_rows(
    operations: Sequence[str], cases: Iterable[Case], results: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """A row for every operation: how often it ran in the cases that are there for it, and their worst outcome."""
    wanted = {case.name: case.operations for case in cases}
    rows = []
    for operation in operations:
        found = [result for result in results if operation in wanted.get(result["name"], ())]
        calls: Counter[str] = Counter()
        for result in found:
            calls[result["name"]] += result.get("ran", {}).get(operation, 0)
        outcomes = {result["outcome"] for result in found}
        if outcomes <= {"equal"} and not calls.total():
            outcomes = {"not_run"}
        worst = next(each for each in (*RESULTS, "not_run") if each in outcomes)
        rows.append({"operation": operation, "outcome": worst, "calls": dict(calls)})
    return rows


def result_of(report: dict[str, Any], is_partial: bool) -> str:
    """The key of RESULTS. `is_partial`: only some cases were asked for."""
    if report["environment"].get("problem"):
        return "no_device"
    steps = (report["environment"], *report["cases"], *report["timings"], *report["rivals"])
    outcomes = {each["outcome"] for each in steps}
    if not is_partial and any(row["outcome"] == "not_run" for row in report["operations"]):
        outcomes.add("failed")
    return next((name for name in RESULTS if name in outcomes), "equal")


def without_home(value: Any) -> Any:
    """Texts of errors may name files: not the folder of a user."""
    if isinstance(value, str):
        return value.replace(str(Path.home()), "~")
    if isinstance(value, dict):
        return {key: without_home(each) for key, each in value.items()}
    return [without_home(each) for each in value] if isinstance(value, list) else value


def assemble(fields: dict[str, Any], is_partial: bool) -> dict[str, Any]:
    result = result_of(fields, is_partial)
    code, words = RESULTS[result]
    cleaned: dict[str, Any] = without_home(fields)
    return {"format": 1, "result": result, "exit_code": code, "summary": words, **cleaned, "left_out": list(_LEFT_OUT)}


def _release(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}" if version else "none"


def _bytes(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"


def _device_lines(environment: dict[str, Any]) -> list[str]:
    driver, build = (_release(environment.get(f"{part}_version", 0)) for part in ("driver", "runtime"))
    problem = environment.get("problem") or environment.get("message")
    lines = [f"CUDA        {problem or f'driver {driver}, backend {build}'}"]
    for device in environment.get("devices", []):
        ptx = f", PTX of compute_{device['ptx_version']}" if device["ptx_version"] else ""
        code = f"code for sm_{device['code_version']}{ptx}" if device["code_version"] else "no code in this build"
        lines.append(
            f"{device['device']:<11} {device['name']}, sm_{device['compute_capability']}, "
            f"{device['multiprocessors']} multiprocessors, {_bytes(device['free_bytes'])} of "
            f"{_bytes(device['memory_bytes'])} free, {code}"
        )
    return lines


def _problem_of(result: dict[str, Any]) -> str:
    if "message" in result:
        return f"  {result['message']}"
    if "difference" in result:
        found = result["difference"]
        where = f" at {found['first']}, {found['elements']} of {found['of']} differ" if "first" in found else ""
        return f"  {found['answer']}{where}: {found['cpu']} on the CPU, {found['device']} on the device"
    return f"  {result['seconds']:.2f} s, CPU {result['cpu_seconds']:.2f} s" if "cpu_seconds" in result else ""


def _timing_line(timing: dict[str, Any]) -> str:
    if timing["outcome"] != "done":
        return f"  {timing['name']:<18} {timing['outcome']}{_problem_of(timing)}"
    line = f"  {timing['name']:<18} {timing['value']:.4g} {timing['unit']}"
    if timing["ratio"] is not None:
        line += f", estimate {timing['estimate']:.4g}, ratio {timing['ratio']:.2f}"
    return line + f"  ({timing['of']}{'; ' + timing['note'] if timing['note'] else ''})"


def _rival_line(rival: dict[str, Any]) -> str:
    if "left_out" in rival:
        return f"  {rival['name']:<18} left out: {rival['left_out']}"
    if rival["outcome"] != "done":
        return f"  {rival['name']:<18} {rival['outcome']}{_problem_of(rival)}"
    return f"  {rival['name']:<18} {rival['value']:.4g} {rival['unit']}  ({rival['version']}; {rival['of']})"


def text_of(report: dict[str, Any]) -> str:
    """A summary for reading."""
    lines = [f"nearwise {report['nearwise']}, gpu-check --{report['shapes']} on {report['device']}"]
    lines += _device_lines(report["environment"])
    if report["cases"]:
        lines.append("cases")
    for case in report["cases"]:
        lines.append(f"  {case['name']:<18} {case['shapes']:<6} {case['outcome']}{_problem_of(case)}")
    rows = report["operations"]
    if rows:
        equal = sum(row["outcome"] == "equal" for row in rows)
        lines.append(f"operations  {equal} of {len(rows)} give the CPU's bytes")
    lines += [f"  {row['operation']:<24} {row['outcome']}" for row in rows if row["outcome"] != "equal"]
    if report["timings"]:
        lines.append("timings")
    lines += [_timing_line(timing) for timing in report["timings"]]
    if report["rivals"]:
        lines.append("other libraries, exact search")
    lines += [_rival_line(rival) for rival in report["rivals"]]
    lines.append(f"result      {report['summary']} (exit code {report['exit_code']})")
    return "\n".join(lines) + "\n"
