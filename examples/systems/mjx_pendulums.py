"""Pendulums in MuJoCo's MJX, many at once, each pushed at random."""

import jax
import jax.numpy as jnp
import mujoco
from mujoco import mjx

XML = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <body pos="0 0 1">
      <joint name="hinge" type="hinge" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.04" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <actuator><motor joint="hinge" gear="1"/></actuator>
</mujoco>
"""
PENDULUMS, STEPS = 256, 300
model = mjx.put_model(mujoco.MjModel.from_xml_string(XML))


@jax.jit
def reset(key):
    angles = jax.random.uniform(key, (PENDULUMS, 1), minval=-1.0, maxval=1.0)
    return jax.vmap(lambda angle: mjx.make_data(model).replace(qpos=angle))(angles)


@jax.jit
def simulate(data, key):
    control = jax.random.normal(key, (PENDULUMS, 1)) * 0.5
    return jax.vmap(mjx.step, (None, 0))(model, jax.vmap(lambda d, c: d.replace(ctrl=c))(data, control))


data = reset(jax.random.key(0))
keys = list(jax.random.split(jax.random.key(1), STEPS))
for number, key in enumerate(keys, 1):
    #: step
    data = simulate(data, key)
    if number % 100 == 0:
        print(f"{number * 0.01:.0f} s: mean angle {jnp.mean(jnp.abs(data.qpos)):.4f}")
#: other
