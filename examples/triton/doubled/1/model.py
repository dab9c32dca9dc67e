"""A model of Triton's Python backend: each instance is a process with an endpoint of its own.

tritonserver --model-repository examples/triton
curl localhost:8000/v2/models/doubled/infer \\
    -d '{"inputs": [{"name": "rows", "datatype": "FP32", "shape": [3], "data": [1, 1, 1]}]}'
"""

import json
import os

import jax
import numpy as np
import triton_python_backend_utils as pb_utils

import jaxobs


class TritonPythonModel:
    def initialize(self, args):
        parameters = json.loads(args["model_config"])["parameters"]
        instance = int(args["model_instance_name"].rpartition("_")[2])
        first = int(os.environ.get("JAXOBS_PORT", parameters["endpoint_port"]["string_value"]))
        jaxobs.start(port=first + instance)
        self.double = jax.jit(lambda rows: rows * 2)
        for size in (1, 2):
            self.answer(np.ones(size, np.float32))  # compiled before the first request

    def answer(self, rows):
        return np.asarray(self.double(rows)).sum()

    def execute(self, requests):
        responses = []
        for request in requests:
            with jaxobs.request("doubled") as served:
                total = self.answer(pb_utils.get_input_tensor_by_name(request, "rows").as_numpy())
                answers = {"sum": np.float32([total]), "cold": np.bool_([served.cold])}
            tensors = [pb_utils.Tensor(name, value) for name, value in answers.items()]
            responses.append(pb_utils.InferenceResponse(output_tensors=tensors))
        return responses
