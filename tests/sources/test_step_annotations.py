"""Steps that a program declares for JAX's profiler: counted as its own, and JAX's class is left as it was."""

from __future__ import annotations

import inspect
import pickle

import jax
import jax.numpy as jnp
import pytest
from jax.profiler import StepTraceAnnotation

import jaxobs

pytestmark = pytest.mark.usefixtures("fresh")


def loops() -> dict[str, int]:
    """Steps by loop."""
    return {each.name: each.steps for each in jaxobs.snapshot().loops}


def test_each_block_is_a_step_of_the_loop_of_its_name() -> None:
    """As MaxText declares them; a block that raises is none."""
    jaxobs.install()
    f = jax.jit(lambda x: x + 1)
    for number in range(5):
        with StepTraceAnnotation("train", step_num=number):
            f(jnp.ones(3))
    with StepTraceAnnotation("eval", step_num=0):
        f(jnp.ones(3))
    with pytest.raises(KeyError), StepTraceAnnotation("train", step_num=5):
        raise KeyError("user")
    assert loops() == {"train": 5, "eval": 1}
    assert next(each for each in jaxobs.snapshot().loops if each.name == "train").failed == 1


def test_a_program_that_tells_of_its_steps_is_taken_at_its_word() -> None:
    jaxobs.install()
    for number in range(3):
        with jaxobs.step("train"), StepTraceAnnotation("train", step_num=number):
            pass
    assert loops() == {"train": 3}


def test_the_class_is_as_before_once_jaxobs_is_gone() -> None:
    """Signature, attributes and instances are as before; meanwhile it keeps name, docs and signature."""
    before, signature = dict(vars(StepTraceAnnotation)), inspect.signature(StepTraceAnnotation)
    jaxobs.install()
    assert inspect.signature(StepTraceAnnotation) == signature
    assert all(vars(StepTraceAnnotation)[name] is value for name, value in before.items())
    with pytest.raises(TypeError):
        StepTraceAnnotation()  # type: ignore[call-arg]
    assert pickle.loads(pickle.dumps(StepTraceAnnotation)) is StepTraceAnnotation
    jaxobs.uninstall()
    assert dict(vars(StepTraceAnnotation)) == before
    with StepTraceAnnotation("train", step_num=0):
        pass


def test_a_class_derived_from_it_stays_what_it_is() -> None:
    """With arguments of its own: where no name is told, no step is."""

    class Numbered(StepTraceAnnotation):
        def __init__(self, number: int) -> None:
            super().__init__("train", step_num=number)

    jaxobs.install()
    with Numbered(3), StepTraceAnnotation(name="named", step_num=3):
        pass
    assert loops() == {"named": 1}
