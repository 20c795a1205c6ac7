"use strict";
// Forms that ask before they are sent, and fields that send their form when they change.
document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !confirm(question)) event.preventDefault();
});
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-auto]")) event.target.form.requestSubmit();
});
