"""Every example runs, writes its figure, and finds what it says."""

import runpy
from pathlib import Path

import matplotlib as mpl
import pytest
from threadpoolctl import threadpool_limits

EXAMPLES = {path.stem: path for path in sorted((Path(__file__).parent.parent / "examples").glob("*.py"))}

CLAIMS = {  # about what `main` returns
    "assignment": lambda found: found["matched"] == 1.0 and found["stationarity"] <= 1e-6,
    "clean": lambda right: right >= 55,
    "correlation": lambda found: (
        1.783321 < found["lower"] < 1.7833214  # the minimum, as interior-point methods find it, is 1.7833213
        and abs(found["value"] - found["lower"]) < 1e-5
        and max(found["distance"], found["diagonal"]) < 1e-5
    ),
    "denoising": lambda psnr: psnr["denoised"] > 29.0 and psnr["inpainted"] > 28.9,
    "design": lambda found: abs(found["corner"] - 0.1458) + abs(found["centre"] - 0.0962) < 1e-4,
    "every_algorithm": lambda gap: (
        gap["Alg. 3 v1  norm-corrective FW"] < 1e-10 and gap["Alg. 2 v1  line search"] > 1e-3
    ),
    "faiss_oracle": lambda found: (
        found["cached"] > 0 and abs(found["gap"]) <= 1e-6 and found["lower"] >= 0 and abs(found["difference"]) < 1e-4
    ),
    "features": lambda found: found["GreedyClassifierCV"][0] == 0 and found["GreedyClassifierCV"][1] > 0.93,
    "group_lasso": lambda needless: needless["refitted"] == 0 < needless["shrunken"],
    "kernel_herding": lambda error: error["norm-corrective"][-1] < 0.2 * error["random sample"][-1],
    "long_run": lambda r: r["difference of x"] == 0 == r["difference of iterations"] and r["bytes"] < 1e6,
    "lorenz": lambda found: found == [["x", "y"], ["x", "y", "xz"], ["z", "xy"]],
    "multitask": lambda error: error["tensor of rank 2"][-1] < 0.25 * error["each task alone"][-1],
    "one_bit_completion": lambda predicted: predicted > 0.75,
    "own_oracle": lambda gap: gap.pop("default") < 1e-6 and min(gap.values()) > 1.0,
    "poisson_pca": lambda share: share["Poisson PCA"] > 0.98,
    "portfolio": lambda found: (
        found["warm"] < 0.75 * found["cold"] and found["gap"] < 1e-12 and found["highest return"] > 0.18
    ),
    "ratings": lambda error: 0.6 < error < 0.82,  # the noise alone is 0.6
    "robust_pca": lambda error: error["low rank plus sparse"] < 0.03,
    "spike_deconvolution": lambda worst: worst[0.0] < 1e-10 and worst[0.01] < 1e-3,
    "tensor_completion": lambda error: error < 0.02,
    "traffic": lambda found: (
        found.pop("value") == pytest.approx(2792291.97243806, rel=1e-8)
        and abs(found.pop("plan") - 0.9522) < 1e-4
        and found.pop("default") < 1e-9
        and min(found.values()) > 1e-5
    ),
    "tuned_radii": lambda r: r["by gradient"] < r["on a grid"] and r["solutions"] < 25,
    "trumpet": lambda decibels: decibels > 14.0,
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_finds_what_it_says_and_writes_a_figure(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    with threadpool_limits(1):  # small products: on a busy machine threads would wait for each other
        found = runpy.run_path(str(EXAMPLES[name]))["main"]()
    assert CLAIMS[name](found), found
    assert [path.stem for path in tmp_path.glob("out/*.png")] == [{"every_algorithm": "convergence"}.get(name, name)]
    assert all(len(line) <= 80 for line in capsys.readouterr().out.splitlines())


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_is_a_program_with_a_title(name):
    text = EXAMPLES[name].read_text()
    assert text.endswith('\n\nif __name__ == "__main__":\n    main()\n')
    title, _, shown = text.splitlines()[0].removeprefix('"""').partition(": ")  # the gallery divides it there
    assert title and shown.endswith((".", "?"))
