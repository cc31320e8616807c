"""The ways through a kernel's instructions: how long each is.

A scan for the best values (select_rows) is two loops. A round of the outer one looks at some values of every lane and
votes; where a value may be among the best, passes of the inner loop queue candidates, vote, and where a queue is full
sort and merge, which takes shuffles. Loops are found as strongly connected parts of the graph of instructions:

  scan   the part with the first vote
  inner  what is still a loop without that vote
  pass   what is still a loop in there without shuffles; the rest of the inner loop is the merge

Code that only a diverged warp comes to (behind BRA.DIV) is on no way: our warps vote and shuffle with all lanes.
"""
import heapq
import re
from typing import NamedTuple


def successors(kernel):
    """For every instruction the positions of those that may come next; calls come back, divergent branches go on.

    A call under a condition is how the compiler leaves loops on sm_75 and sm_80: it does not come back.
    """
    position = {instruction.address: i for i, instruction in enumerate(kernel.instructions)}
    following = []
    for i, instruction in enumerate(kernel.instructions):
        conditional = instruction.text.startswith("@")
        nexts = [i + 1]
        if instruction.name in ("EXIT", "RET") and not conditional:
            nexts = []
        elif instruction.name.startswith("BRA") and not instruction.name.startswith("BRA.DIV"):
            target = re.search(r"\b(0x[0-9a-f]+)$", instruction.text)
            # A branch by a uniform predicate names it behind the instruction, not in front.
            goes_on = conditional or ".U" in instruction.name
            nexts = ([position[int(target[1], 16)]] if target else []) + ([i + 1] if goes_on else [])
        elif instruction.name.startswith("CALL.REL") and conditional:
            nexts.append(position[int(re.search(r"\b(0x[0-9a-f]+)$", instruction.text)[1], 16)])
        following.append([j for j in nexts if j < len(kernel.instructions)])
    return following


def first_vote(kernel):
    return next((i for i, instruction in enumerate(kernel.instructions) if instruction.name.startswith("VOTE.ANY")),
                None)


def shortest_round(kernel, loads, through=None):
    """The positions of the shortest way from the first vote of a warp back to it, past `loads` loads and no shuffle.

    That is a round of a scan in which nothing is chosen: what most of the data costs. With `through`, a set of
    positions: a way that leads through one of them; those themselves are not counted and not returned. None if there is
    no such round.
    """
    instructions, following = kernel.instructions, successors(kernel)
    start = first_vote(kernel)
    if start is None:
        return None
    apart = through or frozenset()
    queue, seen = [(0, start, 0, not through, ())], set()
    while queue:
        length, i, loaded, passed, way = heapq.heappop(queue)
        if i == start and length and loaded >= loads and passed:
            return list(unrolled(way))
        if (i, loaded, passed) in seen or instructions[i].name.startswith("SHFL"):
            continue
        seen.add((i, loaded, passed))
        counted = i not in apart
        for j in following[i]:
            load = instructions[j].name.startswith("LDG") and not instructions[j].text.startswith("@") and j not in apart
            heapq.heappush(queue, (length + counted, j, min(loads, loaded + load), passed or j in apart,
                                   (way, i) if counted else way))
    return None


def unrolled(way):
    """The positions of a way that was kept as nested pairs, so that ways share their beginnings."""
    while way:
        way, last = way
        yield last


def loop_around(following, inside, start):
    """The positions of `inside` that lie on a loop through `start` and do not leave `inside`."""
    def reached(edges):
        found, waiting = set(), [start]
        while waiting:
            for j in edges(waiting.pop()):
                if j in inside and j not in found:
                    found.add(j)
                    waiting.append(j)
        return found

    preceding = {}
    for i, nexts in enumerate(following):
        for j in nexts:
            preceding.setdefault(j, []).append(i)
    return reached(lambda i: following[i]) & reached(lambda i: preceding.get(i, ()))


class ScanPaths(NamedTuple):
    """Positions of instructions. Together with `elsewhere` every instruction of the kernel once, but for rounds: they
    share most of theirs with each other."""

    fast_round: list  # nothing may be chosen
    candidate_round: list  # something may: without what follows
    insertion: set  # one pass of the inner loop, all of it: lanes go different ways
    merge: set
    once: set  # before and after the loops
    scan: set  # the outer loop and all that is in it
    elsewhere: set  # for diverged warps; padding

    def instructions(self, kernel, way):
        return [kernel.instructions[i] for i in getattr(self, way)]


def scan_paths(kernel, loads):
    """The ways of a selection that loads so many values in a round; None for a kernel of another shape."""
    start = first_vote(kernel)
    if start is None:
        return None
    following = successors(kernel)
    everything = set(range(len(kernel.instructions)))
    scan = loop_around(following, everything, start)
    votes = [i for i in sorted(scan) if kernel.instructions[i].name.startswith("VOTE.ANY") and i != start]
    inner = loop_around(following, scan - {start}, votes[0]) if votes else set()
    shuffles = {i for i in inner if kernel.instructions[i].name.startswith("SHFL")}
    if not shuffles:
        return None
    insertion = loop_around(following, inner - shuffles, votes[0])
    reached, waiting = {0}, [0]
    while waiting:
        for j in set(following[waiting.pop()]) - reached:
            reached.add(j)
            waiting.append(j)
    fast, slow = shortest_round(kernel, loads), shortest_round(kernel, loads, inner)
    if not insertion or fast is None or slow is None:
        return None
    return ScanPaths(fast, slow, insertion, inner - insertion, reached - scan, scan, everything - reached)
