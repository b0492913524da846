// What the page needs beyond htmx: it keeps what is being typed, shows the values of sliders, and
// takes files that are dropped.
"use strict";

const typing = (section) =>
  section.contains(document.activeElement) ||
  [...section.querySelectorAll("input:not([type=hidden]), select")].some((one) =>
    one.type === "range" || one.tagName === "SELECT" ? false : one.value !== one.defaultValue,
  );

// When the study changes, a section in which somebody is typing or looking around stays as it is.
const stays = (section, event) =>
  event.detail.requestConfig.triggeringEvent?.type === "changed" &&
  section.matches("[data-keeps-typing]") &&
  typing(section);
document.addEventListener("htmx:beforeRequest", (event) => {
  if (stays(event.target, event)) event.preventDefault();
});
document.addEventListener("htmx:beforeSwap", (event) => {
  if (stays(event.target, event)) event.detail.shouldSwap = false;
});

// After a form was taken, what was typed there is done with.
document.addEventListener("htmx:afterRequest", (event) => {
  const form = event.target;
  if (form.matches?.("form") && event.detail.successful && event.detail.requestConfig.verb === "post") {
    form.reset();
    if (form.contains(document.activeElement)) document.activeElement.blur();
  }
});

document.addEventListener("htmx:sendError", () => say("The studio does not answer: is it still running?"));
document.addEventListener("htmx:responseError", (event) =>
  say(`The studio could not do that (${event.detail.xhr.status}): ${event.detail.xhr.responseText.slice(0, 200)}`),
);

function say(text) {
  const line = document.createElement("p");
  line.className = "toast bad";
  line.textContent = text;
  document.getElementById("message").replaceChildren(line);
}

let fading;
new MutationObserver(() => {
  clearTimeout(fading);
  if (document.querySelector("#message .good")) {
    fading = setTimeout(() => document.getElementById("message").replaceChildren(), 8000);
  }
}).observe(document.getElementById("message"), { childList: true });

document.addEventListener("input", (event) => {
  if (event.target.type !== "range") return;
  const step = Number(event.target.dataset.step);
  const output = event.target.closest("label").querySelector("output");
  output.textContent = Number((Math.round(event.target.value / step) * step).toPrecision(4));
});

document.addEventListener("click", (event) => {
  event.target.closest(".toast")?.remove();
  if (!event.target.matches(".remove")) return;
  event.target.closest(".one-input").remove();
  document.getElementById("questions").dispatchEvent(new Event("change", { bubbles: true }));
});

const drop = document.getElementById("drop");
if (drop) {
  const file = document.getElementById("table");
  const over = (event, on) => {
    event.preventDefault();
    drop.classList.toggle("over", on);
  };
  drop.addEventListener("dragover", (event) => over(event, true));
  drop.addEventListener("dragleave", (event) => over(event, false));
  drop.addEventListener("drop", (event) => {
    over(event, false);
    if (event.dataTransfer.files.length) send(event.dataTransfer.files[0]);
  });
  drop.addEventListener("keydown", (event) => {
    if (event.target === drop && (event.key === "Enter" || event.key === " ")) file.click();
  });
  file.addEventListener("change", () => file.files.length && send(file.files[0]));

  const send = async (chosen) => {
    const asked = new URLSearchParams({ file: chosen.name });
    const skip = document.getElementById("skip").value.trim();
    if (skip) asked.set("skip", skip);
    const secret = JSON.parse(document.body.getAttribute("hx-headers"));
    try {
      const answer = await fetch(`${drop.dataset.address}?${asked}`, { method: "POST", body: chosen, headers: secret });
      htmx.swap("#message", await answer.text(), { swapStyle: "innerHTML" });
      if (answer.ok) htmx.trigger(document.body, "changed");
    } catch {
      say("The studio does not answer: is it still running?");
    }
    file.value = "";
  };
}
