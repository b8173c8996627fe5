"""Settings and goals of the tasks that were learnt: `ppo.py --env ant_run` reads them here.

An option of the command line comes before them, the trainer's own defaults after. What they reach is docs/learnt.md.
"""

PPO = {
    "ant_run": {"steps": 8_000_000, "discount": 0.985, "first_std": 0.5, "target_kl": 0.05, "entropy": 0.005},
    "arm_reach": {"steps": 600_000, "discount": 0.95},
    "cartpole_balance": {"steps": 200_000, "worlds": 64},
    "cartpole_balance_vision": {"steps": 122_880, "worlds": 64, "unroll": 16},
    "cube_pick": {"steps": 1_500_000, "discount": 0.97, "target_kl": 0.03},
    "hopper_hop": {"steps": 3_000_000, "discount": 0.99, "target_kl": 0.03},
    "humanoid_walk": {"steps": 4_000_000, "first_std": 0.4, "hidden": (256, 128)},
    "quadruped_locomotion": {"steps": 2_500_000},
    "quadruped_locomotion_rough": {"steps": 2_500_000},
    "walker_walk": {"steps": 3_000_000, "first_std": 0.6},
}
SHAC = {
    "quadruped_locomotion": {"steps": 600_000, "unroll": 16},
}
# the metric that tells how well a task is done, and when it is learnt
GOALS = {
    "ant_run": ("speed", 5.0),
    "arm_reach": ("reached", 0.95),
    "cartpole_balance": ("reward", 0.9),
    "cube_pick": ("picked", 0.9),
    "hopper_hop": ("speed", 2.0),
    "humanoid_walk": ("speed", 1.0),
    "quadruped_locomotion": ("tracking", 0.8),
    "walker_walk": ("speed", 1.0),
}
