// A live page: says since when it is stale, and reads out each tenth of the progress.
import { announce } from "./pages.js";

const stale = document.getElementById("stale"), slower = stale.querySelector("[data-slower]"), long = 15000;
// Filters replace the part with another one, or with one that is not live.
const part = () => document.getElementById("live");
// htmx may have looked for sockets before its script for sockets was loaded.
if (part()) globalThis.htmx.process(part());
// When something was pushed, when the part was renewed at all, and when it was last asked for.
let pushed = Date.now(), last = pushed, asked = 0, tenth = -1;

// The socket of a hidden page is closed, and opened anew when it is seen again.
document.addEventListener("visibilitychange", () => { if (!document.hidden) pushed = last = Date.now(); });
// Runs from the load on: a page that was never connected is stale too.
setInterval(() => {
  if (document.hidden) return;
  const live = part(), now = Date.now(), late = live !== null && now - pushed > 1000 * Number(live.dataset.every) + 3000;
  if (stale.hidden === late) stale.hidden = !late;
  if (!late) return;
  stale.querySelector("[data-stale]").textContent = new Date(last).toLocaleTimeString();
  // A proxy may refuse sockets, but let requests pass.
  const isSlow = live.hasAttribute("hx-ws:connect") && now - pushed >= long;
  slower.hidden = !isSlow;
  if (isSlow && now - asked >= long) { asked = now; slower.dispatchEvent(new Event("slower")); }
}, 500);
// A part that is not pushed any more has ended, was deleted, or may not be seen by this user: its page must be loaded again.
document.addEventListener("htmx:before:swap", event => {
  const { ctx } = event.detail;
  if (ctx?.sourceElement !== slower) return;
  const { status } = ctx.response, isOver = status < 400 ? !ctx.text.includes("hx-ws:connect") : status === 401 || status === 404;
  if (!isOver) return;
  event.preventDefault(); location.reload();
});

function renewed(event) {
  const tick = document.getElementById("tick"), bar = document.querySelector("progress.big");
  if (!tick) return;
  last = Date.now();
  if (event.detail?.ctx?.sourceElement !== slower) pushed = last;
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
  if (live && (isOther || live.contains(event.target) || event.target.contains(live))) renewed(event);
});
