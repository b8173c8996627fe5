"""A page of what tasks learnt: film, replay, seeds and curve of each, from the folders that `learn.py` wrote.

    python training_examples/gallery.py runs/*_ppo runs/*_shac --out docs/learnt.md

Films, replays and curves are copied to a folder beside the page, of its name. Policies of PPO are copied to
`training_examples/policies`, where a task's own page and `watch.py` find them.
"""

import argparse
import shutil
from pathlib import Path

POLICIES = Path(__file__).resolve().parent / "policies"
HEAD = """# What was learnt, task by task

Tasks with the command that trains them, a film and a replay of the best policy, its seeds and their curve. Use it to
see what to expect before you start a run, and to compare yours. Tasks that are not here, and what made the difference,
stand in [Training](training.md).

x86-64 virtual machine of 2 cores, one core a run with other programs on the other, float32, jax 0.10.2, 2026-11-25.
"Clock" and "processor" are seconds from the start of the program, compilation included, which a cache shortened for
most seeds; where the clock shows much more, the core was shared. A goal is reached when the mean of ten updates of
training is at it, exploration noise included. "At the end" is the same measure for the last policy without noise in 64
episodes, and "whole" the share of them that end with their time.
"""


def section(folder: Path, assets: Path) -> str:
    """Part of the page about one task and trainer; copies what it shows."""
    name = folder.name
    for source, kind in (("video.webp", "webp"), ("replay.html", "html"), ("curve.svg", "svg")):
        shutil.copy(folder / source, assets / f"{name}.{kind}")
    task, _, trainer = name.rpartition("_")
    if trainer == "ppo":
        shutil.copy(folder / "policy.npz", POLICIES / f"{task}.npz")
    place = assets.name
    title = task if trainer == "ppo" else f"{task}, {trainer.upper()}"
    shown = f"![{title}: the best policy]({place}/{name}.webp) ![{title}: curve of the seeds]({place}/{name}.svg)"
    report = (folder / "report.md").read_text(encoding="utf-8").strip()
    return f"## {title}\n\n{report}\n\n{shown}\n\n[Replay in 3-D]({place}/{name}.html)\n"


def main() -> None:
    """Write the page as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", help="folders of learn.py, such as runs/ant_run_ppo")
    parser.add_argument("--out", type=Path, default=Path("learnt.md"))
    args = parser.parse_args()
    assets = args.out.with_suffix("")
    assets.mkdir(parents=True, exist_ok=True)
    parts = [section(folder, assets) for folder in sorted(args.runs)]
    args.out.write_text("\n".join([HEAD, *parts]), encoding="utf-8")
    print(f"{args.out}: {len(parts)} tasks")


if __name__ == "__main__":
    main()
