// A live page: says since when it is stale, and reads out each tenth of the progress.
import { announce } from "./pages.js";

const stale = document.getElementById("stale"), long = 15000;
// Filters replace the part with another one, or with one that is not live.
const part = () => document.getElementById("live");
// htmx may have looked for sockets before the script that knows them had arrived.
if (part()) globalThis.htmx.process(part());
let last = Date.now(), tenth = -1;

// The socket of a hidden page is closed, and opened anew when it is seen again.
document.addEventListener("visibilitychange", () => { if (!document.hidden) last = Date.now(); });
// Runs from the load on: a page that was never connected is stale too.
setInterval(() => {
  if (document.hidden) return;
  const live = part(), late = live !== null && Date.now() - last > 1000 * Number(live.dataset.every) + 3000;
  if (stale.hidden === late) stale.hidden = !late;
  if (!late) return;
  stale.querySelector("[data-stale]").textContent = new Date(last).toLocaleTimeString();
  stale.querySelector("[data-slower]").hidden = !live.hasAttribute("hx-ws:connect") || Date.now() - last < long;
}, 500);

function renewed() {
  const tick = document.getElementById("tick"), bar = document.querySelector("progress.big");
  if (!tick) return;
  last = Date.now();
  if (bar) {
    const now = Math.floor(10 * bar.value / bar.max);
    if (now !== tenth && tenth >= 0) announce(`${now * 10} percent done`);
    tenth = now;
  }
  document.dispatchEvent(new CustomEvent("proctor:tick", { detail: tick }));
}
document.addEventListener("htmx:ws:after:message:incoming", renewed);
// A filter beside the part replaces it with another one.
let shown = part();
document.addEventListener("htmx:after:swap", event => {
  const live = part(), isOther = live !== shown;
  shown = live;
  if (live && (isOther || live.contains(event.target) || event.target.contains(live))) renewed();
});
