import pytest

import kernel_paths
import kernel_report

SCAN = """
	code for sm_90
		Function : scan
        /*0000*/                   LDG.E R4, desc[UR6][R2.64] ;
        /*0010*/                   FSETP.GE P0, R4, R5 ;
        /*0020*/                   VOTE.ANY P1, P0 ;
        /*0030*/               @P1 BRA 0x80 ;
        /*0040*/                   IADD3 R2, R2, 0x80, RZ ;
        /*0050*/               @P2 BRA 0x0 ;
        /*0060*/                   EXIT ;
        /*0070*/                   NOP ;
        /*0080*/                   SHFL.BFLY PT, R5, R4, 0x1, 0x1f ;
        /*0090*/                   BRA 0x0 ;
"""


def kernel(text):
    return kernel_report.Kernel("scan", 90, instructions=kernel_report.read_instructions(text)["scan", 90])


def test_the_shortest_round_passes_its_loads_and_no_shuffle():
    assert sorted(kernel_paths.shortest_round(kernel(SCAN), 1)) == [0, 1, 2, 3, 4, 5]
    assert len(kernel_paths.shortest_round(kernel(SCAN), 3)) == 18  # three times around


def test_a_predicated_load_is_none():
    assert kernel_paths.shortest_round(kernel(SCAN.replace("    LDG.E R4", "@P3 LDG.E R4")), 1) is None


def test_a_kernel_without_a_vote_has_no_round():
    assert kernel_paths.shortest_round(kernel(SCAN.replace("VOTE.ANY", "VOTEU.ALL")), 1) is None
    assert kernel_paths.scan_paths(kernel(SCAN.replace("VOTE.ANY", "VOTEU.ALL")), 1) is None


# A row in rounds; candidates are queued, one pass after the other, and merged where the queue is full.
SELECTION = """
	code for sm_90
		Function : scan
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/               @P3 BRA 0x50 ;
        /*0020*/                   LDG.E R4, desc[UR6][R2.64] ;
        /*0030*/                   FSETP.GE P0, R4, R5 ;
        /*0040*/                   BRA 0x60 ;
        /*0050*/              @!P4 LDG.E R4, desc[UR6][R2.64] ;
        /*0060*/                   BRA.DIV UR4, 0x160 ;
        /*0070*/                   VOTE.ANY P1, P0 ;
        /*0080*/              @!P1 BRA 0x120 ;
        /*0090*/                   SEL R6, RZ, 0x1, !P0 ;
        /*00a0*/               @P5 BRA 0xc0 ;
        /*00b0*/                   STS.64 [R7], R4 ;
        /*00c0*/                   VOTE.ANY R8, PT, P6 ;
        /*00d0*/              @!P2 BRA 0x110 ;
        /*00e0*/                   SHFL.BFLY PT, R5, R4, 0x1, 0x1f ;
        /*00f0*/                   SHFL.BFLY PT, R6, R4, 0x2, 0x1f ;
        /*0100*/                   SEL R5, R5, R6, P1 ;
        /*0110*/               @P6 BRA 0xa0 ;
        /*0120*/               @P2 BRA 0x10 ;
        /*0130*/                   STG.E [R2], R5 ;
        /*0140*/                   EXIT ;
        /*0150*/                   BRA 0x150;
        /*0160*/                   WARPSYNC.COLLECTIVE R125, 0x180 ;
        /*0170*/                   VOTE.ANY P1, P0 ;
        /*0180*/                   BRA 0x80 ;
"""


def test_the_ways_of_a_selection():
    paths = kernel_paths.scan_paths(kernel(SELECTION), 1)
    assert sorted(paths.fast_round) == [1, 2, 3, 4, 6, 7, 8, 18]
    assert sorted(paths.candidate_round) == [1, 2, 3, 4, 6, 7, 8, 9, 18]
    assert sorted(paths.insertion) == [10, 11, 12, 13, 17]  # both sides of the branch: lanes go either way
    assert sorted(paths.merge) == [14, 15, 16]
    assert sorted(paths.once) == [0, 19, 20]
    assert sorted(paths.elsewhere) == [21, 22, 23, 24]


def test_a_call_under_a_condition_leaves_a_loop():
    leaving = SELECTION.replace("@P6 BRA 0xa0", "@!P6 CALL.REL.NOINC 0x130").replace("@P2 BRA 0x10 ;", "BRA 0xa0 ;")
    leaving = leaving.replace("STG.E [R2], R5", "@P2 BRA 0x10 ").replace("@!P1 BRA 0x120", "@!P1 BRA 0x130")
    paths = kernel_paths.scan_paths(kernel(leaving), 1)
    assert sorted(paths.fast_round) == [1, 2, 3, 4, 6, 7, 8, 19]
    assert sorted(paths.insertion) == [10, 11, 12, 13, 17, 18]


def test_every_instruction_is_on_one_way():
    found = kernel(SELECTION)
    paths = kernel_paths.scan_paths(found, 1)
    rounds = paths.scan - paths.insertion - paths.merge
    parts = [paths.once, rounds, paths.insertion, paths.merge, paths.elsewhere]
    assert sum(map(len, parts)) == len(found.instructions) == len(set().union(*parts))
    assert set(paths.fast_round) <= rounds and set(paths.candidate_round) <= rounds


@pytest.mark.parametrize(("text", "instead"), [("SHFL.BFLY PT, R", "MOV R"), ("@P6 BRA 0xa0", "NOP")])
def test_a_kernel_without_merges_or_passes_has_no_ways(text, instead):
    assert kernel_paths.scan_paths(kernel(SELECTION.replace(text, instead)), 1) is None
