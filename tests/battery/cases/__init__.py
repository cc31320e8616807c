"""The cases by subject. A case is a function of an adapter that returns a Finding; its docstring says what it does."""

from cases import additions, arrays, construction, damage, faults, files, memory, processes, queries

SUBJECTS = (queries, arrays, additions, construction, files, damage, faults, memory, processes)
CASES = tuple(case for subject in SUBJECTS for case in subject.CASES)
