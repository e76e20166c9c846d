"""Check the site in a browser: pages fit the window on a laptop and a phone, and every image loads."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import NamedTuple

import pytest

from tests.support import ROOT

PAGES = ("index.html", "sources/kafka_log.html", "functions/kafka.html")
WIDTHS = (1280, 390)
"""window widths of a laptop and a phone [pixels]"""
_PATIENCE = 300  # [s] for all pages

_MEASURED = """<!doctype html><title>measured</title><body><script>
const sizes = [], todo = %s
async function measure([page, width]) {
  const frame = document.createElement("iframe")
  frame.style.cssText = `border:0;height:800px;width:${width}px`
  frame.src = page
  document.body.append(frame)
  await new Promise(loaded => frame.onload = loaded)
  const document_ = frame.contentDocument, root = document_.documentElement
  const images = [...document_.images]
  await Promise.all(images.map(image => { image.loading = "eager"; return image.decode().catch(() => null) }))
  const broken = images.filter(image => !image.naturalWidth).map(image => image.src)
  sizes.push({page, width, content: Math.max(root.scrollWidth, document_.body.scrollWidth), images: images.length, broken})
  frame.remove()
}
(async () => {
  for (const each of todo) await measure(each)
  await fetch("measured", {method: "POST", body: JSON.stringify(sizes)})
})()
</script></body>"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    mkdocs = shutil.which("mkdocs", path=str(Path(sys.executable).parent))
    assert mkdocs is not None
    subprocess.run([mkdocs, "build", "--quiet", "--strict", "--site-dir", folder], cwd=ROOT, check=True)
    todo = [(page, width) for page in PAGES for width in WIDTHS]
    (folder / "measured.html").write_text(_MEASURED % json.dumps(todo))
    return folder


class Measured(NamedTuple):
    """A server for the site that also receives the browser's measurements."""

    address: str
    sent: Queue[bytes]


@pytest.fixture
def measured(site: Path) -> Iterator[Measured]:
    sent: Queue[bytes] = Queue()

    class Handler(SimpleHTTPRequestHandler):
        def do_POST(self) -> None:
            sent.put(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(HTTPStatus.NO_CONTENT)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Do not log the browser's requests."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Measured(f"http://127.0.0.1:{server.server_address[1]}", sent)
        server.shutdown()


def test_pages_fit_the_window_and_images_load(measured: Measured, tmp_path: Path) -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.fail("could not get a browser: install Debian's package chromium")
    # With a debugging port, the browser runs until it is terminated. Its virtual time budget may never end.
    options = [
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync", "--no-first-run",
        "--disable-component-update", f"--user-data-dir={tmp_path}", "--window-size=1400,1000", "--remote-debugging-port=0",
    ]  # fmt: skip
    command = [chromium, *options, f"{measured.address}/measured.html"]
    browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        sizes = json.loads(measured.sent.get(timeout=_PATIENCE))
    finally:
        os.killpg(browser.pid, signal.SIGKILL)
        browser.wait()
    assert len(sizes) == len(PAGES) * len(WIDTHS)
    for each in sizes:
        assert each["content"] <= each["width"], each
        assert each["broken"] == [], each
    assert sum(each["images"] for each in sizes) > 0
