"use strict";
// The graph's own script writes its state into the address, and this document has none.
history.replaceState = () => {};
// It asks for a term in a dialog, which browsers keep from frames: a field takes its place.
addEventListener("load", () => {
  const field = document.getElementById("find");
  window.prompt = () => { field.focus(); return null; };
  field.addEventListener("input", () => {
    if (searching) search_prompt();
    try {
      // Names have spaces that do not break.
      if (field.value) search(field.value.replaceAll(" ", "\u00a0"));
      field.removeAttribute("aria-invalid");
    } catch {
      field.setAttribute("aria-invalid", "true");
    }
  });
});
