"use strict";
// The list on the front page grows when its end comes into view.
let stories, more;

async function load() {
  const reply = await fetch(`/more?after=${stories.children.length}`);
  const text = await reply.text();
  if (!reply.ok) {
    watcher.disconnect();
    const again = document.createElement("button");
    again.textContent = more.dataset.again;
    again.addEventListener("click", () => { more.textContent = ""; watcher.observe(more); });
    more.replaceChildren(`${more.dataset.failed} `, again);
    return;
  }
  if (text) stories.insertAdjacentHTML("beforeend", text);
  else { watcher.disconnect(); more.remove(); }
  watcher.unobserve(more);
  watcher.observe(more);
}

const watcher = new IntersectionObserver((entries) => { if (entries[0].isIntersecting) load(); });
document.addEventListener("DOMContentLoaded", () => {
  stories = document.getElementById("stories");
  more = document.getElementById("more");
  if (stories && !document.querySelector(".cookies")) watcher.observe(more);
});
