// <upload-form>: a file can be dropped on it, its way is shown, and so are its faulty lines.
import { announce, notify } from "./pages.js";

const SHOWN = 300;

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
    this.form.addEventListener("submit", event => { event.preventDefault(); this.send(); });
  }
  take(files) {
    if (files.length > 1) { this.say("Drop one file at a time: each is a data set of its own.", 0); announce(this.hint.textContent); return; }
    this.field.files = files;
    this.send();
  }
  send() {
    const file = this.field.files[0], request = new XMLHttpRequest(), body = new FormData();
    if (!file || this.request) return;
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
  }
}
customElements.define("upload-form", UploadForm);
