"""Test the interactive viewer in headless Chromium: press its buttons, and write a screenshot.

    pip install -e '.[viewer]' playwright && python ci/browser.py models/humanoid.xml shot.png

Needs Chromium (`apt-get install chromium`, or `playwright install chromium`). Exits with status 1 where the page is
blank or reports an error, or where the simulation does not advance.
"""

import io
import shutil
import sys
import threading
import time

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

import jaxsim
from jaxsim.viewer.web import Viewer

FLAGS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]


def main(model: str, shot: str) -> int:
    """Serve a model, step and run it, and compare screenshots; returns the exit status."""
    m = jaxsim.load_model(model)
    viewer = Viewer(m, keyframe=0 if m.nkey else None, port=8123, paused=True)
    viewer.show["contact points"].value = viewer.show["contact forces"].value = True
    viewer.advance(1)
    threading.Thread(target=viewer.run, daemon=True).start()
    with sync_playwright() as play:
        path = shutil.which("chromium") or shutil.which("google-chrome")
        browser = play.chromium.launch(executable_path=path, args=FLAGS)
        page = browser.new_page(viewport={"width": 1100, "height": 700})
        errors: list[str] = []
        page.on("pageerror", lambda e: errors.append(str(e)))
        page.goto(f"http://127.0.0.1:{viewer.port}")
        page.get_by_role("button", name="Reset", exact=True).wait_for(timeout=60_000)
        time.sleep(8)
        before = np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("RGB"), float)
        start = float(viewer.data.time)
        page.get_by_role("button", name="Step", exact=True).click()
        time.sleep(3)
        stepped = float(viewer.data.time)
        viewer.playing.value = True
        time.sleep(10)
        page.screenshot(path=shot)
        after = np.asarray(Image.open(shot).convert("RGB"), float)
        browser.close()
    ran = float(viewer.data.time)
    print(f"colours: {before.std():.1f}; stepped {stepped - start:.4f} s, ran {ran - stepped:.3f} s; errors: {errors}")
    moved = np.abs(after - before).max(-1) > 30
    print(f"pixels that changed: {moved.mean():.2%}; screenshot: {shot}")
    fine = before.std() > 5 and stepped > start and ran > stepped and moved.any() and not errors
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
