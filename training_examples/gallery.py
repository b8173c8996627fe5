"""A page of what tasks learnt: film, replay, seeds and curve of each, from the folders that `learn.py` wrote.

    python training_examples/gallery.py runs/*_ppo runs/*_shac --out docs/learnt.md

Films, replays and curves are copied to a folder beside the page, of its name. What a page says before its first task is
kept when it is written anew.
"""

import argparse
import shutil
from pathlib import Path

HEAD = "# What was learnt, task by task\n"


def section(folder: Path, assets: Path) -> str:
    """Part of the page about one task and trainer; copies what it shows."""
    name = folder.name
    for source, kind in (("video.webp", "webp"), ("replay.html", "html"), ("curve.svg", "svg")):
        shutil.copy(folder / source, assets / f"{name}.{kind}")
    task, _, trainer = name.rpartition("_")
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
    head = args.out.read_text(encoding="utf-8").partition("\n## ")[0] if args.out.is_file() else HEAD
    args.out.write_text("\n".join([head, *parts]), encoding="utf-8")
    print(f"{args.out}: {len(parts)} tasks")


if __name__ == "__main__":
    main()
