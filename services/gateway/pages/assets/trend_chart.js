// <trend-chart>: a line per model over days. Its legend and its table are HTML beside it.
import { axes, colour, follow } from "./chart_theme.js";

const HEIGHT = 240, MINUTE = 60, DAY = 86400;
const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3], [4, 2], [1, 2]];
// Steps of the time axis: within a day, and over days.
const WITHIN = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720].map(minutes => minutes * MINUTE);
const OVER = [1, 2, 7, 14, 28].map(days => days * DAY);
const date = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

class TrendChart extends HTMLElement {
  connectedCallback() {
    this.lines = JSON.parse(this.getAttribute("data")).lines;
    this.setAttribute("role", "img");
    this.setAttribute("aria-label", `${this.getAttribute("label")}, over days; the table below has the figures`);
    this.tip = document.createElement("div");
    this.tip.className = "tip"; this.tip.hidden = true;
    this.draw();
    this.leave = follow(this, HEIGHT);
  }
  disconnectedCallback() { this.leave?.(); }
  // One row of times for all lines; a line has holes where others have runs.
  table() {
    const times = [...new Set(this.lines.flatMap(line => line.x))].sort((a, b) => a - b);
    const rows = this.lines.map(line => { const known = new Map(line.x.map((x, i) => [x, line.y[i]])); return times.map(x => known.get(x)); });
    return [times, ...rows];
  }
  // A margin on both sides; runs of a minute are minutes apart, not at one place.
  fitted(low, high) {
    const margin = Math.max((high - low) * .04, 5 * MINUTE);
    return [low - margin, high + margin];
  }
  // Days, or times of a day with the day below the first one of it.
  dates(ticks) {
    if (ticks.length > 1 && ticks[1] - ticks[0] >= DAY) return ticks.map(tick => date.format(tick * 1000));
    const days = ticks.map(tick => date.format(tick * 1000));
    return ticks.map((tick, i) => clock.format(tick * 1000) + (days[i] === days[i - 1] ? "" : `\n${days[i]}`));
  }
  draw() {
    this.plot?.destroy();
    const axis = axes(this), percent = this.lines.every(line => line.y.every(y => y >= 0 && y <= 1));
    const figure = value => percent ? (100 * value).toFixed(1) : Number(value.toPrecision(3)).toString();
    const series = this.lines.map((line, i) => ({ label: line.name, stroke: colour(this, `--s${i + 1}`), width: 1.8, dash: DASHES[i], spanGaps: true, points: { show: true, size: 6, fill: colour(this, `--s${i + 1}`) } }));
    this.plot = new globalThis.uPlot({
      width: this.clientWidth || 600, height: HEIGHT, legend: { show: false }, padding: [10, 10, 0, 0], cursor: { y: false, focus: { prox: 24 } }, focus: { alpha: .3 },
      scales: { x: { range: (_, low, high) => this.fitted(low, high) } },
      axes: [
        { ...axis, size: 40, space: 64, incrs: [...WITHIN, ...OVER], values: (_, ticks) => this.dates(ticks) },
        { ...axis, size: 44, values: (_, ticks) => ticks.map(figure) },
      ],
      series: [{}, ...series],
      hooks: { setCursor: [plot => this.show(plot, figure)] },
    }, this.table(), this);
    this.append(this.tip);
  }
  show(plot, figure) {
    const { idx, left } = plot.cursor;
    const found = idx == null ? [] : this.lines.flatMap((line, i) => plot.data[i + 1][idx] == null ? [] : [`${line.name} ${figure(plot.data[i + 1][idx])}`]);
    this.tip.hidden = !found.length || left < 0;
    if (this.tip.hidden) return;
    this.tip.textContent = `${new Date(plot.data[0][idx] * 1000).toLocaleString()}: ${found.join(", ")}`;
  }
}
customElements.define("trend-chart", TrendChart);
