"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const wait = document.querySelector("[data-wait]");
  if (wait) setTimeout(() => location.assign(wait.dataset.wait), 2500);
});
document.addEventListener("click", (event) => {
  if (!event.target.matches("[data-captcha] .box")) return;
  event.target.classList.add("busy");
  setTimeout(() => event.target.closest("form").submit(), 600);
});
