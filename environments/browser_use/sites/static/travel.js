"use strict";
// City suggestions and a calendar, both below the field that has the focus. Everything listens on the
// document, so that it works as soon as a field is there.

function closeAll() {
  document.querySelectorAll(".menu, .calendar").forEach((each) => each.remove());
}

function suggest(input) {
  closeAll();
  const wanted = input.value.trim().toLowerCase();
  const cities = input.form.dataset.cities.split("|").filter((city) => city.toLowerCase().includes(wanted));
  if (!wanted || !cities.length || cities.some((city) => city.toLowerCase() === wanted)) return;
  const menu = document.createElement("div");
  menu.className = "menu";
  for (const city of cities) {
    const item = document.createElement("div");
    item.textContent = city;
    item.addEventListener("mousedown", (event) => {
      event.preventDefault();
      input.value = city;
      closeAll();
    });
    menu.append(item);
  }
  input.parentElement.append(menu);
}

function iso(year, month, day) {
  return `${year}-${String(month + 1).padStart(2, "0")}-${String(day).padStart(2, "0")}`;
}

function button(text, action) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.addEventListener("click", action);
  return made;
}

function calendar(input, year, month) {
  closeAll();
  const { today, months, days } = input.form.dataset;
  const box = document.createElement("div");
  box.className = "calendar";
  const head = document.createElement("div");
  head.className = "head";
  const turn = (step) => calendar(input, year + Math.floor((month + step) / 12), (month + step + 12) % 12);
  const back = button("‹", () => turn(-1));
  const next = button("›", () => turn(1));
  back.className = "quiet previous";
  next.className = "quiet next";
  const title = document.createElement("span");
  title.textContent = `${months.split(",")[month]} ${year}`;
  head.append(back, title, next);
  const grid = document.createElement("div");
  grid.className = "days";
  for (const name of days.split(",")) grid.append(Object.assign(document.createElement("small"), { textContent: name }));
  const lead = (new Date(year, month, 1).getDay() + 6) % 7;
  for (let n = 0; n < lead; n += 1) grid.append(document.createElement("span"));
  for (let day = 1; day <= new Date(year, month + 1, 0).getDate(); day += 1) {
    const date = iso(year, month, day);
    const cell = button(day, () => { input.value = date; closeAll(); });
    cell.dataset.date = date;
    cell.disabled = date < today;
    grid.append(cell);
  }
  box.append(head, grid);
  input.closest("div.field").append(box);
}

document.addEventListener("input", (event) => {
  if (event.target.matches(".city")) suggest(event.target);
});
document.addEventListener("focusout", (event) => {
  if (event.target.matches(".city")) closeAll();
});
document.addEventListener("click", (event) => {
  const input = event.target;
  if (!input.matches(".day")) return;
  const [year, month] = (input.value || input.form.dataset.today).split("-").map(Number);
  calendar(input, year, month - 1);
});
document.addEventListener("change", (event) => {
  if (event.target.name !== "trip") return;
  const { back } = event.target.form.elements;
  back.disabled = event.target.value !== "return";
  if (back.disabled) back.value = "";
});
