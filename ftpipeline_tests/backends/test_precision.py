import pytest
import torch

from ftpipeline.backends import precision
from ftpipeline.errors import InputError

needs_cpu = pytest.mark.skipif(torch.cuda.is_available(), reason="says what a machine without a GPU does")


@needs_cpu
@pytest.mark.parametrize(("declared", "used"), [("auto", "fp32"), ("fp32", "fp32"), ("bf16", "bf16")])
def test_a_cpu_computes_in_fp32_unless_bf16_is_declared(declared: str, used: str) -> None:
    assert precision.resolve(declared) == used


@needs_cpu
def test_fp16_on_a_cpu_is_refused_on_one_line_that_says_what_to_change() -> None:
    with pytest.raises(InputError, match=r"^train\.precision fp16 cannot .* on a CPU; set it to auto or fp32$"):
        precision.resolve("fp16")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_computes_in_bf16_where_it_can() -> None:
    assert precision.resolve("auto") == ("bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32")
    assert precision.resolve("fp16") == "fp16"
