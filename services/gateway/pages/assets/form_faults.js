// A form that was refused: its first faulty field has the focus, and the title of the page says so.
function show() {
  const faulty = document.querySelector("main [aria-invalid=true]");
  if (!faulty && !document.querySelector("main .problem[role=alert]")) return;
  if (!document.title.startsWith("Refused: ")) document.title = `Refused: ${document.title}`;
  faulty?.focus();
}
document.addEventListener("htmx:after:swap", event => { if (event.detail.ctx?.response?.status === 422) show(); });
show();
