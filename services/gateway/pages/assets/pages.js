// What all pages share: dialogs, notices, links to copy, times in the browser's zone, and parts that are replaced.
export const announce = text => { document.getElementById("announced").textContent = text; };

document.addEventListener("click", event => {
  const at = selector => event.target.closest(selector);
  const opens = at("[data-opens]"), closes = at("[data-closes]"), row = at("[data-rows] tbody th a[hx-get]");
  if (opens) { const dialog = document.getElementById(opens.dataset.opens); if (dialog) { event.preventDefault(); dialog.close(); dialog.showModal(); } }
  if (closes) { const inside = closes.closest("dialog"); if (inside) { event.preventDefault(); inside.close(); } else closes.closest(".notice")?.remove(); }
  if (row) { row.closest("table").querySelector("[aria-selected]")?.removeAttribute("aria-selected"); row.closest("tr").setAttribute("aria-selected", "true"); }
  if (at("[data-copies]")) copy(location.href);
});

const COPY_REFUSED = "The browser did not allow to copy; the link is in its address bar.";
// Over plain HTTP browsers have no clipboard, except on this machine.
const copy = text => navigator.clipboard ? navigator.clipboard.writeText(text).then(() => notify("Link copied."), () => notify(COPY_REFUSED)) : notify(COPY_REFUSED);

// Replaces the notice before: a user who marks answers by keys needs only the last one.
export function notify(text) {
  const notice = Object.assign(document.createElement("div"), { className: "notice brief", textContent: text });
  document.querySelector("#notices > .brief")?.remove();
  document.getElementById("notices").append(notice);
  setTimeout(() => notice.remove(), 4000);
}
// A response that replaces a part of the page sends this event with its notice.
document.addEventListener("proctor-notice", event => notify(event.detail.text));

const dateFormats = {};
function localise() {
  for (const time of document.querySelectorAll("time[data-local]")) {
    const timeStyle = time.dataset.local === "exact" ? "medium" : "short";
    // Made only when there is a time to show, because this takes milliseconds.
    dateFormats[timeStyle] ??= new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle });
    time.title = time.textContent; time.textContent = dateFormats[timeStyle].format(new Date(time.dateTime));
    time.removeAttribute("data-local");
  }
}
document.addEventListener("htmx:after:swap", localise);

// After the first frame, which neither should delay. On a narrow screen the rail is a row that scrolls.
requestAnimationFrame(() => setTimeout(() => {
  localise();
  document.querySelector(".rail [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
}));

// Screen readers announce only changes of live regions, so a notice in the page is announced after it has loaded.
const notice = document.querySelector("#notices > .notice > span")?.textContent;
if (notice) setTimeout(() => announce(notice), 500);

// A page that asks about an action does so as a dialog where it can: the focus is inside, and Escape closes it.
for (const dialog of document.querySelectorAll("main dialog[open]")) { dialog.close(); dialog.showModal(); }

// A part that renews itself may fail each time: one notice shows since when, until it succeeds again.
let renewedAt = Date.now(), isRefused = false;
// The response may replace the element that sent the request, so the kind of request is noted before.
const renewals = new WeakSet();
const lists = new WeakSet();
const isList = ctx => Boolean(ctx && (lists.has(ctx) || ctx.sourceElement?.matches?.(".filters, .pager a") && lists.add(ctx)));
const renewsItself = ctx => Boolean(ctx && (renewals.has(ctx) || /every|slower/.test(ctx.sourceElement?.getAttribute?.("hx-trigger") ?? "") && renewals.add(ctx)));
function showStale() {
  if (document.getElementById("old")) return;
  const notice = Object.assign(document.createElement("div"), { id: "old", className: "notice problem", role: "alert" });
  notice.textContent = `This page cannot be renewed now. What you see is from ${new Date(renewedAt).toLocaleTimeString()}.`;
  document.getElementById("notices").append(notice);
}
const renewed = () => { renewedAt = Date.now(); isRefused = false; document.getElementById("old")?.remove(); };
// What is pushed again is not stale any more.
document.addEventListener("htmx:ws:after:message:incoming", renewed);
let unfolded = [];
document.addEventListener("htmx:before:swap", event => {
  const ctx = event.detail.ctx, status = ctx?.response?.status;
  unfolded = [...document.querySelectorAll("main details[id][open]")];
  if (!status || !(renewsItself(ctx) || isList(ctx))) return;
  if (status < 400) renewed();
  else if (!renewsItself(ctx)) return;
  // A user who is signed out, or whose page was deleted, sees the reason once, not each time.
  else if ((status === 401 || status === 404) && !isRefused) isRefused = true;
  else { event.preventDefault(); showStale(); }
});

// The target is busy while a request is in progress; the buttons of its form are enabled after any response.
// A newer request to the same target replaces the one before, which ends after the newer one has begun.
const busy = new WeakMap();
document.addEventListener("htmx:before:request", event => {
  const { ctx } = event.detail, target = ctx?.target;
  if (renewsItself(ctx) || !target?.setAttribute) return;
  busy.set(ctx, target); busy.set(target, ctx);
  target.setAttribute("aria-busy", "true");
});
document.addEventListener("htmx:finally:request", event => {
  const { ctx } = event.detail, target = ctx && busy.get(ctx);
  if (target && busy.get(target) === ctx) target.removeAttribute("aria-busy");
  for (const button of ctx?.sourceElement?.querySelectorAll?.("button:disabled") ?? []) button.disabled = false;
});

// The element with the focus may be replaced: the focus goes to its replacement. A list announces its size.
const FOUND = "main [data-found], main table[data-rows] caption, main .empty";
document.addEventListener("htmx:after:swap", event => {
  const { ctx } = event.detail;
  for (const { id } of unfolded) document.getElementById(id)?.setAttribute("open", "");
  if (!ctx?.response || renewsItself(ctx) || ctx.response.status >= 400) return;
  if (isList(ctx)) announce(document.querySelector(FOUND)?.textContent.trim() ?? "");
  if (document.activeElement !== document.body) return;
  const own = ctx.sourceElement?.matches?.(".marks-form") ? document.getElementById(pressed) : null;
  (own ?? document.querySelector("main [data-rows]")?.closest("[tabindex]"))?.focus({ preventScroll: true });
});

// Buttons are disabled so that no form is sent twice. That loses the focus; the id finds the new button.
let pressed = "";
document.addEventListener("submit", event => {
  const button = event.submitter;
  pressed = button?.id ?? "";
  if (event.target.method === "post") setTimeout(() => { if (button) button.disabled = true; });
});
addEventListener("pageshow", () => { for (const button of document.querySelectorAll("form[method=post] button:disabled")) button.disabled = false; });
// htmx reports requests without a response here; responses with errors are shown as notices already.
document.addEventListener("htmx:error", event => renewsItself(event.detail.ctx) ? showStale() : notify("The gateway does not answer. Try again in a moment."));

// Scrolls the names of the pages until the present one is visible.
const names = document.querySelector(".rail nav"), present = names?.querySelector("[aria-current]");
if (present) names.scrollLeft += Math.max(0, present.getBoundingClientRect().right - names.getBoundingClientRect().right);
