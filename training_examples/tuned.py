"""Settings and goals of the tasks that were learnt: `ppo.py --env ant_run` reads them here.

An option of the command line comes before them, the trainer's own defaults after. What they reach is in
docs/training.md.
"""

PPO = {
    "ant_run": {
        "steps": 8_000_000,
        "worlds": 512,
        "unroll": 12,
        "discount": 0.985,
        "first_std": 0.5,
        "target_kl": 0.05,
        "entropy": 0.005,
    },
    "arm_reach": {"steps": 600_000, "discount": 0.95},
    "cartpole_balance": {"steps": 200_000, "worlds": 64, "discount": 0.99},
    "cartpole_balance_vision": {"steps": 122_880, "worlds": 64, "unroll": 16},
    "cartpole_swingup": {"steps": 1_500_000, "worlds": 64, "discount": 0.99, "first_std": 0.5, "entropy": 0.003},
    "cube_pick": {"steps": 1_500_000, "discount": 0.97, "target_kl": 0.03},
    "hand_reorient": {
        "steps": 3_200_000,
        "hidden": (256, 128),
        "first_std": 1.0,
        "entropy": 0.01,
        "target_kl": 0.03,
        "reward_scale": 1.0,
    },
    "hopper_hop": {"steps": 2_500_000, "discount": 0.99, "target_kl": 0.03, "first_std": 0.7, "entropy": 0.005},
    "hopper_stand": {"steps": 800_000, "discount": 0.99, "target_kl": 0.03, "first_std": 0.5, "entropy": 0.003},
    "humanoid_run": {
        "steps": 8_000_000,
        "worlds": 512,
        "unroll": 12,
        "hidden": (256, 128),
        "discount": 0.985,
        "first_std": 0.4,
        "target_kl": 0.05,
        "entropy": 0.003,
    },
    "humanoid_stand": {"steps": 2_500_000, "first_std": 0.4, "hidden": (256, 128)},
    "humanoid_walk": {"steps": 4_000_000, "first_std": 0.4, "hidden": (256, 128)},
    "quadruped_joystick": {"steps": 2_500_000, "first_std": 0.3},
    "quadruped_joystick_rough": {"steps": 2_500_000, "first_std": 0.3},
    "quadruped_locomotion": {"steps": 2_500_000},
    "quadruped_locomotion_rough": {"steps": 2_500_000},
    "runner_run": {"steps": 2_500_000, "first_std": 0.5, "target_kl": 0.04, "entropy": 0.005},
    "walker_run": {"steps": 3_000_000, "discount": 0.985, "first_std": 0.5, "target_kl": 0.04, "entropy": 0.005},
    "walker_stand": {"steps": 1_500_000, "discount": 0.99, "first_std": 0.6},
    "walker_walk": {"steps": 1_500_000, "first_std": 0.6},
}
# where to start with a task of one's own, by what it is like; `ppo.py --tune` tries each
STARTS = {
    "swing-up": {"worlds": 64, "discount": 0.99, "first_std": 0.5, "entropy": 0.003},
    "reach": {"worlds": 256, "discount": 0.95},
    "walk": {"worlds": 256, "discount": 0.985, "first_std": 0.5, "target_kl": 0.04, "entropy": 0.005},
}
SHAC = {
    "ant_run": {
        "steps": 2_000_000,
        "worlds": 128,
        "unroll": 4,
        "discount": 0.97,
        "first_std": 0.5,
        "target_kl": 0.03,
        "entropy": 0.0005,
    },
    "humanoid_walk": {
        "steps": 1_000_000,
        "worlds": 64,
        "unroll": 8,
        "hidden": (256, 128),
        "discount": 0.97,
        "first_std": 0.4,
        "target_kl": 0.03,
    },
    "quadruped_locomotion": {"steps": 500_000, "worlds": 64, "unroll": 16},
}
# the metric that tells how well a task is done, and when it counts as learnt
GOALS = {
    "ant_run": ("speed", 5.0),
    "arm_reach": ("reward", 0.95),
    "cartpole_balance": ("reward", 0.9),
    "cartpole_balance_vision": ("reward", 0.9),
    "cartpole_swingup": ("reward", 0.75),
    "cube_pick": ("picked", 0.9),
    "hand_reorient": ("reached", 0.1),
    "hopper_hop": ("speed", 2.0),
    "hopper_stand": ("reward", 0.9),
    "humanoid_run": ("speed", 3.0),
    "humanoid_stand": ("reward", 0.8),
    "humanoid_walk": ("speed", 1.0),
    "quadruped_joystick": ("follow", 0.8),
    "quadruped_joystick_rough": ("follow", 0.8),
    "quadruped_locomotion": ("tracking", 0.8),
    "quadruped_locomotion_rough": ("tracking", 0.8),
    "runner_run": ("speed", 5.0),
    "walker_run": ("speed", 4.0),
    "walker_stand": ("reward", 0.9),
    "walker_walk": ("speed", 1.0),
}
