// What charts share: colours from the style sheet, and a redraw when the scheme changes.
export function colour(element, name) {
  const probe = document.createElement("i");
  probe.hidden = true; probe.style.color = `var(${name})`;
  element.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
export const axes = element => ({
  stroke: colour(element, "--muted"), grid: { stroke: colour(element, "--line"), width: 1 }, ticks: { show: false },
  font: "11px Inter, system-ui, sans-serif", labelFont: "11px Inter, system-ui, sans-serif",
});
// Until the chart leaves the page: redraws when the scheme changes, and fits the width. Returns what ends it.
export function follow(chart, height) {
  const scheme = matchMedia("(prefers-color-scheme: dark)"), redraw = () => chart.draw();
  const watch = new ResizeObserver(() => chart.plot.setSize({ width: chart.clientWidth, height }));
  scheme.addEventListener("change", redraw);
  watch.observe(chart);
  return () => { scheme.removeEventListener("change", redraw); watch.disconnect(); chart.plot.destroy(); };
}
