"use strict";
const wait = document.querySelector("[data-wait]");
if (wait) setTimeout(() => location.assign(wait.dataset.wait), 2500);
const captcha = document.querySelector("[data-captcha]");
captcha?.querySelector(".box").addEventListener("click", (event) => {
  event.target.classList.add("busy");
  setTimeout(() => captcha.submit(), 600);
});
