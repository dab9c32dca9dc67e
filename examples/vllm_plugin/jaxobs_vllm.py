"""A plugin of vLLM that starts jaxobs in the process of the engine, which runs JAX: pip install examples/vllm_plugin"""

import multiprocessing

import jaxobs


def start():
    """Starts jaxobs in the engine alone: vLLM calls its plugins in each of its processes."""
    if multiprocessing.current_process().name.startswith("EngineCore"):
        jaxobs.start()
