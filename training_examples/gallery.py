"""A page of what tasks learnt: film, replay, seeds and curve of each, from the folders that `learn.py` wrote.

    python training_examples/gallery.py runs/*_ppo runs/*_shac --out docs/learnt.md

The page begins with all films, each a link to its task. Films, replays and curves are copied to a folder beside the
page, of its name. What a page says before its first task is kept when it is written anew.
"""

import argparse
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

HEAD = "# What was learnt, task by task\n"
FILM = "[!["  # begins the paragraph of films


def title(folder: Path) -> str:
    """Heading of a run: its task, and its trainer unless that is PPO."""
    task, _, trainer = folder.name.rpartition("_")
    return task if trainer == "ppo" else f"{task}, {trainer.upper()}"


def film(folder: Path, assets: Path) -> str:
    """The film of a run, as a link to its section."""
    name = title(folder)
    anchor = re.sub(r"[^\w -]", "", name.lower()).replace(" ", "-")
    return f"{FILM}{name}]({assets.name}/{folder.name}.webp)](#{anchor})\n"


def with_films(head: str, films: Sequence[str]) -> str:
    """What a page says before its first task, with the films after the title in place of those that were there."""
    heading, *rest = (part for part in head.strip().split("\n\n") if not part.startswith(FILM))
    return "\n\n".join([heading, "".join(films).strip(), *rest]) + "\n"


def section(folder: Path, assets: Path) -> str:
    """Part of the page about one task and trainer; copies what it shows."""
    name = folder.name
    for source, kind in (("video.webp", "webp"), ("replay.html", "html"), ("curve.svg", "svg")):
        shutil.copy(folder / source, assets / f"{name}.{kind}")
    place, heading = assets.name, title(folder)
    shown = f"![{heading}: the best policy]({place}/{name}.webp) ![{heading}: curve of the seeds]({place}/{name}.svg)"
    report = (folder / "report.md").read_text(encoding="utf-8").strip()
    return f"## {heading}\n\n{report}\n\n{shown}\n\n[Replay in 3-D]({place}/{name}.html)\n"


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
    head = with_films(head, [film(folder, assets) for folder in sorted(args.runs)])
    args.out.write_text("\n".join([head, *parts]), encoding="utf-8")
    print(f"{args.out}: {len(parts)} tasks")


if __name__ == "__main__":
    main()
