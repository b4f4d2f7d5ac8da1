// Answers of this server become markup of the page: html/template has escaped what is
// in them. Nothing becomes a script, or the address of one: this policy makes none, and
// the Content Security Policy allows no other.
if (window.trustedTypes) {
  window.trustedTypes.createPolicy("default", { createHTML: (markup) => markup });
}

// A part that has not changed stays as it is, with what is focused and selected in it.
const shown = new Map();
document.addEventListener("htmx:beforeSwap", (event) => {
  const detail = event.detail;
  const { target, xhr } = detail;
  if (xhr.status !== 200 || !target.id) {
    return;
  }
  if (shown.get(target.id) === xhr.responseText) {
    detail.shouldSwap = false;
  }
  shown.set(target.id, xhr.responseText);
});
