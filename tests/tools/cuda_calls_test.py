import json

import cuda_calls

COUNTS = {name: 0 for name in cuda_calls.COLUMNS} | {"launches": 1234, "synchronisations": 3}
PAGE = f"before\n\n{cuda_calls.BEGIN}{cuda_calls.END}\n\nafter\n"


def program(path, *operations):
    """A program that counts these operations."""
    lines = [json.dumps({"operation": name, "shape": "8 of 9"} | COUNTS | changed) for name, changed in operations]
    path.write_text("#!/bin/sh\ncat <<'LINES'\n" + "".join(f"{line}\n" for line in lines) + "LINES\n")
    path.chmod(0o755)
    return path


def test_a_table_that_was_written_is_found_right(tool, tmp_path):
    page = tmp_path / "gpu.md"
    page.write_text(PAGE)
    counter = program(tmp_path / "counter", ("knn", {}), ("select_k", {}))
    assert tool("cuda_calls.py", counter, "--page", page).returncode == 1
    assert tool("cuda_calls.py", counter, "--page", page, "--write").returncode == 0
    text = page.read_text()
    assert text.startswith("before\n\n") and text.endswith("\n\nafter\n")
    assert "| `knn`, 8 of 9 | 1,234 | 3 | 0 |" in text
    assert tool("cuda_calls.py", counter, "--page", page).returncode == 0


def test_another_count_order_or_number_of_operations_is_refused(tool, tmp_path):
    page = tmp_path / "gpu.md"
    page.write_text(PAGE)
    tool("cuda_calls.py", program(tmp_path / "counter", ("knn", {}), ("select_k", {})), "--page", page, "--write")
    one_more = tool("cuda_calls.py", program(tmp_path / "more", ("knn", {"launches": 1235}), ("select_k", {})),
                    "--page", page)
    assert one_more.returncode == 1 and "| `knn`, 8 of 9 | 1,235 |" in one_more.stderr
    for other in ([("select_k", {}), ("knn", {})], [("knn", {})]):
        assert tool("cuda_calls.py", program(tmp_path / "other", *other), "--page", page).returncode == 1


def test_a_page_without_a_place_for_the_table_is_refused(tool, tmp_path):
    page = tmp_path / "gpu.md"
    page.write_text("before\n")
    found = tool("cuda_calls.py", program(tmp_path / "counter", ("knn", {})), "--page", page, "--write")
    assert found.returncode == 1 and "has no table" in found.stderr
    assert page.read_text() == "before\n"


def test_the_page_of_the_repository_has_one():
    assert cuda_calls.replaced(cuda_calls.PAGE.read_text(), "") != ""
