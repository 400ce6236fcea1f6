// <live-chart>: a line of the last five minutes; each tick of the page adds a point, at most one a second.
import { axes, colour, follow } from "./chart_theme.js";

// A table of more rows is not read; the chart has the rest.
const HEIGHT = 120, SPAN = 300, ROWS = 20;
const clock = at => new Date(at * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

// The next number above of which a half is a short number too.
function roundedUp(value) {
  if (!value) return 1;
  const unit = 10 ** Math.floor(Math.log10(value));
  return unit * [1, 2, 4, 6, 8, 10].find(each => each * unit >= value * 1.02 || each === 10);
}

class LiveChart extends HTMLElement {
  connectedCallback() {
    const { x, y } = JSON.parse(this.getAttribute("data"));
    this.points = [x, y];
    this.setAttribute("role", "img");
    this.draw();
    this.leave = follow(this, HEIGHT);
  }
  disconnectedCallback() { this.leave?.(); }
  draw() {
    this.plot?.destroy();
    // By the points themselves: uPlot takes a single one as the beginning of a day.
    const axis = axes(this), [xs] = this.points, last = () => xs.at(-1) ?? 60;
    this.plot = new globalThis.uPlot({
      width: this.clientWidth || 400, height: HEIGHT, legend: { show: false }, cursor: { show: false }, padding: [8, 0, 0, 0],
      scales: { x: { range: () => [Math.min(xs[0] ?? 0, last() - 60), last()] }, y: { range: (_, low, high) => [0, roundedUp(high)] } },
      axes: [
        { ...axis, grid: { show: false }, size: 22, space: 70, incrs: [15, 30, 60, 120], values: (plot, ticks) => plot.data[0].length ? ticks.map(clock) : [] },
        { ...axis, size: 46, splits: (_, __, low, high) => [0, high / 2, high], values: (_, ticks) => ticks.map(tick => tick.toLocaleString(undefined, { maximumFractionDigits: 2 })) },
      ],
      series: [{}, { stroke: colour(this, "--s1"), width: 1.6, fill: colour(this, "--accent-wash"), points: { show: () => xs.length === 1 } }],
    }, this.points, this);
    this.label();
  }
  label() {
    const newest = this.points[1].at(-1);
    this.setAttribute("aria-label", `${this.getAttribute("label")}, last five minutes; newest: ${newest === undefined ? "none yet" : newest}`);
    this.fill(document.getElementById(`${this.getAttribute("series")}-table`));
  }
  // The newest first.
  fill(details) {
    const [xs, ys] = this.points, body = details.querySelector("tbody");
    details.hidden = !xs.length;
    body.replaceChildren();
    for (let at = xs.length - 1; at >= Math.max(0, xs.length - ROWS); at--) {
      const row = body.insertRow(), time = row.appendChild(document.createElement("th"));
      time.scope = "row"; time.textContent = clock(xs[at]);
      Object.assign(row.insertCell(), { className: "num", textContent: ys[at] });
    }
  }
  add(x, y) {
    const [xs, ys] = this.points;
    if (x - (xs.at(-1) ?? -Infinity) < 1) return;
    xs.push(x); ys.push(y);
    while (xs[0] < x - SPAN) { xs.shift(); ys.shift(); }
    this.plot.setData(this.points);
    this.label();
  }
}
customElements.define("live-chart", LiveChart);

document.addEventListener("proctor:tick", event => {
  const tick = event.detail;
  if (tick.dataset.state !== "running") return;
  for (const chart of document.querySelectorAll("live-chart")) chart.add(Number(tick.value), Number(tick.dataset[chart.getAttribute("series")]));
});
