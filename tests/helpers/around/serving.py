import queue

import fastapi
import flask


api, site = fastapi.FastAPI(), flask.Flask("site")
waited, rows_used, rows_in_all, params, padded = 0.1, 3, 4, 1, np.ones(4)
model = jax.jit(lambda params, rows: params * rows)


async def app(scope, receive, send): ...


example(1)
assert served.cold is True, served.cold

batch, slots, prompt, requests, blocks_used, blocks = [1, 2], 4, [7, 7, 7], queue.Queue(), 3, 12
generate = iter
example(2)
told = next(each for each in jaxobs.snapshot().routes if each.route == "generate")
assert (told.input_tokens, told.output_tokens, told.finish_reasons) == (3, 3, {"stop": 1}), told
assert told.first_token and told.output_token and told.queued == told.batches == 1, told
assert [each.kv_cache_ratio for each in jaxobs.snapshot().engines] == [0.25]


class bentoml:
    """BentoML as far as the example goes."""

    api = staticmethod(lambda function: function)

    @staticmethod
    def service(kind):
        kind.add_asgi_middleware = staticmethod(lambda middleware: middleware)
        return kind


example(3)
jaxobs.start = lambda **settings: None  # it has a port of its own
assert Doubled().predict(3)["sum"] == 6
