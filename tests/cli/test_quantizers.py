"""nearwise quantizer train, encode and decode: accuracy of the codes, files, and messages."""
import json
import signal
import time

import formats
import numpy as np
import pytest

ROWS, DIM = 600, 12


@pytest.fixture
def base(tmp_path):
    rows = np.random.default_rng(5).standard_normal((ROWS, DIM), dtype=np.float32)
    formats.write_vectors(tmp_path / "base.fbin", rows)
    return rows


def error_of(rows, decoded):
    return ((rows.astype(np.float64) - decoded) ** 2).sum(axis=1).mean()


TRAIN = {"lsq": ["--code-bytes", 4, "--rounds", 3, "--iterations", 2],
         "opq": ["--code-bytes", 3, "--rounds", 2],
         "pq": ["--code-bytes", 3, "--iterations", 5]}


@pytest.mark.parametrize("codec", TRAIN)
def test_there_and_back(nearwise, base, tmp_path, codec):
    trained = nearwise("quantizer", "train", "base.fbin", "--kind", codec, *TRAIN[codec], "-o", "words.nw", "--json").json
    code_bytes = TRAIN[codec][1]
    assert (trained["kind"], trained["dim"], trained["code_bytes"]) == (codec, DIM, code_bytes)
    told = nearwise("quantizer", "encode", "words.nw", "base.fbin", "-o", "codes.u8bin", "--json").json
    codes = formats.read_vectors(tmp_path / "codes.u8bin")
    assert codes.shape == (ROWS, code_bytes) and told["rows"] == ROWS
    nearwise("quantizer", "decode", "words.nw", "codes.u8bin", "-o", "rows.fbin")
    decoded = formats.read_vectors(tmp_path / "rows.fbin")
    np.testing.assert_allclose(told["error"], error_of(base, decoded), rtol=1e-6)
    # Three bytes of codewords for 12 elements of variance 1: far below what the mean alone leaves.
    assert told["error"] < 0.6 * error_of(base, base.mean(axis=0))
    assert "ok" in nearwise("verify", "words.nw").out


def test_the_default_kind_is_pq(nearwise, base, tmp_path):
    time = {"SOURCE_DATE_EPOCH": "1"}
    told = nearwise("quantizer", "train", "base.fbin", "-o", "words.nw", "--json", env=time).json
    assert (told["kind"], told["code_bytes"]) == ("pq", 8)
    nearwise("quantizer", "train", "base.fbin", "--kind", "pq", "-o", "named.nw", env=time)
    for name in ("words", "named"):
        nearwise("quantizer", "encode", name + ".nw", "base.fbin", "-o", name + ".u8bin")
    assert (tmp_path / "words.u8bin").read_bytes() == (tmp_path / "named.u8bin").read_bytes()
    assert "--kind pq|opq|lsq=pq " in nearwise("quantizer", "train", "--help").out


def test_lsq_loses_less_than_product_codes(nearwise, base):
    errors = {}
    for codec, options in TRAIN.items():
        nearwise("quantizer", "train", "base.fbin", "--kind", codec, *options, "-o", "words.nw")
        errors[codec] = nearwise("quantizer", "encode", "words.nw", "base.fbin", "-o", "codes.npy", "--json").json["error"]
    assert errors["lsq"] < errors["pq"] and errors["opq"] <= errors["pq"] * 1.001


@pytest.mark.parametrize("suffix", [".u8bin", ".bvecs", ".npy"])
def test_formats_hold_the_same_codes(nearwise, base, tmp_path, suffix):
    nearwise("quantizer", "train", "base.fbin", "--kind", "pq", "--code-bytes", 3, "-o", "words.nw")
    for name in ("plain.u8bin", "codes" + suffix):
        nearwise("quantizer", "encode", "words.nw", "base.fbin", "-o", name)
    plain = formats.read_vectors(tmp_path / "plain.u8bin")
    np.testing.assert_array_equal(formats.read_vectors(tmp_path / ("codes" + suffix)), plain)
    for name in ("plain.u8bin", "codes" + suffix):
        nearwise("quantizer", "decode", "words.nw", name, "-o", name + ".npy")
    np.testing.assert_array_equal(np.load(tmp_path / ("codes" + suffix + ".npy")), np.load(tmp_path / "plain.u8bin.npy"))


def test_threads_and_seed(nearwise, base, tmp_path):
    def codes(*options):
        nearwise("quantizer", "train", "base.fbin", "--kind", "lsq", *TRAIN["lsq"], *options, "-o", "words.nw", env={"SOURCE_DATE_EPOCH": "1"})
        nearwise("quantizer", "encode", "words.nw", "base.fbin", *options, "-o", "codes.u8bin")
        return (tmp_path / "codes.u8bin").read_bytes()

    assert codes("--threads", 1) == codes("--threads", 2) != codes("--seed", 7)


def test_more_iterations_lose_less(nearwise, base):
    nearwise("quantizer", "train", "base.fbin", "--kind", "lsq", *TRAIN["lsq"], "-o", "words.nw")
    few, many = (nearwise("quantizer", "encode", "words.nw", "base.fbin", "--iterations", count, "-o", "codes.u8bin", "--json").json
                 for count in (1, 24))
    assert many["error"] < few["error"]


def test_what_a_file_says_of_itself(nearwise, base):
    nearwise("quantizer", "train", "base.fbin", "--kind", "lsq", *TRAIN["lsq"], "-o", "words.nw")
    file = nearwise("info", "words.nw", "--json").json["files"][0]
    assert (file["content"], file["codebooks"], file["dim"]) == ("additive_quantizer", 3, DIM)
    assert file["metadata"]["provenance.base"].startswith("base.fbin, ")


@pytest.mark.parametrize(
    "command, code, words",
    [
        (["quantizer", "train", "base.fbin", "--kind", "abacus", "-o", "words.nw"], 2, "abacus"),
        (["quantizer", "train", "base.fbin", "--kind", "lsq", "--code-bytes", 1, "-o", "words.nw"], 2, "must be 2 to 33"),
        (["quantizer", "train", "base.fbin", "--kind", "pq", "--code-bytes", 13, "-o", "words.nw"], 2, "makes 13 sub-quantizers, 'base.fbin' has only 12 dimensions"),
        (["quantizer", "train", "base.fbin", "--kind", "pq", "--rounds", 2, "-o", "words.nw"], 2, "--kind lsq and opq"),
        (["quantizer", "train", "base.fbin", "--rounds", 2, "-o", "words.nw"], 2, "--kind lsq and opq, got --kind pq"),
        (["quantizer", "train", "base.fbin", "--kind", "lsq", "--bits", 4, "-o", "words.nw"], 2, "--kind pq and opq"),
        (["quantizer", "train", "few.fbin", "-o", "words.nw"], 2, "at least 256 training vectors"),
        (["quantizer", "train", "base.fbin", "-o", "words.fbin"], 2, "cannot hold a quantizer"),
        (["quantizer", "train", "absent.fbin", "-o", "words.nw"], 66, "absent.fbin"),
        (["quantizer", "encode", "made.nw", "few.fbin", "-o", "codes.fbin"], 2, "codes.fbin"),
        (["quantizer", "encode", "made.nw", "narrow.fbin", "-o", "codes.u8bin"], 2, "the 12 dimensions of the quantizer"),
        (["quantizer", "encode", "few.fbin", "few.fbin", "-o", "codes.u8bin"], 2, "cannot hold a quantizer"),
        (["quantizer", "encode", "made.nw", "nan.fbin", "-o", "codes.u8bin"], 65, "row 3"),
        (["quantizer", "decode", "made.nw", "narrow.fbin", "-o", "rows.fbin"], 2, "codes of 3 bytes"),
        (["quantizer", "decode", "made.nw", "few.fbin", "-o", "rows.u8bin"], 2, "rows.u8bin"),
    ],
)
def test_what_is_refused(nearwise, base, tmp_path, command, code, words):
    formats.write_vectors(tmp_path / "few.fbin", base[:20])
    formats.write_vectors(tmp_path / "narrow.fbin", base[:20, :5])
    broken = base[:20].copy()
    broken[3, 1] = np.nan
    formats.write_vectors(tmp_path / "nan.fbin", broken)
    nearwise("quantizer", "train", "base.fbin", "--kind", "pq", "--code-bytes", 3, "-o", "made.nw")
    before = sorted(path.name for path in tmp_path.iterdir())
    error = json.loads(nearwise(*command, "--json", expect=code).err)["error"]
    assert words in error["message"]
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_ctrl_c_leaves_nothing(start, tmp_path):
    rows = np.random.default_rng(1).standard_normal((20_000, 64), dtype=np.float32)
    formats.write_vectors(tmp_path / "base.fbin", rows)
    process = start("quantizer", "train", "base.fbin", "--kind", "lsq", "--rounds", "10000", "--threads", "1", "-o", "words.nw")
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    assert [path.name for path in tmp_path.iterdir()] == ["base.fbin"]
