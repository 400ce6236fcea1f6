// What all pages share: keys, dialogs, notices, links to copy, and times in the browser's zone.
const isTyping = () => document.activeElement?.matches("input:not([type=checkbox]), select, textarea");
const announce = text => { document.getElementById("announced").textContent = text; };
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
  else if (/^(Digit|Numpad)[1-6]$/.test(event.code)) mark(`${event.shiftKey ? "shift " : ""}${event.code.at(-1)}`);
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

// The answer of the sample with the focus, or the one beside the list. By the place of the key: with Shift its character is another.
const mark = key => (document.activeElement.closest("[data-sample]") ?? document.getElementById("detail"))?.querySelector(`[data-press="${key}"]`)?.click();

// The row with the focus; what is compared is a form of its own.
function choose() {
  const box = document.activeElement.closest("tr")?.querySelector("input[type=checkbox]:enabled");
  if (!box) return;
  box.checked = !box.checked;
  announce(box.checked ? "Chosen for Compare" : "No longer chosen for Compare");
}

document.addEventListener("click", event => {
  const at = selector => event.target.closest(selector);
  const opens = at("[data-opens]"), closes = at("[data-closes]"), row = at("[data-rows] tbody th a[hx-get]");
  if (opens) { const dialog = document.getElementById(opens.dataset.opens); if (dialog) { event.preventDefault(); dialog.close(); dialog.showModal(); } }
  if (closes) { const inside = closes.closest("dialog"); if (inside) { event.preventDefault(); inside.close(); } else closes.closest(".notice")?.remove(); }
  if (row) { row.closest("table").querySelector("[aria-selected]")?.removeAttribute("aria-selected"); row.closest("tr").setAttribute("aria-selected", "true"); }
  if (at("[data-copies]")) copy(location.href);
});

const copy = text => navigator.clipboard?.writeText(text).then(() => notify("Link copied."), () => notify("The browser did not allow to copy; the link is in its address bar."));

export function notify(text) {
  const notice = document.createElement("div");
  notice.className = "notice"; notice.textContent = text;
  document.getElementById("notices").append(notice);
  setTimeout(() => notice.remove(), 4000);
}
export { announce };

const form = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
function localise() {
  for (const time of document.querySelectorAll("time[data-local]")) { time.title = time.textContent; time.textContent = form.format(new Date(time.dateTime)); time.removeAttribute("data-local"); }
}
localise();
document.addEventListener("htmx:after:swap", localise);

// On a narrow screen the rail is a row that scrolls.
document.querySelector(".rail [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

// A form that is sent twice would act twice.
document.addEventListener("submit", event => {
  const button = event.submitter;
  if (event.target.method === "post") setTimeout(() => { if (button) button.disabled = true; });
});
addEventListener("pageshow", () => { for (const button of document.querySelectorAll("form[method=post] button:disabled")) button.disabled = false; });
// htmx reports what did not arrive at all; errors that did arrive are notices already.
document.addEventListener("htmx:error", () => notify("The gateway does not answer. Try again in a moment."));
