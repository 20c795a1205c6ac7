"use strict";
// Forms that ask for a text in a dialog, and cards that are dragged from lane to lane.
document.addEventListener("submit", (event) => {
  const { prompt: question, default: preset } = event.target.dataset;
  if (!question) return;
  const text = prompt(question, preset);
  if (text === null) event.preventDefault();
  else event.target.elements.tag.value = text;
});

let held = null;
document.addEventListener("mousedown", (event) => {
  const ticket = event.target.closest(".ticket");
  if (!ticket || event.button !== 0) return;
  event.preventDefault();
  held = { ticket, home: ticket.parentElement, x: event.offsetX, y: event.offsetY };
});
document.addEventListener("mousemove", (event) => {
  if (!held) return;
  held.ticket.classList.add("dragged");
  held.ticket.style.left = `${event.clientX - 60}px`;
  held.ticket.style.top = `${event.clientY - 20}px`;
  const over = laneAt(event);
  document.querySelectorAll(".lane").forEach((lane) => lane.classList.toggle("over", lane === over));
});
document.addEventListener("mouseup", async (event) => {
  if (!held) return;
  const { ticket, home } = held;
  const lane = laneAt(event) || home;
  held = null;
  ticket.classList.remove("dragged");
  ticket.style.left = ticket.style.top = "";
  document.querySelectorAll(".lane").forEach((each) => each.classList.remove("over"));
  if (lane === home) return;
  lane.append(ticket);
  const body = new URLSearchParams({ number: ticket.dataset.number, status: lane.dataset.status });
  const reply = await fetch("/board/move", { method: "POST", body });
  if (!reply.ok) {
    home.append(ticket);
    alert(await reply.text());
  }
});

function laneAt(event) {
  return document.elementsFromPoint(event.clientX, event.clientY).find((each) => each.matches(".lane"));
}
