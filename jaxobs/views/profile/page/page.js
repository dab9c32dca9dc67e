"use strict";
// The flame graph: a press on a frame gives it the whole width, a press on the lowest one all of them their own.
const flame = document.querySelector(".flame");
const frames = flame ? [...flame.querySelectorAll("button")] : [];
function show(start, width) {
  for (const frame of frames) {
    const left = (frame.dataset.start - start) / width, wide = frame.dataset.width / width;
    const from = Math.max(0, left), to = Math.min(1, left + wide);
    frame.hidden = to - from < 0.0005;
    frame.style.display = frame.hidden ? "none" : "";
    frame.style.left = `${100 * from}%`;
    frame.style.width = `${100 * (to - from)}%`;
  }
}
for (const frame of frames) frame.addEventListener("click", () => show(+frame.dataset.start, +frame.dataset.width));
