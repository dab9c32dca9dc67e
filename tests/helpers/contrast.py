"""The contrast of texts on a page, as WCAG measures it: JavaScript that runs in the page."""

from __future__ import annotations

CONTRAST = """selectors => {
  const canvas = Object.assign(document.createElement('canvas'), { width: 1, height: 1 });
  const pen = canvas.getContext('2d', { willReadFrequently: true });
  const rgba = colour => {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    return [...pen.getImageData(0, 0, 1, 1).data];
  };
  const linear = c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const weights = [0.2126, 0.7152, 0.0722];
  const light = colour => weights.reduce((sum, part, i) => sum + part * linear(rgba(colour)[i] / 255), 0);
  const found = {};
  for (const selector of selectors) for (const node of document.querySelectorAll(selector)) {
    let behind = node;
    while (behind && rgba(getComputedStyle(behind).backgroundColor)[3] < 255) behind = behind.parentElement;
    const style = getComputedStyle(node);
    const a = light(selector.startsWith('svg') ? style.fill : style.color);
    const b = light(getComputedStyle(behind).backgroundColor);
    found[selector] = Math.min(found[selector] ?? 99, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  }
  return found;
}"""
