// What script adds to pages that can be read without it.
import { addReader } from "./reader";
import { addSuggestions } from "./suggest";

const KEYS: [string, string, () => void][] = [
  ["/", "search", () => document.querySelector<HTMLInputElement>("#q")?.select()],
  ["m", "the map", () => go("/map")],
  ["g", "the graph", () => go("/graph")],
  ["a", "all questions", () => go("/ask")],
  ["h", "the start", () => go("/")],
  ["n", "more of this answer", () => document.querySelector<HTMLAnchorElement>("a[rel=next]")?.click()],
  ["?", "these keys", () => help()],
];

function go(address: string): void {
  location.href = address;
}

function help(): void {
  document.querySelector("dialog")?.remove();
  const dialog = document.createElement("dialog");
  const title = document.createElement("h2");
  title.textContent = "Keys";
  const list = document.createElement("dl");
  for (const [key, what] of KEYS) {
    const name = document.createElement("dt");
    const cap = document.createElement("kbd");
    cap.textContent = key;
    name.append(cap);
    const says = document.createElement("dd");
    says.textContent = what;
    list.append(name, says);
  }
  const form = document.createElement("form");
  form.method = "dialog";
  const button = document.createElement("button");
  button.textContent = "Close";
  form.append(button);
  dialog.append(title, list, form);
  document.body.append(dialog);
  dialog.showModal();
}

document.addEventListener("keydown", (event) => {
  const target = event.target as HTMLElement;
  if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, textarea, select, dialog[open]")) return;
  const known = KEYS.find(([key]) => key === event.key);
  if (known) {
    event.preventDefault();
    known[2]();
  }
});

// A page that shows what has changed is made anew where it stands: what is read stays where it is.
async function refresh(): Promise<void> {
  const main = document.querySelector("#main");
  const typing = document.activeElement?.closest("main form");
  if (!main || typing) return;
  const reply = await fetch(location.href).catch(() => undefined);
  if (!reply || reply.status >= 500) return;
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  const fresh = page.querySelector("#main");
  if (!fresh) return;
  const strip = (part: Element) => part.textContent?.replace(/[\d.,]+ ms/g, "");
  if (strip(fresh) === strip(main)) return;
  const [left, top] = [window.scrollX, window.scrollY];
  main.replaceChildren(...fresh.childNodes);
  window.scrollTo({ left, top, behavior: "instant" });
  enrich();
}

function enrich(): void {
  for (const input of document.querySelectorAll<HTMLInputElement>("main input[data-names]")) addSuggestions(input);
}

const box = document.querySelector<HTMLInputElement>("#q");
if (box) addSuggestions(box);
enrich();
addReader();
if ("SharedWorker" in window) {
  const worker = new SharedWorker("/static/events.js");
  worker.port.onmessage = () => void refresh();
} else {
  new EventSource("/events").onmessage = () => void refresh();
}
