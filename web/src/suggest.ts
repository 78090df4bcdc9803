// Names and paths below a box while it is written into.
interface Completion {
  names: string[];
  paths: string[];
}

let count = 0;

export function addSuggestions(input: HTMLInputElement): void {
  const list = document.createElement("ul");
  list.className = "suggestions";
  list.id = `suggestions-${++count}`;
  list.setAttribute("role", "listbox");
  list.hidden = true;
  const holder = input.parentElement;
  if (!holder) return;
  holder.classList.add("holder");
  holder.append(list);
  input.setAttribute("role", "combobox");
  input.setAttribute("aria-controls", list.id);
  input.setAttribute("aria-expanded", "false");
  input.setAttribute("aria-autocomplete", "list");
  input.autocomplete = "off";
  let asked = 0;
  let chosen = -1;

  const close = () => {
    list.hidden = true;
    chosen = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const choose = (at: number) => {
    const rows = [...list.children];
    chosen = (at + rows.length) % rows.length;
    rows.forEach((row, number) => row.setAttribute("aria-selected", String(number === chosen)));
    const row = rows[chosen];
    if (row) {
      input.setAttribute("aria-activedescendant", row.id);
      row.scrollIntoView({ block: "nearest" });
    }
  };
  const take = () => {
    const row = list.children[chosen];
    if (!row) return false;
    input.value = row.textContent ?? "";
    close();
    return true;
  };
  input.addEventListener("input", async () => {
    const number = ++asked;
    const prefix = input.value;
    if (!prefix || /[\s=]/.test(prefix)) return close();
    const reply = await fetch(`/complete?q=${encodeURIComponent(prefix)}`).catch(() => undefined);
    if (!reply?.ok) return close();
    const found = (await reply.json()) as Completion;
    if (number !== asked) return; // a late answer never replaces a newer one
    const rows = [...found.names, ...found.paths].slice(0, 20).map((name, at) => {
      const row = document.createElement("li");
      row.id = `${list.id}-${at}`;
      row.setAttribute("role", "option");
      row.textContent = name;
      row.addEventListener("mousedown", (event) => {
        event.preventDefault();
        input.value = name;
        close();
        input.form?.requestSubmit();
      });
      return row;
    });
    list.replaceChildren(...rows);
    chosen = -1;
    list.hidden = rows.length === 0;
    input.setAttribute("aria-expanded", String(rows.length > 0));
  });
  input.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen < 0 ? -1 : chosen - 1);
    else if (event.key === "Escape") close();
    else if (event.key === "Tab" && chosen >= 0) take();
    else if (event.key === "Enter") {
      take();
      return;
    } else return;
    event.preventDefault();
  });
  input.addEventListener("blur", close);
}
