"""Tables of files that are no study's archive."""

import json

import pytest

from overtone.errors import DataError
from studies.page import file_tables
from studies.page.blocks import PageError
from studies.page.render import render_page

GAPS = {"mass": {"deviation": 2.0, "balance": 0.25},
        "momentum": {"deviation": 0.05, "balance": 0.004}}  # fmt: skip
RESIDUALS = {
    "truth": {"spectral": {"mass": 0.01, "momentum": 0.002}},
    "models": {
        "csm:4-8-16": {"spectral": GAPS, "divergent": 0.2},
        "fixed16:16": {"spectral": GAPS, "divergent": 0.3},
    },
}
COST = {
    "rows": [
        {"dataset": "a", "size": "7m", "time": "fold", "frames": 8,
         "tokens": {"4": 4096, "16": 256}, "flops": {"4": 170e9, "16": 5e9}, "training_flops": 3e15}
    ]
}  # fmt: skip


def test_the_papers_numbers_stand_beside_ours(cells):
    header, *rows = cells(file_tables.residual_table(RESIDUALS))
    assert header == ["law", "model", "schedule", "the paper", "spectral", "balance",
                      "divergent part of the error"]  # fmt: skip
    assert rows[0] == ["mass", "csm", "`4-8-16`", "7.6 %", "200 %", "25 %", "20 %"]
    assert rows[1][3] == "–"
    assert rows[2] == ["momentum", "csm", "`4-8-16`", "0.5 %", "5.0 %", "0.4 %", "–"]
    assert cells(file_tables.truth_table(RESIDUALS))[1:] == [
        ["mass", "1.0 %"], ["momentum", "0.2 %"]
    ]  # fmt: skip


def test_costs_have_tokens_and_gflop(cells):
    header, row = cells(file_tables.cost_table(COST))
    assert header[3:] == ["patch 4", "patch 16", "training, PFLOP"]
    assert row == ["a", "`7m`", "8, fold", "4,096; 170", "256; 5.00", "3.00"]


def test_steps_of_one_kind_share_a_row(cells):
    def run(schedule, mode="train", malloc="default"):
        return {"time": "fold", "schedule": schedule, "mode": mode, "malloc": malloc,
                "flops": 2e9, "cpu_seconds": 0.5, "peak_memory_bytes": 3e8}  # fmt: skip

    content = {"runs": [run("4"), run("16"), run("4", malloc="other"), run("4", mode="rollout")]}
    header, row = cells(file_tables.step_table(content))
    assert header == ["call", "frames", "patch 4", "patch 16"]
    assert row == ["training step", "fold", *["2.00; 0.50 s; 0.30 GB"] * 2]


def test_a_page_says_what_was_not_run_and_what_cant_be_read(tmp_path):
    text = "<!-- table: residuals -->\n<!-- end -->\n"
    assert "not run yet: `python -m studies residuals`" in render_page(text, tmp_path).text
    (tmp_path / "residuals.json").write_text(json.dumps(RESIDUALS))
    assert "7.6 %" in render_page(text, tmp_path).text
    with pytest.raises(PageError, match="takes no names"):
        render_page(text.replace("residuals", "residuals some"), tmp_path)
    (tmp_path / "residuals.json").write_text("{}")
    with pytest.raises(PageError, match="can't be read as what"):
        render_page(text, tmp_path)
    with pytest.raises(DataError, match="can't be read"):
        file_tables.render("residuals", (), tmp_path)
