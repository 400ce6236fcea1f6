// The answer beside the list: Escape closes it too, and the focus is again at its row.
document.addEventListener("click", event => {
  if (!event.target.closest("[data-closes-answer]")) return;
  const row = document.querySelector("tr[aria-selected]"), target = row?.querySelector("th a") ?? document.querySelector("[data-rows]")?.closest("[tabindex]");
  row?.removeAttribute("aria-selected");
  target?.focus();
});

document.addEventListener("keydown", event => {
  // In a field Escape is the browser's own.
  if (event.key !== "Escape" || document.activeElement.matches("input, select, textarea") || document.querySelector("dialog:modal")) return;
  document.querySelector("[data-closes-answer]")?.click();
});
