// <upload-form>: a file can be dropped on it, its way is shown, and so are its faulty lines.
import { announce, notify } from "./pages.js";

const SHOWN = 300;
const MAPPING = ["prompt", "target", "id"];
// More than the server reads of a file that it previews, by one.
const PREVIEWED_BYTES = 256 * 1024;

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
      if (event.submitter?.hasAttribute("data-preview")) this.preview().then(() => announce(this.mapped.textContent.slice(0, SHOWN)));
      else this.send();
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
