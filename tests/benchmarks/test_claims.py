"""docs/claims.md: every figure computed anew from the printed ones, and the page as its script writes it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import claim as words
import claims as script
import ivanov
import keras_benchmark
import pytest
from forms.work import flops
from msgspec.structs import replace

from roofline import published
from roofline.published.implied import implied

CLAIMS = {name: {claim.id: claim for claim in words.claims(name)} for name in words.FIGURES}

#: ms per step, in the order of the page: native eager and compiled, Keras 2, Keras 3 on TensorFlow, JAX, PyTorch.
TABLE = {
    "SAM fit": (1305.52, 1222.85, 386.93, 355.25, 361.69, 1388.87),
    "SAM predict": (1573.48, 1463.85, 1859.27, 438.50, 376.34, 1720.96),
    "SD fit": (481.48, 385.58, 1023.21, 392.24, 391.21, 823.44),
    "SD predict": (783.43, 770.05, 649.71, 616.04, 627.27, 1337.17),
    "BERT fit": (693.37, 202.43, 486.00, 214.49, 222.37, 808.68),
    "BERT predict": (1849.80, 733.16, 470.12, 466.01, 418.72, 1865.98),
    "Gemma fit": (253.95, 211.73, None, 232.52, 273.67, 525.15),
    "Gemma generate": (2745.18, 2735.18, None, 1134.91, 1128.21, 7952.67),
    "Gemma generate, 1": (1721.03, 1669.01, None, 758.57, 703.46, 7649.40),
    "Mistral fit": (217.56, 176.04, None, 185.92, 213.22, 452.12),
    "Mistral generate": (1618.43, 1640.41, None, 966.06, 957.25, 10932.59),
    "Mistral generate, 1": (1610.84, 1577.84, None, 743.28, 679.30, 11054.67),
}
EAGER, COMPILED, KERAS2 = 0, 1, 2
TEN = [row for row in TABLE if not row.endswith(", 1")]
BEST = {row: min(times[3:]) for row, times in TABLE.items()}
FASTER = {
    column: {row: times[column] / BEST[row] for row, times in TABLE.items() if times[column]}
    for column in (EAGER, COMPILED, KERAS2)
}
#: Products of a forward pass of BERT-base over one sequence of 512 [FLOP].
SEQUENCE = 512 * 12 * (8 * 768**2 + 4 * 768 * 3072 + 4 * 512 * 768) + 2 * 768**2 + 2 * 768 * 2


def figures(name: str, claim: str) -> dict[str, float | str]:
    return dict(CLAIMS[name][claim].figures)


def keras(claim: str) -> dict[str, float | str]:
    return figures("keras-benchmark", claim)


def verdicts(name: str) -> dict[str, str]:
    return {claim.id: claim.verdict for claim in CLAIMS[name].values()}


def test_which_backend_is_first() -> None:
    first = [times.index(min(times[3:])) - 3 for times in TABLE.values()]
    assert keras("no-best-backend") == {"tensorflow": first.count(0), "jax": first.count(1), "pytorch": first.count(2)}
    overall = sum(min(time for time in times if time) == times[4] for times in TABLE.values())
    assert (first.count(1), overall) == (7, 6)
    assert keras("jax-first") == pytest.approx(
        {
            "backends": 7,
            "all_columns": 6,
            "first_version": 7,  # without compiled: SAM predict, SD fit, BERT predict and the four that generate
            "sd_fit": 392.24 / 391.21 - 1,
        }
    )


def test_against_native_pytorch() -> None:
    gains = FASTER[EAGER]
    assert keras("faster-than-pytorch") == pytest.approx({"rows": 12, "faster": 12, "least": 253.95 / 232.52})
    assert min(gains.values()) == gains["Gemma fit"] > 1
    floor = 256 * SEQUENCE / 19.5e12
    assert (sum(gains[row] > 2 for row in TEN), sum(gain > 2 for gain in gains.values())) == (5, 7)
    assert keras("twice-pytorch") == pytest.approx(
        {
            "of_ten": 5,
            "of_twelve": 7,
            "most": 1849.80 / 418.72,  # +342 %, called 340
            "jax": "59.1 TFLOP/s (38 % of TF32)",  # 256 sequences in 418.72 ms, of 156
            "native": "13.4 TFLOP/s (69 % of IEEE FP32)",  # in 1849.80 ms, of 19.5
            "floor": floor,
            "floor_of_jax": floor / 0.41872,
            "gain": 1849.80 / 418.72,
        }
    )
    assert [f"{256 * SEQUENCE / time / 1e12:.1f}" for time in (0.41872, 1.8498)] == ["59.1", "13.4"]


def test_against_compiled_pytorch() -> None:
    gains = FASTER[COMPILED]
    slower = {row: 1 - gains[row] for row in TEN if gains[row] < 1}
    found = keras("slower-than-compiled")
    assert found["rows"] == len(slower) == 4
    assert {task: found[task.lower().replace(" ", "_")] for task in slower} == pytest.approx(slower)
    for task, form in (("Gemma fit", "gemma"), ("Mistral fit", "mistral")):
        native, adapted = (flops(f"{form}-fit{more}", "8") for more in ("", "-keras"))
        assert found[f"{form}_fit_work"] == pytest.approx(adapted / native - 1)
        assert found[f"{form}_fit_rate"] == pytest.approx(1 - (adapted / BEST[task]) / (native / TABLE[task][COMPILED]))
    assert sorted(round(100 * less) for less in slower.values()) == [1, 5, 6, 9]
    found = keras("faster-than-compiled")
    assert found["of_ten"] == sum(gains[row] > 1.5 for row in TEN) == 5
    assert found["of_twelve"] == sum(gain > 1.5 for gain in gains.values()) == 7
    assert found["most"] == pytest.approx(1463.85 / 376.34)  # +289 %, called 290
    assert found["apart"] == pytest.approx(1721.03 / 1669.01 - 1)  # Gemma, one prompt: 3.1 %


def test_small_batches_versions_and_whose_code_it_is() -> None:
    """The weights that Mistral reads once per token, and the widest gaps, which are those of float32 matmuls."""
    weights = 44 * 2 * (7_241_732_096 - 32_000 * 4_096) / 1555e9
    found = keras("small-batches")
    assert (found["gemma"], found["mistral"]) == pytest.approx((2745.18 / 1721.03, 1618.43 / 1610.84))
    assert found["weights"] == pytest.approx(weights / 1.61084)
    assert keras("library-versions") == pytest.approx({"gap": 783.43 / 616.04, "older_gap": 2 * 783.43 / 616.04})
    eager, compiled = FASTER[EAGER], FASTER[COMPILED]
    widest = sorted(eager, key=lambda row: -eager[row])[:4]
    assert widest == ["BERT predict", "SAM predict", "SAM fit", "BERT fit"]
    assert keras("segment-anything") == pytest.approx(
        {
            "fit": eager["SAM fit"],
            "predict": eager["SAM predict"],
            "bert_predict": eager["BERT predict"],
            "float32_among_widest": 4,
            "compiled_sam_fit": compiled["SAM fit"],
            "compiled_sam_predict": compiled["SAM predict"],
            "compiled_bert_fit": compiled["BERT fit"],
            "compiled_bert_predict": compiled["BERT predict"],
        }
    )


def test_against_keras_2() -> None:
    gains = FASTER[KERAS2]
    assert keras("faster-than-keras2") == pytest.approx({"rows": 6, "faster": 6, "least": min(gains.values())})
    assert numbers(keras("sam-predict")) == pytest.approx({"now": 1859.27 / 376.34, "first_version": 3187.09 / 660.16})
    assert numbers(keras("sd-fit")) == pytest.approx({"now": 1023.21 / 391.21})
    assert numbers(keras("bert-fit")) == pytest.approx({"now": 486.00 / 214.49, "first_version": 841.84 / 404.17})
    upgraded = {row: times[KERAS2] / times[3] for row, times in TABLE.items() if times[KERAS2]}
    assert keras("upgrade") == pytest.approx(
        {
            "rows": 6,
            "faster": sum(gain > 1 for gain in upgraded.values()),
            "least": 470.12 / 466.01 - 1,
            "close": sum(gain < 1.1 for gain in upgraded.values()),
        }
    )
    assert sorted(gains, key=lambda row: -gains[row])[:2] == ["SAM predict", "SD fit"]
    assert keras("fused-ops") == pytest.approx({"sam_predict": gains["SAM predict"], "sd_fit": gains["SD fit"]})


def numbers(found: Mapping[str, float | str]) -> dict[str, float | str]:
    """Leave out the rates, which are words."""
    return {name: figure for name, figure in found.items() if not isinstance(figure, str)}


def test_generating_on_pytorch() -> None:
    slow = [TABLE[row][5] / TABLE[row][0] for row in TABLE if "generate" in row]
    share = 44 * 2 * (7_241_732_096 - 32_000 * 4_096) / 11.05467 / 1555e9
    assert keras("padding") == pytest.approx({"least": min(slow), "most": max(slow), "share": share})
    for row, times in TABLE.items():  # TensorFlow and JAX are the fastest two
        assert "generate" not in row or max(times[3:5]) < min(times[0], times[1], times[5])


def test_the_small_mlp() -> None:
    """Seconds of 10,000 steps; Julia's first run compiles and does not count. On the i9 it ran twice two times more."""
    assert figures("simplechains", "mlp-i9") == pytest.approx(
        {
            "least": 15.22 / 0.416341,
            "most": 15.28 / 0.410168,
            "pytorch_ms": 1.522,
            "simplechains_us": 41.0168,
            "mflop": 39.68,  # tests/benchmarks/test_forms.py has the work
            "at_most": 0.416341 / 15.22,
        }
    )
    assert figures("simplechains", "mlp-epyc") == pytest.approx(
        {
            "least": 68.02 / 0.726994,
            "most": 73.68 / 0.717071,
            "pytorch": 68.02 / 15.22,
            "simplechains": 0.717071 / 0.410168,
        }
    )
    assert figures("simplechains", "jax") == pytest.approx(
        {
            "ryzen_least": 13.85 / 1.310997,
            "ryzen_most": 14.52 / 1.295088,
            "i9_least": 8.98 / 0.416341,
            "i9_most": 9.26 / 0.410168,
            "six_least": 18.91 / 9.258355,
            "six_most": 20.09 / 9.208631,
            "jax_slower": 18.91 / 8.98,
            "simplechains_slower": 9.208631 / 0.410168,
        }
    )


def test_lenet5() -> None:
    assert figures("simplechains", "lenet5") == pytest.approx(
        {
            "i9_least": 10.78 / 1.241958,
            "i9_most": 11.24 / 1.230244,
            "epyc_least": 14.86 / 3.083624,
            "epyc_most": 15.09 / 3.083624,
        }
    )
    rate = 910.224e9 / 17.62  # tests/benchmarks/test_forms.py has the work
    assert figures("simplechains", "gpu") == pytest.approx(
        {"gflop": 910.224, "seconds": 17.62, "gflops": rate / 1e9, "share": rate / 19.5e12, "flux": 17.62 / 1.676934}
    )
    a100 = (1.676934 / 1.241958 - 1, 1.676934 / 1.230244 - 1)
    v100 = (2.309766 / 1.241958 - 1, 2.309766 / 1.230244 - 1)
    assert figures("simplechains", "flux-first") == pytest.approx({"least": a100[0], "most": a100[1]})
    assert figures("simplechains", "flux-today") == pytest.approx(
        {"a100_least": a100[0], "a100_most": a100[1], "v100_least": v100[0], "v100_most": v100[1]}
    )
    assert a100[1] < 0.7 / 1.9  # the first version's 70 % of the A100
    assert v100[0] > 2 * 0.35  # the later 35 % of the V100
    assert figures("simplechains", "laptop") == pytest.approx(
        {
            "here": 5.320512,
            "cpu": 10.78,
            "v100_least": 15.94 / 5.320512,
            "v100_most": 16.29 / 5.320512,
            "a100": 17.62 / 5.320512,
        }
    )


def test_accuracies_follow_the_batch_on_pytorch_alone() -> None:
    """Percent of the test images. Threads: laptop, i9, EPYC, so that batches grow in this order."""
    found = figures("simplechains", "accuracy")
    assert [found[f"torch_{place}"] for place in ("a100", "v100", "epyc", "i9")] == [96.92, 97.49, 97.83, 98.41]
    assert [found[place] for place in ("laptop", "i9", "i9_30", "epyc")] == [96.89, 97.92, 98.20, 98.31]


def test_ivanov() -> None:
    layer = 3 * 8 * 512 * (2 * 12 * 1024**2 + 4 * 512 * 1024) / 9.14e-3
    assert figures("ivanov", "shares") == pytest.approx(
        {
            "flops": 99.8 + 0.17 + 0.03,
            "runtime": 61 + 25.5 + 13.5,
            "tflops": layer / 1e12,
            "share": layer / 125e12,
            "products": layer / 125e12 / 0.61,
        }
    )
    assert figures("ivanov", "rates") == pytest.approx(
        {
            "normalisation": (99.8 / 61) / (0.17 / 25.5),
            "pointwise": (99.8 / 61) / (0.03 / 13.5),
            "normalisation_work": 99.8 / 0.17,
            "pointwise_work": 99.8 / 0.03,
        }
    )


def test_hf2019() -> None:
    assert figures("hf2019", "averages") == pytest.approx({"cpu": 0.823 / 0.748, "gpu": 0.043 / 0.046})

    def asked(layers: int, seq: int) -> int:
        return layers * seq * (8 * 768**2 + 4 * 768 * 3072 + 4 * seq * 768) + 2 * 768**2 + 4 * 768

    halves = {f"length_{seq}": asked(12, seq) / asked(6, seq) for seq in (8, 512)}
    assert figures("hf2019", "distilled") == pytest.approx(halves)
    # GPT-2, DistilGPT-2, Transformer-XL and XLNet; scores of 12 layers x 8 sequences x 12 heads, 4 bytes each.
    assert figures("hf2019", "memory") == pytest.approx(
        {"models": 10, "longest": 4, "scores_gb": 12 * 8 * 12 * 1024 * 1024 * 4 / 1e9}
    )


def test_verdicts_and_what_was_not_read() -> None:
    """False are the two sentences on Flux and the GPUs; of the paper of Ivanov et al. one was read in quotations."""
    found = {(name, claim): verdict for name in CLAIMS for claim, verdict in verdicts(name).items()}
    assert {place for place, verdict in found.items() if verdict == "false"} == {
        ("simplechains", "flux-first"),
        ("simplechains", "flux-today"),
    }
    assert {place for place, verdict in found.items() if verdict == "open"} == {
        ("hf2019", "torchscript"),
        ("hf2019", "torchscript-models"),
        ("hf2019", "xla"),
        ("hf2019", "memory"),
        ("keras-benchmark", "library-versions"),
    }
    assert [claim.id for group in CLAIMS.values() for claim in group.values() if claim.unread] == ["rates"]


def test_formats_of_figures() -> None:
    """Throughput in percent is the ratio less one; ratios below ten have two decimals."""
    number = words._Number(4.4177)
    assert f"{number:more}, {number:times}, {words._Number(10.51):times}" == "+342 %, 4.42 times, 10.5 times"
    assert f"{words._Number(0.0562):.1%} {words._Number(0.9):more} {words._Number(7):.0f}" == "5.6 % −10 % 7"


def test_the_words_show_all_figures() -> None:
    """A figure that no sentence has is not checked by a reader."""
    for name in CLAIMS:
        for claim in words.unfilled(name):
            shown = words.placeholders(claim.arithmetic + claim.why)
            assert shown == set(CLAIMS[name][claim.id].figures), (name, claim.id)


def test_a_figure_that_is_not_known_is_no_number() -> None:
    publication = published.load("ivanov")
    cells = tuple(replace(cell, value=None) for cell in publication.cells)
    with pytest.raises(ValueError, match="tensor contraction, share of FLOPs has no value"):
        ivanov.figures(replace(publication, cells=cells))
    publication = published.load("keras-benchmark")
    cell = implied(publication, publication.find("Gemma fit", "Keras 3 (TF)"))
    assert keras_benchmark._known_rate(cell) == cell.rate
    with pytest.raises(ValueError, match=r"Gemma fit, Keras 3 \(TF\) implies no rate"):
        keras_benchmark._known_rate(dataclasses.replace(cell, rate=None))


def test_every_publication_has_claims() -> None:
    assert sorted(words.FIGURES) == list(published.names())
    assert all(one.arithmetic and one.why and one.where for group in CLAIMS.values() for one in group.values())


def test_the_page_is_what_the_script_writes() -> None:
    """Where it is not: `make claims`."""
    assert script.PAGE.read_text(encoding="utf-8") == script.page()
    assert all(len(line) <= 120 or line.startswith("|") for line in script.page().splitlines())


def test_the_page_of_tables_has_the_work_that_adapters_add() -> None:
    added = keras("slower-than-compiled")
    shares = sorted(100 * float(added[f"{form}_fit_work"]) for form in ("gemma", "mistral"))
    page = (script.PAGE.parent / "published.md").read_text(encoding="utf-8")
    assert f"which takes {shares[0]:.0f} to {shares[1]:.0f} % more matmuls" in page
