// A live page: says since when it is stale, and reads out each tenth of the progress.
import { announce } from "./pages.js";

const stale = document.getElementById("stale"), live = document.getElementById("live");
const patience = 1000 * Number(live.dataset.every) + 3000, long = 15000;
// htmx may have looked for sockets before the script that knows them had arrived.
globalThis.htmx.process(live);
let last = Date.now(), tenth = -1;

// Runs from the load on: a page that was never connected is stale too.
setInterval(() => {
  const late = Date.now() - last > patience;
  if (stale.hidden === late) stale.hidden = !late;
  if (!late) return;
  stale.querySelector("[data-stale]").textContent = new Date(last).toLocaleTimeString();
  stale.querySelector("[data-slower]").hidden = !live.hasAttribute("hx-ws:connect") || Date.now() - last < long;
}, 500);

function renewed() {
  const tick = document.getElementById("tick"), bar = document.querySelector("progress.big");
  if (!tick || !bar) return;
  last = Date.now();
  const now = Math.floor(10 * bar.value / bar.max);
  if (now !== tenth && tenth >= 0) announce(`${now * 10} percent done`);
  tenth = now;
  document.dispatchEvent(new CustomEvent("proctor:tick", { detail: tick }));
}
document.addEventListener("htmx:ws:after:message:incoming", renewed);
document.addEventListener("htmx:after:swap", event => { if (event.target === live || live.contains(event.target)) renewed(); });
