// Source: all places of a name are lit, and what is known of it is told beside it.
interface Contract {
  message: string;
  details?: { name?: string; symbol_kind?: string; source?: string; doc?: string };
}

let asked = 0;
let timer = 0;

export function addReader(): void {
  document.addEventListener("pointerover", (event) => follow(event.target, 250));
  document.addEventListener("focusin", (event) => follow(event.target, 0));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
  });
}

function follow(target: EventTarget | null, wait: number): void {
  const link = target instanceof Element ? target.closest<HTMLAnchorElement>("a.n") : null;
  window.clearTimeout(timer);
  if (!link) return;
  light(link);
  timer = window.setTimeout(() => void tell(link), wait);
}

function light(link: HTMLAnchorElement): void {
  for (const lit of document.querySelectorAll(".lit")) lit.classList.remove("lit");
  const code = link.closest("pre");
  const number = link.dataset.n ?? "";
  if (/^\d+$/.test(number)) {
    for (const each of code?.querySelectorAll(`a.n[data-n="${number}"]`) ?? []) each.classList.add("lit");
  }
}

async function tell(link: HTMLAnchorElement): Promise<void> {
  const path = link.closest<HTMLElement>("[data-path]")?.dataset.path;
  const row = link.closest<HTMLElement>(".l");
  if (!path || !row) return;
  const range = document.createRange();
  const gutter = row.querySelector(".ln");
  if (gutter) range.setStartAfter(gutter);
  range.setEndBefore(link);
  const column = [...range.toString()].length + 1;
  const number = ++asked;
  const place = `${path}:${row.id.slice(1)}:${column}`;
  const reply = await fetch(`/ask/hover.json?no_lsp=1&target=${encodeURIComponent(place)}`).catch(() => undefined);
  if (number !== asked) return;
  const answer = reply?.ok ? await reply.json() : {};
  const sections = (answer.sections ?? []) as { kind: string; findings?: Contract[] }[];
  const found = sections.find((section) => section.kind === "contracts")?.findings?.[0];
  show(found, link.title, place);
}

function show(found: Contract | undefined, title: string, place: string): void {
  hide();
  const panel = document.createElement("aside");
  panel.className = "panel";
  panel.setAttribute("role", "status");
  const add = (kind: string, text: string | undefined) => {
    if (!text) return;
    const part = document.createElement(kind);
    part.textContent = text;
    panel.append(part);
  };
  add("code", found?.message);
  add("p", found?.details?.doc);
  add("p", title);
  if (found) add("small", `said by ${found.details?.source === "index" ? "the index, as it is written" : found.details?.source}`);
  const more = document.createElement("a");
  more.href = `/ask/references?no_lsp=1&target=${encodeURIComponent(place)}`;
  more.textContent = "References";
  panel.append(document.createElement("br"), more);
  document.body.append(panel);
}

function hide(): void {
  document.querySelector(".panel")?.remove();
}
