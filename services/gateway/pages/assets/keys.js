// Keys: rows of a list, marks of answers, pages after `g`, and the search.
import { announce } from "./pages.js";

const isTyping = () => document.activeElement?.matches("input:not([type=checkbox], [type=radio], [type=file]), select, textarea");
let leader = -Infinity;

document.addEventListener("keydown", event => {
  if ((event.ctrlKey || event.metaKey) && event.key === "k") { focusSearch(event); return; }
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping() || document.querySelector("dialog:modal")) return;
  if (event.timeStamp - leader < 900) { leader = -Infinity; document.querySelector(`[data-key="${CSS.escape(event.key)}"]`)?.click(); return; }
  if (event.key === "/") focusSearch(event);
  else if (event.key === "g") leader = event.timeStamp;
  else if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
  else if (event.key === "x") choose();
  else if (event.key === "n") document.querySelector("a[rel=next]")?.click();
  // A key that is held down says nothing of the answers that follow.
  else if (!event.repeat && /^(Digit|Numpad)[0-9]$/.test(event.code)) mark(`${event.shiftKey ? "shift " : ""}${event.code.at(-1)}`);
  else if (event.key === "?") document.getElementById("keys").showModal();
});

// The filter of the page where it has one, else the search of everything.
function focusSearch(event) {
  const field = (event.key === "/" && document.querySelector("main input[type=search]")) || document.querySelector("[data-search]");
  field.focus(); field.select(); event.preventDefault();
}

function step(by) {
  const links = [...document.querySelectorAll("[data-rows] tbody th a, [data-sample]")];
  if (!links.length) return;
  const at = links.indexOf(document.activeElement), to = links[Math.max(0, Math.min(links.length - 1, at + by))];
  to.focus();
  // Where a row is shown beside the list, it follows.
  if (to.hasAttribute("hx-get")) to.click();
}

// The answer of the sample with the focus, or the one beside the list. The key is known by its code, because Shift changes its character.
const mark = key => (document.activeElement.closest("[data-sample]") ?? document.getElementById("detail"))?.querySelector(`[data-press="${key}"]`)?.click();

// Chooses the row with the focus.
function choose() {
  const box = document.activeElement.closest("tr")?.querySelector("input[type=checkbox]:enabled");
  if (!box) return;
  box.checked = !box.checked;
  announce(box.checked ? "Chosen" : "No longer chosen");
}
