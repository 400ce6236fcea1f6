// <upload-form>: a file can be dropped on it, its way is shown, and so are its faulty lines.
import { announce, notify } from "./pages.js";

const SHOWN = 300;
const MAPPING = ["prompt", "target", "id"];
// As many as the server reads of a file that it previews; one more tells it that there are others.
const PREVIEWED_BYTES = 2 * 1024 * 1024;

class UploadForm extends HTMLElement {
  connectedCallback() {
    this.form = this.querySelector("form");
    this.field = this.querySelector("input[type=file]");
    this.bar = this.querySelector("progress");
    this.hint = this.querySelector("[data-hint]");
    this.hint.prepend("Choose a file, or drop it here. ");
    for (const name of ["dragover", "dragleave", "drop"]) this.addEventListener(name, event => {
      event.preventDefault();
      this.form.classList.toggle("over", name === "dragover");
      if (name === "drop" && event.dataTransfer.files.length) this.take(event.dataTransfer.files);
    });
    this.form.addEventListener("submit", event => {
      event.preventDefault();
      if (event.submitter?.hasAttribute("data-part")) this.change(event.submitter);
      else if (event.submitter?.hasAttribute("data-preview")) this.preview().then(() => announce(this.mapped.textContent.slice(0, SHOWN)));
      else this.send();
    });
    this.mapped.addEventListener("click", event => {
      const saved = event.target.closest("a[data-prompt]");
      if (saved) { event.preventDefault(); this.choose(saved); }
    });
    this.field.addEventListener("change", () => { this.forgetProposal(); this.preview(); });
  }
  take(files) {
    if (files.length > 1) { this.say("Drop one file at a time: each is a data set of its own.", 0); announce(this.hint.textContent); return; }
    this.forgetProposal();
    this.field.files = files;
    this.send();
  }
  send() {
    const file = this.field.files[0], request = new XMLHttpRequest(), body = new FormData();
    if (!file || this.request) return;
    this.addMapping(body);
    body.append("file", file);
    this.request = request;
    this.bar.hidden = false;
    request.upload.onprogress = event => this.say(event.loaded < event.total ? `${Math.round(100 * event.loaded / event.total)} % of ${file.name} is sent` : `${file.name} is checked`, event.loaded / event.total);
    request.onloadend = () => this.ended(request);
    request.open("POST", this.form.action);
    request.setRequestHeader("HX-Request", "true");
    request.setRequestHeader("HX-Request-Type", "partial");
    request.send(body);
  }
  // Fields of a form stand before its file.
  addMapping(body) {
    for (const name of MAPPING) body.append(name, this.form.elements[name].value);
  }
  // A saved mapping takes the place of what is in the fields; the file stays chosen.
  choose(saved) {
    for (const name of MAPPING) this.form.elements[name].value = saved.dataset[name];
    this.form.elements.save_as.value = saved.textContent.trim();
    announce(`The mapping ${saved.textContent.trim()} is chosen.`);
    this.preview();
  }
  // Saves or deletes a mapping, without the file.
  async change(button) {
    const body = new FormData();
    this.addMapping(body);
    body.append("save_as", this.form.elements.save_as.value);
    const headers = { "HX-Request": "true", "HX-Request-Type": "partial" };
    const done = await fetch(button.getAttribute("formaction"), { method: "POST", body, headers }).catch(() => undefined);
    for (const each of this.form.querySelectorAll("button")) each.disabled = false;
    if (!done?.ok) { this.say("The mapping is as it was: the gateway refused.", 0); return; }
    if (done.headers.has("HX-Redirect")) { location.assign(done.headers.get("HX-Redirect")); return; }
    this.mapped.innerHTML = await done.text();
    announce(this.mapped.querySelector(".fault")?.textContent ?? "The mapping is saved.");
  }
  async preview() {
    const file = this.field.files[0], body = new FormData(), given = this.form.elements.prompt.value;
    if (!file) return;
    this.addMapping(body);
    body.append("file", file.slice(0, PREVIEWED_BYTES + 1), file.name);
    const headers = { "HX-Request": "true", "HX-Request-Type": "partial" };
    const shown = await fetch("/datasets/preview", { method: "POST", body, headers }).catch(() => undefined);
    for (const button of this.form.querySelectorAll("button")) button.disabled = false;
    if (!shown?.ok) { this.say("The preview failed.", 0); return; }
    this.mapped.innerHTML = await shown.text();
    if (!given) this.proposed = this.form.elements.prompt.value;
  }
  // What was proposed for one file is not applied to the next.
  forgetProposal() {
    if (this.form.elements.prompt.value !== this.proposed) return;
    for (const name of MAPPING) this.form.elements[name].value = "";
  }
  get mapped() { return this.querySelector("[data-mapped]"); }
  say(text, share) { this.hint.textContent = text; this.bar.value = share; }
  ended(request) {
    this.request = undefined;
    this.bar.hidden = true;
    if (request.status === 201) { location.assign(request.getResponseHeader("Location")); return; }
    for (const button of this.form.querySelectorAll("button")) button.disabled = false;
    // The last byte may have arrived, and only the response not.
    if (!request.status) { this.say("", 0); notify("The connection was lost. Look into the list before you send the file again."); return; }
    this.say("Nothing was stored.", 0);
    // From our own server, whose templates escape what is foreign.
    this.querySelector("[data-faults]").innerHTML = request.responseText;
    announce(this.querySelector("[data-faults]").textContent.slice(0, SHOWN));
    if (!this.form.elements.prompt.value) this.preview();
  }
}
customElements.define("upload-form", UploadForm);
