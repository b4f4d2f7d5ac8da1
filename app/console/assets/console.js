// Answers of this server become markup of the page: html/template has escaped what is
// in them. Nothing becomes a script, or the address of one: this policy makes none, and
// the Content Security Policy allows no other.
if (window.trustedTypes) {
  window.trustedTypes.createPolicy("default", { createHTML: (markup) => markup });
}
