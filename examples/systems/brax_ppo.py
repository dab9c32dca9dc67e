"""Brax's PPO on the smallest of its environments."""

from brax import envs
from brax.training.agents.ppo import train as ppo


def progress(steps, metrics):
    print(f"{steps} steps: reward {metrics['eval/episode_reward']:.3f}")
    walltimes.append(metrics.get("training/walltime", 0.0))
    #: ended ("eval", metrics["eval/epoch_eval_time"]), ("step", walltimes[-1] - walltimes[-2])


walltimes = [0.0]
environment = envs.get_environment("fast")
ppo.train(
    environment=environment,
    num_timesteps=60_000,
    episode_length=100,
    num_envs=64,
    batch_size=32,
    num_minibatches=4,
    unroll_length=10,
    num_updates_per_batch=4,
    num_evals=6,
    progress_fn=progress,
    seed=1,
)
